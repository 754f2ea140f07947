# Every target is a line into the command line of Headgate: `make help` lists them.
# Python 3.11+ and make are all it takes; uv is used when it is there (UV= turns that off).

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
UV ?= $(shell uv --version >/dev/null 2>&1 && echo uv)
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
HG := $(BIN)/headgate
BENCH := $(BIN)/python -m bench
PYTEST := $(BIN)/python -m pytest
# Downloads trust what this machine trusts, as a company's proxy needs it.
export UV_SYSTEM_CERTS ?= true
export UV_NATIVE_TLS ?= true
CERTIFICATES := $(wildcard /etc/ssl/certs/ca-certificates.crt)
ifneq ($(CERTIFICATES),)
export PIP_CERT ?= $(CERTIFICATES)
endif
SETUP = PYTHON='$(PYTHON)' UV='$(UV)' scripts/setup.sh
# What commands need, what developers need besides, and what the engine needs to start quickly.
READY := .venv/.ready
DEV := .venv/.dev
PREPARED := .venv/.prepared
N ?= 20
TABLE ?= customer
# One worker runs the tests with servers (tests/conftest.py lists their files) and mostly waits for
# them; two more keep two cores busy. Files are taken in order, so that the longest does not come last.
WORKERS ?= 3
JUNIT = build/tests/junit.xml
TIMED = -p tests.support.durations --junitxml $(JUNIT) --durations 20
SIDE_BY_SIDE = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# What the compilers stand on. They and it are about half each of `make test-fast` and run at once;
# two workers would each have to collect both halves.
BASE = $(addprefix tests/unit/,declarations conditions config core/sql test_settings.py test_render_sql.py)
# Python would compile the package and rewrite the tests anew in every process that is started.
unexport PYTHONDONTWRITEBYTECODE
# make hands on what is given to it: `make process DATASET=orders MODE=batch` reaches every command.

##@ Start here

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(PREPARED) ## the whole path on sample data, checked and certified, then stopped
	$(HG) demo

demo-quality: $(PREPARED) ## planted defects found again in every table, ledger and sink
	$(HG) demo quality

demo-reconcile: $(PREPARED) ## planted pairs found again, key by key, in Kafka, Cassandra and Connect
	$(HG) demo reconcile

demo-filters: $(PREPARED) ## events routed to three dealers, filters changed on the way, everything proven
	$(HG) demo filters

setup-dev: $(DEV) ## everything Python, the developers' tools too (and a Java if there is none), into .venv
	@echo "ready: $(HG) --help" >&2

setup-system: ## Debian packages that later parts use (root only)
	apt-get install -y --no-install-recommends chromium prometheus docker-compose

$(READY): requirements/run.txt requirements/build.txt requirements/java.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Headgate needs Python 3.11 or newer, this is %d.%d; try: make PYTHON=python3.12" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@$(SETUP) run
	@touch $@

$(DEV): $(READY) requirements/dev.txt
	@$(SETUP) dev
	@touch $@

