"""Silver is the same whether it is rebuilt or brought up to date, and says what it left out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from tests.integration.oracle import silver_of
from tests.integration.spark import Pipeline

from headgate.checks.lake import Lake
from headgate.compile.dataset import BRONZE_BATCH
from headgate.jobs.declaration import declared_revision
from headgate.jobs.silver import EmptyBronzeError

SEED = 5
CASES = 6
SCHEMA = (
    "id BIGINT, at TIMESTAMP_NTZ, seen TIMESTAMP, name STRING, amount DOUBLE,"
    " price DECIMAL(10, 2), flag BOOLEAN, n INT, day DATE, ingestion_ts TIMESTAMP,"
    " kafka_topic STRING, kafka_partition INT, kafka_offset BIGINT, kafka_timestamp TIMESTAMP"
)
MOMENT = datetime(2024, 1, 1, 12, tzinfo=UTC)
TIMES = (None, datetime(2024, 1, 1), datetime(2024, 1, 1, 10), datetime(2024, 2, 9, 8))
AMOUNTS = (None, 0.0, 1.0, 1.005, 2.675, 99_999_999.99, 99_999_999.995, 1e12, -1.0, -0.001)
IDS = (None, 1, 2, 3, 2**31 - 1, 2**31)

Row = dict[str, Any]


def random_row(rng: Random, offset: int) -> Row:
    """Few keys, so that most rows meet another; timestamps tie and run backwards."""
    return {
        **dict.fromkeys(("seen", "price", "flag", "n", "day")),
        "id": rng.choice(IDS),
        "at": rng.choice((*TIMES, datetime(2023, 12, 31, 23, 59, 59))),
        "name": f"row {offset}",
        "amount": rng.choice(AMOUNTS),
        "ingestion_ts": MOMENT,
        "kafka_topic": "played",
        "kafka_partition": rng.randrange(3),
        "kafka_offset": offset,
        "kafka_timestamp": MOMENT + timedelta(seconds=rng.randrange(4)),
    }


def make_bronze(pipeline: Pipeline) -> None:
    revision = declared_revision(pipeline.settings, pipeline.name)
    for statement in revision.script(BRONZE_BATCH, pipeline.settings).named("table"):
        pipeline.session.sql(statement)


def append(pipeline: Pipeline, rows: Sequence[Row]) -> None:
    """Bronze played by hand: only the commits matter here."""
    names = [column.split()[0] for column in SCHEMA.replace("(10, 2)", "").split(", ")]
    values = [tuple(row[name] for name in names) for row in rows]
    frame = pipeline.session.createDataFrame(values, SCHEMA)
    frame.writeTo(f"lake.bronze.{pipeline.name}").append()


@pytest.mark.parametrize("case", range(CASES))
def test_full_and_incremental_agree_on_random_rows(pipeline: Pipeline, case: int) -> None:
    seed = SEED * 1000 + case
    print(f"seed {seed}")
    rng = Random(seed)
    make_bronze(pipeline)
    rows = [random_row(rng, offset) for offset in range(rng.choice((40, 150)))]
    cuts = sorted(rng.randrange(len(rows) + 1) for _ in range(3))
    for start, end in zip((0, *cuts), (*cuts, len(rows)), strict=True):
        append(pipeline, rows[start:end])
        if rng.random() < 0.7 or end == len(rows):
            pipeline.process("silver")
    expected = silver_of(rows)
    brought_up = pipeline.silver()
    assert brought_up == expected.rows
    summed = pipeline.outcomes("silver")
    assert summed["kept"] == expected.rows.total()
    assert summed.get("duplicate", 0) + summed.get("replaced", 0) == expected.duplicates
    assert summed.get("filtered", 0) == expected.filtered

    pipeline.process("silver", form="full")
    assert pipeline.silver() == brought_up
    rebuilt = pipeline.ledger("silver")[-1]
    assert dict(rebuilt.outcomes) == {
        "kept": expected.rows.total(),
        "duplicate": expected.duplicates,
        "filtered": expected.filtered,
    }


def test_nothing_new_changes_nothing_and_another_filter_rebuilds(pipeline: Pipeline) -> None:
    make_bronze(pipeline)
    rng = Random(1)
    rows = [random_row(rng, offset) for offset in range(30)]
    append(pipeline, rows)
    pipeline.process("silver")
    pipeline.process("silver")
    assert len(pipeline.ledger("silver")) == 1
    pipeline.declare(filters='["amount > 1"]')
    pipeline.process("silver")
    assert {row[3] > 1 for row in pipeline.silver()} == {True}
    assert len(pipeline.ledger("silver")) == 2


def test_duckdb_and_spark_count_the_same(pipeline: Pipeline) -> None:
    make_bronze(pipeline)
    rng = Random(2)
    append(pipeline, [random_row(rng, offset) for offset in range(50)])
    pipeline.process("silver")
    append(pipeline, [random_row(rng, offset) for offset in range(50, 100)])
    pipeline.process("silver")
    with Lake.open(pipeline.settings) as lake:
        for table in (f"bronze.{pipeline.name}", f"silver.{pipeline.name}"):
            assert lake.count(table) == pipeline.session.table(f"lake.{table}").count() > 0


def test_silver_without_bronze_says_what_to_run_first(pipeline: Pipeline) -> None:
    with pytest.raises(EmptyBronzeError, match="has no rows yet"):
        pipeline.process("silver")
