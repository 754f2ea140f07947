"""The shipped files run by hand in plain `spark-sql`, on tables of their own, and give the same rows."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.support.pipeline import MORNING, SECOND, Pipeline, ProducerRecord, create_topic
from tests.support.spark_sql import run_spark_sql

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake
from headgate.core.ledger.ops_store import OpsStore
from headgate.pipeline.build import plan_build, write_build
from headgate.pipeline.generator.declaration import load_sample
from headgate.pipeline.generator.sample import write_sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.support.services import RunningBroker

# The first test waits for two datasets on Spark, and for a second JVM.
pytestmark = pytest.mark.timeout(1200)
ROOT = Path(__file__).parents[3]
TOPIC = "taxi-alone"
# Not the rows themselves: the time of the batch, and the revision as the engine keeps it.
OPERATIONAL = {"headgate.dead_letters": "refused_at, revision"}
ORDERS_TOPIC = "orders.raw_orders"  # its manifest names it
TABLES = (
    "bronze.raw_trips",
    "silver.cleaned_trips",
    "bronze.raw_orders",
    "silver.cleaned_orders",
    "headgate.dead_letters",
)
# Silver is made in each way: merged into nothing, rebuilt, and merged where rows are missing or old.
BY_HAND = """
SOURCE {sql}/taxi/05_bronze_batch.sql;
SOURCE {sql}/taxi/06_silver_incremental.sql;
CREATE NAMESPACE lake.seen;
CREATE TABLE lake.seen.merged_into_nothing AS SELECT * FROM lake.silver.cleaned_trips;
SOURCE {sql}/taxi/06_silver.sql;
CREATE TABLE lake.seen.rebuilt AS SELECT * FROM lake.silver.cleaned_trips;
DELETE FROM lake.silver.cleaned_trips WHERE pickup_location_id % 3 = 0;
UPDATE lake.silver.cleaned_trips
SET kafka_timestamp = TIMESTAMP '2020-01-01 00:00:00Z', tip_amount = -1
WHERE pickup_location_id % 3 = 1;
SOURCE {sql}/taxi/06_silver_incremental.sql;
SOURCE {sql}/orders/07_bronze_streaming.sql;
SOURCE {sql}/orders/06_silver.sql;
DELETE FROM lake.silver.cleaned_orders WHERE kafka_offset % 3 = 0;
SOURCE {sql}/orders/06_silver_backfill.sql;
SOURCE {sql}/00_catalog.sql;
"""
SAMPLE, DAYS = 7_000, {1, 2, 14, 16}
BAD = (b"not JSON", b"", b'{"VendorID": "x"}', b'{"VendorID": 1} ', b"[1]", b"\xff", b"{}{}", b"{")


@dataclass(frozen=True)
class Alone:
    """The engine's lake, and the one that `spark-sql` made from the same topic."""

    engine: Settings
    by_hand: Settings
    said: str


def values(folder: Path, dataset: str, time: str) -> list[bytes]:
    """Sample rows as JSON, the planted duplicates, bad and filtered ones among them.

    Of few days, since silver writes a file for each day that a statement touches.
    """
    file = folder / "sample.parquet"
    write_sample(load_sample(ROOT / f"datasets/{dataset}/sample.yml").value, file, SAMPLE)
    return [
        json.dumps(row, default=datetime.isoformat, separators=(",", ":")).encode()
        for row in pq.read_table(file).to_pylist()
        if row[time] is None or row[time].day in DAYS
    ]


