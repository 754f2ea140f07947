"""The composition root: what the core and the command line load by name, each part only when it is used.

Nothing else names all capabilities. Every entry is a string `module:attribute`, so that `--help` starts in
a blink and no layer imports the one above it.
"""

from __future__ import annotations

import importlib
from typing import Any

# The nouns of the command line: what each is for, and the command that it loads.
NOUNS: dict[str, tuple[str, str]] = {
    "audit": ("read, check and export who did what to filters", "headgate.filters.cli.audit:group"),
    "certify": (
        "prove that every record is accounted for",
        "headgate.certify.cli:certify_command",
    ),
    "config": ("choose, show and check settings", "headgate.cli.config:group"),
    "connect": (
        "build the Connect plugins; deploy and watch connectors",
        "headgate.cli.connect:group",
    ),
    "dataset": ("check and compile dataset manifests", "headgate.pipeline.cli.dataset:group"),
    "dbt": ("build and test the marts", "headgate.pipeline.cli.dbt:group"),
    "demo": ("run the whole path on sample data", "headgate.demo.cli:group"),
    "dlq": ("browse dead letters and send them again", "headgate.dead_letters.cli:group"),
    "doctor": ("say what this machine has and lacks", "headgate.cli.local:doctor_command"),
    "engine": ("run the long-running Spark application", "headgate.cli.engine:group"),
    "feed": ("make sample data and send it to the topic", "headgate.pipeline.cli.feed:group"),
    "filters": (
        "submit, approve, deploy, follow and undo filters",
        "headgate.filters.cli.group:group",
    ),
    "hash": ("hash rows by contract, and prove that all sides agree", "headgate.cli.hash:group"),
    "job": ("run, start, watch, stop and mend jobs", "headgate.cli.job.group:group"),
    "keys": ("make, list and revoke keys of the API", "headgate.cli.keys:group"),
    "lake": ("count and wait for tables", "headgate.cli.lake:group"),
    "ledger": ("show, export and rebuild the ledger", "headgate.cli.ledger:group"),
    "local": ("start and stop the embedded services", "headgate.cli.local:group"),
    "maintain": ("compact, expire and vacuum tables", "headgate.maintenance.cli:group"),
    "metrics": ("list, show and send metrics", "headgate.cli.metrics:group"),
    "obs": ("start and stop Prometheus and Grafana", "headgate.cli.metrics:obs"),
    "reconcile": (
        "compare both sides key by key; tell, explain and repair differences",
        "headgate.reconcile.cli:group",
    ),
    "rules": ("check, test and compile rule sets", "headgate.quality.cli:group"),
    "serve": ("answer the API of filters", "headgate.cli.engine:serve_command"),
    "sql": ("query the running engine", "headgate.cli.engine:sql_command"),
    "topics": ("create and show topics", "headgate.cli.topics:group"),
    "validate": ("run the four-stage validation", "headgate.certify.cli:validate_command"),
}

# Metrics of capabilities: each a `core.metrics.readings.Collector`, made with the ops store.
COLLECTORS: tuple[str, ...] = ("headgate.filters.accounting:FilterMetrics",)

# Tables of capabilities in the ops store: each a module that adds them to the one `metadata`.
STORE_TABLES: tuple[str, ...] = (
    "headgate.certify.store:metadata",
    "headgate.filters.store.tables:metadata",
    "headgate.maintenance.store:metadata",
    "headgate.quality.store:metadata",
    "headgate.reconcile.store:metadata",
)

# Routers of the API, in the order in which they are matched.
ROUTERS: tuple[str, ...] = (
    "headgate.api.health:router",
    "headgate.filters.api.filters:documents_router",
    "headgate.filters.api.filters:router",
    "headgate.filters.api.actions:router",
    "headgate.filters.api.operations:router",
    "headgate.filters.api.events:router",
    "headgate.dead_letters.api:router",
    "headgate.filters.api.operations:drift_router",
    "headgate.filters.api.operations:stream_router",
    "headgate.api.document:router",
)

