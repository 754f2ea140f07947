"""The files of the shipped rule sets run by hand in plain `spark-sql`, and say what the engine says."""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.oracle import read_topic
from tests.support.pipeline import Pipeline, create_topic, produce
from tests.support.reconcile_job import parse_state, random_messages
from tests.support.spark_sql import run_spark_sql

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake
from headgate.core.ledger.ops_store import OpsStore
from headgate.demo.quality.feed import feeding_of, open_feed, order_of, send
from headgate.demo.quality.planting import Planted
from headgate.pipeline.build import plan_build, write_build
from headgate.quality.cli.compile import compiled_texts
from headgate.quality.compile.resolve import open_rules
from headgate.quality.spec.loader import rule_files
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.decision_table import judge
from headgate.reconcile.state import Side, State, merge_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.support.services import RunningBroker

# A second JVM and three jobs: a minute on a quiet machine.
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
TABLES = ("customer", "orders", "taxi")
PAIR: dict[Side, str] = {"onprem": "alone.topic1", "cloud": "alone.topic2"}
SEED, ROWS = 11, 400
# When and by which means it was judged, and under which revision.
OPERATIONAL = ("processing_time", "origin", "revision")
# The rows that cannot be read, by the view of each source.
READ = {
    "customer": ("onprem_customer_events_read", "cloud_customer_hash_read"),
    "orders": ("onprem_orders_events_read", "cloud_orders_hash_read"),
    "taxi": ("taxi_trips_read",),
}
PLACE = "kafka_topic, kafka_partition, kafka_offset"


@dataclass(frozen=True)
class Alone:
    """What the engine says of the topics, and what `spark-sql` printed of them, by view."""

    spark: SparkSession
    engine: Settings
    by_hand: Settings
    planted: dict[str, Planted]
    # What must be said of the keys of the pair `business`.
    pair: dict[str, str]
    printed: Mapping[str, Counter[str]]