@pytest.fixture(scope="module")
def alone(
    spark: SparkSession,
    broker: RunningBroker,
    lake_home: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Alone:
    folder = tmp_path_factory.mktemp("alone")
    for name in ("datasets", "spark"):
        shutil.copytree(ROOT / name, folder / name)
    create_topic(broker.bootstrap, TOPIC, 3, 1_048_588)
    create_topic(broker.bootstrap, f"{TOPIC}-dlq", 1, 1_048_588)
    create_topic(broker.bootstrap, ORDERS_TOPIC, 3, 1_048_588)
    create_topic(broker.bootstrap, f"{ORDERS_TOPIC}.dlq", 1, 1_048_588)
    shared = {
        "root": folder,
        "dataset": "taxi",
        "topic": TOPIC,
        "dlq_topic": f"{TOPIC}-dlq",
        "bootstrap_servers": broker.bootstrap,
        "ops_store_url": f"sqlite:///{folder}/ops.db",
        "spark_master": "local[2]",
        "spark_driver_memory": "1g",
    }
    engine = Settings.model_validate({**shared, "home": lake_home})
    by_hand = Settings.model_validate({**shared, "home": folder / "by_hand"})
    by_hand.home.mkdir()
    with OpsStore.open(engine.ops_store_url) as store:
        process_twice(
            Pipeline("taxi", engine, store, spark), values(folder, "taxi", "tpep_pickup_datetime")
        )
        other = {"dataset": "orders", "topic": ORDERS_TOPIC, "dlq_topic": f"{ORDERS_TOPIC}.dlq"}
        orders = Settings.model_validate({**shared, **other, "home": lake_home})
        process_once(
            Pipeline("orders", orders, store, spark), values(folder, "orders", "created_at")
        )
    write_build(plan_build(by_hand, "taxi"))
    write_build(plan_build(by_hand, "orders"))
    said = run_spark_sql(by_hand, BY_HAND.format(sql=by_hand.build_dir / "sql"), folder)
    return Alone(engine, by_hand, said)


def process_twice(pipeline: Pipeline, rows: list[bytes]) -> None:
    """Two batches, the second with newer and older versions of rows of the first."""
    first = [
        ProducerRecord(value, b"k", timestamp=MORNING + n) for n, value in enumerate(rows[:600])
    ]
    pipeline.produce(
        [*first, *(ProducerRecord(value) for value in BAD), ProducerRecord(None, b"gone")]
    )
    pipeline.process("bronze")
    pipeline.process("silver")
    newer = [ProducerRecord(value, timestamp=MORNING + 60 * SECOND) for value in rows[:80]]
    older = [ProducerRecord(value, timestamp=MORNING - 60 * SECOND) for value in rows[80:120]]
    pipeline.produce([*(ProducerRecord(value) for value in rows[600:]), *newer, *older])
    pipeline.process("bronze")
    pipeline.process("silver")


def process_once(pipeline: Pipeline, rows: list[bytes]) -> None:
    # Of a field that is not declared the engine makes a column, the file alone does not.
    bad = [value.replace(b"VendorID", b"customer_id") for value in BAD]
    pipeline.produce(
        [ProducerRecord(value, timestamp=MORNING + n) for n, value in enumerate([*rows, *bad])]
    )
    pipeline.process("bronze")
    pipeline.process("silver")


def rows(settings: Settings, table: str, operational: str = "ingestion_ts") -> Counter[object]:
    with Lake.open(settings) as lake:
        scan = lake.scan_sql(table)
        if table == "headgate.dead_letters":  # other tests' letters stand in it too
            scan += " WHERE job IN ('bronze-taxi', 'bronze-orders')"
        sql = f"SELECT CAST(r AS VARCHAR) FROM (SELECT * EXCLUDE ({operational}) FROM {scan}) AS r"
        return Counter(row[0] for row in lake.query(sql))


@pytest.mark.parametrize("table", TABLES)
def test_the_files_give_the_rows_that_the_engine_gives(alone: Alone, table: str) -> None:
    operational = OPERATIONAL.get(table, "ingestion_ts")
    found = rows(alone.by_hand, table, operational)
    assert found.total() >= 7
    assert found == rows(alone.engine, table, operational)


@pytest.mark.parametrize("form", ["merged_into_nothing", "rebuilt"])
def test_every_form_of_silver_gives_the_same_rows(alone: Alone, form: str) -> None:
    assert rows(alone.by_hand, f"seen.{form}") == rows(alone.engine, "silver.cleaned_trips")


def test_the_catalog_file_shows_the_lakes_namespaces(alone: Alone) -> None:
    assert {"bronze", "headgate", "silver"} <= set(alone.said.split())


def test_nothing_is_left_where_it_was_run(alone: Alone) -> None:
    left = {path.name for path in alone.by_hand.root.iterdir()}
    assert not left & {"metastore_db", "derby.log", "spark-warehouse"}