$(PREPARED): $(READY) $(wildcard java/spark-functions/src/main/java/headgate/spark/*.java)
	@$(HG) engine prepare
	@touch $@

##@ Settings

env-select: $(READY) ## make a profile the active one: ENV=env/local.env
	$(HG) config select $(ENV)

print-config: $(READY) ## every value and where it came from
	$(HG) config show

debug-env: $(READY) ## the same in [brackets], so that white space shows
	$(HG) config show --brackets

validate-config: $(READY) ## everything that is missing or contradicts itself
	$(HG) config check

##@ Services

up: $(PREPARED) validate-config ## check the settings, start broker and engine, compile the SQL
	$(HG) dataset check
	$(HG) local up
	$(HG) dataset build

stop: $(READY) ## stop everything; all data are kept
	$(HG) local down

down: $(READY) ## stop everything and REMOVE the embedded data; asks on a terminal (YES=1 answers)
	$(HG) local down --remove-data $$([ -z "$(YES)" ] && [ -t 0 ] || echo --yes)

clean: down ## down, and remove build/
	rm -rf build

restart: $(READY) ## stop, then up; all data are kept
	$(MAKE) stop
	$(MAKE) up

health: $(READY) ## ask broker, engine and storage
	$(HG) local health

check-lag: $(READY) ## how far bronze is behind the topic, and the dead letters against DLQ_MAX
	$(HG) job lag

status: $(READY) ## services and jobs
	$(HG) local status
	$(HG) job list --newest

ps: $(READY) ## services
	$(HG) local status

logs: $(READY) ## what all services wrote
	$(HG) local logs

logs-broker: $(READY) ## what the broker wrote
	$(HG) local logs --service broker

logs-engine: $(READY) ## what the engine wrote
	$(HG) local logs --service engine

logs-executor: $(READY) ## what the executors wrote (locally they are the engine)
	$(HG) local logs --service engine

obs-up: $(READY) ## Prometheus and Grafana beside the pipeline (needs Docker)
	$(HG) obs up

obs-down: $(READY) ## stop those two and forget what they kept
	$(HG) obs down

##@ Data

scaffold: $(READY) ## write SQL, dbt model, source and tests of a manifest: DATASET=orders
	$(HG) dataset scaffold

build-sql: $(READY) ## compile the dataset to build/sql
	$(HG) dataset build

show-sql: $(READY) ## print the compiled SQL and the settings it was made with
	$(HG) dataset show
	$(HG) config show

sample: $(READY) ## make sample data where the settings look for it
	$(HG) feed sample

create-topics: $(READY) ## the topic (3 partitions, 3 days) and its dead letters (1, 7 days)
	$(HG) topics create

generate: $(READY) ## send the Parquet file to the topic
	$(HG) feed generate

generate-limited: $(READY) ## send 10,000 events
	$(HG) feed generate --max-events 10000

feed: $(READY) ## send rows of a rule table with counted defects: TABLE=customer
	$(HG) feed rules $(TABLE)

##@ Jobs

process: $(READY) ## bronze, then silver; waits for both
	$(HG) job run bronze
	$(HG) job run silver

process-bronze: $(READY) ## Kafka to Iceberg, raw and complete
	$(HG) job run bronze

process-silver: $(READY) ## bronze to clean rows
	$(HG) job run silver

process-streaming: $(READY) ## start what MODE says as a stream, and return at once
	$(HG) job start

restart-streaming: $(READY) ## stop the streams that run between two batches and start them again
	$(HG) job restart

jobs: $(READY) ## jobs with their states
	$(HG) job list

job-cancel: $(READY) ## stop one job: JOB=bronze-taxi
	$(HG) job stop $(JOB)

##@ Filters

serve: $(READY) ## the API of filters, events and dead letters
	$(HG) serve

check-filters: $(READY) ## every fault of the filters' files at once
	$(HG) filters check

dead-letters: $(READY) ## records that jobs could not accept, by job, reason and topic
	$(HG) dlq groups

##@ Maintenance

compact-silver: $(READY) ## merge small files to 128 MB, of dates that are over
	$(HG) maintain compact

expire-snapshots: $(READY) ## remove snapshots older than 7 days that nobody needs
	$(HG) maintain expire --yes

vacuum: $(READY) ## remove files that no snapshot knows, older than 3 days
	$(HG) maintain vacuum --yes

maintain: $(READY) ## compact and expire
	$(HG) maintain all --skip vacuum --yes

##@ Marts and checks

wait-for-silver: $(READY) ## until silver has rows, 90 seconds at most
	$(HG) lake wait

count: $(READY) ## rows in bronze and silver
	$(HG) lake count

dbt-build: $(READY) ## build and test all models
	$(HG) dbt build

dbt-test: $(READY) ## test the models
	$(HG) dbt test

dbt-docs: $(READY) ## the models' documentation
	$(HG) dbt docs

validate: $(READY) ## four stages of checks
	$(HG) validate

validate-py: $(READY) ## the same
	$(HG) validate

certify: $(READY) ## prove that every record is accounted for
	$(HG) certify

##@ Code

fmt: $(DEV) ## format
	$(BIN)/ruff format .

lint: $(DEV) ## lint, and mend what is safe to mend
	$(BIN)/ruff check --fix .

type: $(DEV) ## check the types, strictly in src
	$(BIN)/basedpyright

ci: lint type test-unit ## what to run before a push

docs: $(READY) ## write the generated reference pages
	$(HG) config reference > docs/reference/settings.md
	for page in errors commands metrics; do $(BIN)/python tools/$${page}_reference.py; done
	$(BIN)/python tools/openapi.py

##@ Tests and measurements

test: $(DEV) $(PREPARED) ## everything quick: unit and integration
	$(PYTEST) $(SIDE_BY_SIDE) $(TIMED) tests/integration tests/unit -m "not slow"

test-durations: $(DEV) test ## run the quick tests and write where their time goes
	$(BIN)/python tools/test_durations.py $(JUNIT)

test-fast: $(DEV) ## settings, rendering and compilers alone, in seconds
	printf '%s\n' "$(BASE)" "$(wildcard tests/unit/*/compile)" | xargs -P 2 -L 1 $(PYTEST) -q -p no:cacheprovider -m "not slow and not heavy"

test-unit: $(DEV) ## unit tests alone, two minutes
	$(PYTEST) tests/unit -q -m "not slow"

test-integration: $(DEV) $(PREPARED) ## with a real broker and Spark
	$(PYTEST) $(SIDE_BY_SIDE) tests/integration -m "not slow"

test-all: $(DEV) $(PREPARED) ## everything, the slow ones too; goes on where it was broken off
	$(PYTEST) -p tests.support.resume $(SIDE_BY_SIDE) tests/integration tests/unit

smoke: $(READY) ## what depends on Python's own library, with Debian's Python and one of 3.12 or newer
	scripts/smoke.sh

faults: $(PREPARED) ## kill the engine N times and compare: N=20
	$(BENCH) faults --kills $(N)

bursts: $(PREPARED) ## stream bursts, kill broker and engine, compare with a batch run
	$(BENCH) bursts

reconcile-faults: $(PREPARED) ## reconcile while Cassandra, Connect, Kafka and engine are killed, and compare
	$(BENCH) reconcile-faults

filter-faults: $(PREPARED) ## post events while every part is killed in turn, and account for each
	$(BENCH) filter-faults

bench: $(PREPARED) ## measure all speed goals, or GOAL=P6; goes on where it was broken off
	$(BENCH) run $(GOAL)

bench-peers: $(DEV) $(PREPARED) ## ours beside DQX, sparkdq, cuallee, Soda, Great Expectations and datacompy
	$(BENCH) peers

benchmark: $(PREPARED) ## one timed run of the whole path
	$(BENCH) pipeline

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' $(MAKEFILE_LIST))