@pytest.fixture(scope="module")
def alone(
    spark: SparkSession,
    broker: RunningBroker,
    lake_home: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Alone:
    folder = tmp_path_factory.mktemp("rules_alone")
    for name in ("datasets", "spark", "rules", "contracts"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("rules.yaml", "rules/topic1.yml"):
        text = (ROOT / name).read_text()
        (folder / name).write_text(text.replace("topic: ", "topic: alone."))
    pair = sent_pair(broker.bootstrap)
    shared = {
        "root": folder,
        "dataset": "taxi",
        "topic": "taxi-rules-alone",
        "dlq_topic": "taxi-rules-alone-dlq",
        "bootstrap_servers": broker.bootstrap,
        "ops_store_url": f"sqlite:///{folder}/ops.db",
        "spark_master": "local[2]",
        "spark_driver_memory": "1g",
    }
    engine = Settings.model_validate({**shared, "home": lake_home})
    by_hand = Settings.model_validate({**shared, "home": folder / "by_hand"})
    by_hand.home.mkdir()
    planted = {name: fed(engine, name) for name in TABLES}
    with OpsStore.open(engine.ops_store_url) as store:
        for name in TABLES:
            kind = "quality" if name == "taxi" else "reconcile"
            Pipeline(name, engine, store, spark).process(kind)
    write_build(plan_build(by_hand, "taxi"))
    sources = sourced(by_hand, folder)
    # Each file is run twice: the second time must change nothing.
    output = run_spark_sql(by_hand, "\n".join([*sources, *sources, *questions()]), folder)
    return Alone(spark, engine, by_hand, planted, pair, by_view(output))


def questions() -> list[str]:
    """Queries that print what the views say, each line with its view's name."""
    asked = {"pair": "SELECT pk, dq_status FROM dq_hash_check"}
    for name in TABLES:
        asked |= {
            view: f"SELECT * FROM dq_{view}" for view in (f"results_{name}", f"metrics_{name}")
        }
        refused = (
            f"SELECT _reason_code AS reason_code, {PLACE} FROM {view}" for view in READ[name]
        )
        union = " UNION ALL ".join(refused)
        asked[f"letters_{name}"] = f"SELECT * FROM ({union}) WHERE reason_code IS NOT NULL"
    return [f"SELECT '{view}', to_json(struct(*)) FROM ({query});" for view, query in asked.items()]


def by_view(output: str) -> Mapping[str, Counter[str]]:
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for view, _, line in (text.partition("\t") for text in output.splitlines()):
        if line.startswith("{"):
            found[view][judged_part(line)] += 1
    return found


def judged_part(line: str) -> str:
    """A row as JSON, without what is of the run that made it."""
    row = {name: value for name, value in json.loads(line).items() if name not in OPERATIONAL}
    return json.dumps(row, sort_keys=True)


def sent_pair(bootstrap: str) -> dict[str, str]:
    """Messages on both topics of the pair, and the verdict on each key by the pure function."""
    states: defaultdict[str, list[State]] = defaultdict(list)
    for side, topic in PAIR.items():
        create_topic(bootstrap, topic, 2, 1_048_588)
        messages = random_messages(SEED, 120, 0.2)
        produce(bootstrap, topic, [m.sent for m in messages if m.side == side])
        for record in read_topic(bootstrap, topic):
            found = parse_state(side, record)
            if found is not None:
                states[found.pk].append(found)
    now = datetime.now(UTC)
    return {pk: judge(merge_all(parts), now, Limits()).status for pk, parts in states.items()}


def fed(settings: Settings, name: str) -> Planted:
    judged = open_rules(settings, name)
    feed = open_feed(settings, judged).value
    feeding = feeding_of(settings, feed, judged, order_of(feed, judged, ROWS, SEED, (), None))
    planted = feeding.planted()
    send(settings, judged.table, feeding, "both", planted)
    return planted


def sourced(settings: Settings, folder: Path) -> list[str]:
    """Every compiled file under its name, and a statement that runs it."""
    found: list[str] = []
    for path in rule_files(settings.root):
        for text in compiled_texts(settings, path):
            file = folder / f"{text.table}.sql"
            file.write_text(text.sql, encoding="utf-8")
            found.append(f"SOURCE {file};")
    return found


def engine_says(alone: Alone, query: str) -> Counter[str]:
    """Rows of the engine's tables and permanent views, in the form of those that were printed."""
    found = alone.spark.sql(f"SELECT to_json(struct(*)) AS line FROM ({query})").collect()
    return Counter(judged_part(row["line"]) for row in found)


@pytest.mark.parametrize("kind", ["results", "metrics"])
@pytest.mark.parametrize("name", TABLES)
def test_the_file_alone_says_what_the_engine_says(alone: Alone, name: str, kind: str) -> None:
    found = alone.printed[f"{kind}_{name}"]
    of_engine = engine_says(alone, f"SELECT * FROM spark_catalog.default.dq_{kind}_{name}")
    if kind == "results" or name == "taxi":
        assert found == of_engine
    else:
        # The engine has counted a key in the window in which it was settled.
        assert summed(found) == summed(of_engine)
    if kind == "results":
        assert found.total() == alone.planted[name].results > ROWS / 2


def summed(lines: Counter[str]) -> Counter[str]:
    """The sums of all counts over all windows."""
    total: Counter[str] = Counter()
    for line, n in lines.items():
        numbers = {k: v * n for k, v in json.loads(line).items() if isinstance(v, int)}
        total.update(numbers)
    return +total


@pytest.mark.parametrize("name", TABLES)
def test_the_file_alone_refuses_what_the_engine_refuses(alone: Alone, name: str) -> None:
    found = alone.printed[f"letters_{name}"]
    job = f"quality-{name}" if name == "taxi" else f"reconcile-{name}"
    # What a rule refuses stands among the results, as a dead letter.
    letters = (
        f"SELECT reason_code, {PLACE} FROM lake.headgate.dead_letters"
        f" WHERE job = '{job}' AND reason_code <> 'dq_no_time'"
    )
    assert found == engine_says(alone, letters)
    assert found.total() == alone.planted[name].refused > 0


def test_the_file_of_the_pair_alone_says_what_the_pure_function_says(alone: Alone) -> None:
    found = [json.loads(line) for line in alone.printed["pair"].elements()]
    assert {row["pk"]: row["dq_status"] for row in found} == alone.pair
    assert len(set(alone.pair.values())) > 5


@pytest.mark.parametrize("name", TABLES)
def test_the_statuses_are_those_that_were_planted(alone: Alone, name: str) -> None:
    rows = (json.loads(line) for line in alone.printed[f"results_{name}"].elements())
    found = Counter(row["dq_status"] for row in rows)
    assert found == {status: n for status, n in alone.planted[name].statuses.items() if n}


def test_the_files_make_no_table(alone: Alone) -> None:
    with Lake.open(alone.by_hand) as lake:
        tables = [f"dq.{kind}_{name}" for kind in ("results", "partials") for name in TABLES]
        assert [table for table in tables if lake.exists(table)] == []