# Functions `(app, settings, reload)` that open what a capability holds for one app of the API, and
# return a function that closes it.
API_RESOURCES: tuple[str, ...] = ("headgate.filters.api.events:open_writers",)

# The verbs of `feed` and of `demo`, which come from several parts; words that end in `...` are as
# click shortens the first sentence of a command's own help.
FEED: dict[str, tuple[str, str]] = {
    "events": (
        "Send made-up events to the API, or straight into PostgreSQL.",
        "headgate.demo.filters.feed:feed_events",
    ),
    "generate": (
        "Send the rows of the Parquet file as JSON to the dataset's...",
        "headgate.pipeline.cli.feed:generate",
    ),
    "pairs": (
        "Plant keys on both sides of a reconciliation: rows, messages,...",
        "headgate.demo.reconcile.feed:feed_pairs",
    ),
    "rules": (
        "Send rows of a rule table to its topics, with a known number...",
        "headgate.demo.quality.feed:feed_rules",
    ),
    "sample": (
        "Write a Parquet file of made-up rows, and beside it what was...",
        "headgate.pipeline.cli.feed:sample",
    ),
}
DEMOS: dict[str, tuple[str, str]] = {
    "filters": (
        "Route service events to three dealers, change a filter while...",
        "headgate.demo.filters.cli:demo_filters",
    ),
    "quality": (
        "Plant defects, judge the rows, and find every single one again.",
        "headgate.demo.quality.cli:demo_quality",
    ),
    "reconcile": (
        "Plant defects on both sides of a reconciliation, and find...",
        "headgate.demo.reconcile.cli:demo_reconcile",
    ),
}

# What a certificate holds beside datasets, in this order: each a `core.accounting.evidence.AccountKind`.
ACCOUNTS: tuple[str, ...] = (
    "headgate.quality.accounting:ACCOUNT_KIND",
    "headgate.reconcile.accounting:ACCOUNT_KIND",
    "headgate.filters.accounting:ACCOUNT_KIND",
)

# What certificate and validation ask of others: the manifest of a dataset (for proposed rules too), what its
# generator sent and refused, whether services answer, and whether the tests of its marts pass.
DECLARED_DATASET = "headgate.pipeline.accounting:declared_dataset"
GENERATOR_COUNTS = "headgate.pipeline.accounting:generator_counts"
SERVICE_PROBE = "headgate.local.health:probe_services"
TEST_MARTS = "headgate.pipeline.dbt.run:test"

# Tables that maintenance looks after, `(store, run)` to uses of tables, in the order of its plan: the tables of
# a pair stand together, so reconciliation names them before quality names some of them again.
MAINTAINED: tuple[str, ...] = (
    "headgate.pipeline.accounting:table_uses",
    "headgate.reconcile.accounting:table_uses",
    "headgate.quality.accounting:table_uses",
)

# What dead letters mask beside the fields of hash contracts: `settings` to the names that declarations tag.
SENSITIVE: tuple[str, ...] = ("headgate.quality.spec.loader:sensitive_names",)

# The kinds of jobs, in the order in which messages list them: each a `core.engine.job_kind.JobKind`.
JOB_KINDS: dict[str, str] = {
    "bronze": "headgate.pipeline.job_kinds:BRONZE",
    "silver": "headgate.pipeline.job_kinds:SILVER",
    "backfill": "headgate.pipeline.job_kinds:BACKFILL",
    "maintain": "headgate.maintenance.job_kind:MAINTAIN",
    "quality": "headgate.quality.job_kind:QUALITY_KIND",
    "reconcile": "headgate.reconcile.job_kind:RECONCILE_KIND",
    "router": "headgate.filters.router.job_kinds:ROUTER_KIND",
    "replay": "headgate.filters.router.job_kinds:REPLAY_KIND",
}

# What a rule table with two sources needs of reconciliation: a `headgate.quality.pairs.PairSupport`.
PAIR_SUPPORT = "headgate.reconcile.rule_tables:PAIRS"


def load(entry: str) -> Any:
    """The attribute that an entry `module:attribute` names; its module is imported on first use."""
    module, _, attribute = entry.partition(":")
    return getattr(importlib.import_module(module), attribute)
