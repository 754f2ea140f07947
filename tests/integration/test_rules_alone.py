"""The files of the shipped rule sets run by hand in plain `spark-sql`, and say what the engine says."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.oracle import read_topic
from tests.support.pipeline import Pipeline, create_topic, produce
from tests.support.reconcile_job import parse_state, random_messages
from tests.support.spark_sql import run_spark_sql

from headgate.checks.lake import Lake
from headgate.cli.feed_rules import feeding_of, open_feed, open_rules, order_of, send
from headgate.cli.rules_compile import compiled_texts
from headgate.compile.reconcile.limits import Limits
from headgate.compile.reconcile.state import Side, State, merge_all
from headgate.compile.reconcile.verdict import judge
from headgate.feeds.rules.planted import Planted
from headgate.jobs.build import plan_build, write_build
from headgate.settings import Settings
from headgate.spec.rules_loader import rule_files
from headgate.store.ops import OpsStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.support.services import RunningBroker

# A second JVM and three jobs: a minute on a quiet machine.
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
TABLES = ("customer", "orders", "taxi")
PAIR: dict[Side, str] = {"onprem": "alone.topic1", "cloud": "alone.topic2"}
SEED, ROWS = 11, 400
# When it was said, under which name, how sketches are laid out, and sums that depend on the order.
OPERATIONAL = {
    "results": "revision, processing_time",
    "partials": "revision, range, batch_time, late, sketch, total",
}
LETTERS = "reason_code, reason, kafka_topic, kafka_partition, kafka_offset, kafka_key, kafka_value"


@dataclass(frozen=True)
class Alone:
    """The engine's lake, and the one that `spark-sql` made from the same topics."""

    engine: Settings
    by_hand: Settings
    planted: dict[str, Planted]
    # Of the reconciled pair: what must be said of its keys, and what `spark-sql` printed.
    pair: dict[str, str]
    told: str


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
            Pipeline(name, engine, store, spark).process("quality")
    write_build(plan_build(by_hand, "taxi"))
    said = "SELECT 'pair', pk, dq_status FROM dq_hash_check;"
    told = run_spark_sql(by_hand, "\n".join([*sourced(by_hand, folder), said]), folder)
    return Alone(engine, by_hand, planted, pair, told)


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


def rows(settings: Settings, table: str, operational: str) -> Counter[object]:
    with Lake.open(settings) as lake:
        scan = lake.scan_sql(table)
        sql = f"SELECT CAST(r AS VARCHAR) FROM (SELECT * EXCLUDE ({operational}) FROM {scan}) AS r"
        return Counter(row[0] for row in lake.query(sql))


def letters(settings: Settings, name: str) -> Counter[object]:
    with Lake.open(settings) as lake:
        scan = lake.scan_sql("headgate.dead_letters")
        return Counter(lake.query(f"SELECT {LETTERS} FROM {scan} WHERE job = 'quality-{name}'"))


@pytest.mark.parametrize("kind", OPERATIONAL)
@pytest.mark.parametrize("name", TABLES)
def test_the_file_alone_says_what_the_engine_says(alone: Alone, name: str, kind: str) -> None:
    found = rows(alone.by_hand, f"dq.{kind}_{name}", OPERATIONAL[kind])
    assert found == rows(alone.engine, f"dq.{kind}_{name}", OPERATIONAL[kind])
    if kind == "results":
        assert found.total() == alone.planted[name].results > ROWS / 2


@pytest.mark.parametrize("name", TABLES)
def test_the_file_alone_refuses_what_the_engine_refuses(alone: Alone, name: str) -> None:
    found = letters(alone.by_hand, name)
    assert found == letters(alone.engine, name)
    planted = alone.planted[name]
    assert found.total() == planted.refused + planted.dead_letters > 0


def test_the_file_of_the_pair_alone_says_what_the_pure_function_says(alone: Alone) -> None:
    with Lake.open(alone.by_hand) as lake:
        scan = lake.scan_sql("dq.results_business")
        found = {str(row[0]): row[1] for row in lake.query(f"SELECT pk, dq_status FROM {scan}")}
    assert found == alone.pair
    assert len(set(found.values())) > 5
    printed = [line.split("\t") for line in alone.told.splitlines()]
    assert {row[1]: row[2] for row in printed if row[0] == "pair"} == alone.pair


@pytest.mark.parametrize("name", TABLES)
def test_the_statuses_are_those_that_were_planted(alone: Alone, name: str) -> None:
    with Lake.open(alone.by_hand) as lake:
        scan = lake.scan_sql(f"dq.results_{name}")
        counted = lake.query(f"SELECT dq_status, count(*) FROM {scan} GROUP BY ALL")
    found = {row[0]: row[1] for row in counted}
    assert found == {status: n for status, n in alone.planted[name].statuses.items() if n}
