"""Silver is the same whether it is rebuilt or brought up to date, and says what it left out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date
from random import Random
from typing import Any

import pytest
from tests.support.bronze_table import (
    Row,
    append_rows,
    create_bronze_table,
    random_row,
    stream_silver,
    valid_row,
)
from tests.support.oracle import ExpectedSilver, expected_silver, surrogate_key
from tests.support.pipeline import Pipeline
from tests.support.run_requests import REBUILD_SILVER, request_backfill

from headgate.core.lake.duckdb_reader import Lake
from headgate.core.sql.script import PLACEHOLDERS
from headgate.pipeline.compile import silver
from headgate.pipeline.loader import load_checked
from headgate.pipeline.silver import EmptyBronzeError

SEED = 5
MANY_DATES = 100  # `test_silver_takes_a_file_of_many_dates` has 20,000
DAYS = tuple(date(*day) for day in ((2023, 12, 31), (2024, 1, 1), (2024, 1, 20), (2024, 2, 9)))


@dataclass(frozen=True)
class Case:
    """A way to make silver of random rows in random pieces, with backfills in between."""

    seed: int
    as_stream: bool
    key: tuple[str, ...]


def case(number: int) -> Case:
    return Case(SEED * 1000 + number, number % 2 == 1, (("id", "at"), ("id",))[number // 2 % 2])


@pytest.mark.parametrize("number", [1, 2])
def test_silver_is_the_same_however_it_is_made(pipeline: Pipeline, number: int) -> None:
    expected = played(pipeline, case(number), pieces=4)
    assert pipeline.silver() == expected.rows
    check_accounts(pipeline, expected)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, *range(3, 24)])
def test_silver_is_the_same_however_it_is_made_at_length(pipeline: Pipeline, number: int) -> None:
    expected = played(pipeline, case(number), pieces=10)
    assert pipeline.silver() == expected.rows
    check_accounts(pipeline, expected)


def played(pipeline: Pipeline, case: Case, pieces: int) -> ExpectedSilver:
    """Silver brought up piece by piece, with backfills in between; what it must be."""
    print(case)
    rng = Random(case.seed)
    pipeline.declare(key=f"[{', '.join(case.key)}]")
    create_bronze_table(pipeline)
    rows = [random_row(rng, offset) for offset in range(rng.choice((40, 150)))]
    with stream_silver(pipeline) if case.as_stream else nullcontext():
        for piece in cut(rng, rows, pieces):
            append_rows(pipeline, piece)
            if not case.as_stream and rng.random() < 0.7:
                pipeline.process("silver")
            if pipeline.ledger("silver") and rng.random() < 0.5:
                backfill(pipeline, rng)
    if not case.as_stream:
        pipeline.process("silver")
    return expected_silver(rows, case.key)


def check_accounts(pipeline: Pipeline, expected: ExpectedSilver) -> None:
    """The ledger adds up, two readers count the same, and a rebuild gives the same rows."""
    check_ledger(pipeline, expected)
    with Lake.open(pipeline.settings) as lake:
        for table in (f"bronze.{pipeline.name}", f"silver.{pipeline.name}"):
            assert lake.count(table) == pipeline.session.table(f"lake.{table}").count() > 0
    pipeline.process("silver", request=REBUILD_SILVER)
    assert pipeline.silver() == expected.rows
    rebuilt = pipeline.ledger("silver")[-1]
    assert dict(rebuilt.outcomes) == {
        "kept": expected.rows.total(),
        "duplicate": expected.duplicates,
        "filtered": expected.filtered,
    }


def cut(rng: Random, rows: list[Row], pieces: int) -> Iterator[list[Row]]:
    cuts = sorted(rng.randrange(len(rows) + 1) for _ in range(pieces - 1))
    for start, end in zip((0, *cuts), (*cuts, len(rows)), strict=True):
        yield rows[start:end]


def backfill(pipeline: Pipeline, rng: Random) -> None:
    first, last = sorted(rng.choices(DAYS, k=2))
    pipeline.process("backfill", request=request_backfill(str(first), str(last)))


def check_ledger(pipeline: Pipeline, expected: ExpectedSilver) -> None:
    """What the certificate says of silver, here against the oracle."""
    summed = Counter(pipeline.outcomes("silver"))
    net = sum(row.net for row in pipeline.ledger("backfill"))
    assert summed["kept"] + net == expected.rows.total()
    others = summed["duplicate"] + summed["replaced"] + summed["backfilled"]
    assert others - net == expected.duplicates
    assert summed["filtered"] == expected.filtered
    assert summed.total() == len(rows_of(pipeline))


def rows_of(pipeline: Pipeline) -> list[tuple[Any, ...]]:
    return pipeline.select("kafka_offset", f"bronze.{pipeline.name}")


def test_nothing_new_changes_nothing_and_another_filter_rebuilds(pipeline: Pipeline) -> None:
    create_bronze_table(pipeline)
    rng = Random(1)
    rows = [random_row(rng, offset) for offset in range(30)]
    append_rows(pipeline, rows)
    pipeline.process("silver")
    pipeline.process("silver")
    assert len(pipeline.ledger("silver")) == 1
    pipeline.declare(filters='["amount > 1"]')
    rebuilt = pipeline.process("silver")
    assert rebuilt.progress.words.endswith("; rebuilt: the declaration has changed")
    assert {row[3] > 1 for row in pipeline.silver()} == {True}
    assert len(pipeline.ledger("silver")) == 2


def test_a_stream_waits_for_bronze_and_keeps_the_revision_it_was_started_with(
    pipeline: Pipeline,
) -> None:
    create_bronze_table(pipeline)
    rows = [valid_row(n, 1) for n in range(8)]
    with stream_silver(pipeline):
        append_rows(pipeline, rows[:4])
        pipeline.declare(filters='["amount > 1"]')
        append_rows(pipeline, rows[4:])
    assert pipeline.silver() == expected_silver(rows).rows
    assert len({row.revisions for row in pipeline.ledger("silver")}) == 1
    pipeline.process("silver")
    assert pipeline.silver().total() == 0


def test_silver_without_bronze_says_what_to_run_first(pipeline: Pipeline) -> None:
    with pytest.raises(EmptyBronzeError, match="has no rows yet"):
        pipeline.process("silver")


TEXTS = (None, "", "-", "x", "a|b", "a", "b|c", "c", "1:x", "0:", "\u00e9", "e\u0301", "\U0001f600")


def test_no_two_keys_share_a_surrogate_key(pipeline: Pipeline) -> None:
    """The document's own form, nulls empty and joined by a bar, gave (NULL, 'x') and ('', 'x') one key."""
    dataset = load_checked(
        pipeline.settings.root / "datasets" / pipeline.name / "dataset.yml", PLACEHOLDERS
    ).value
    texts = replace(dataset, surrogate_key_fields=("name", "name", "n"))
    key = silver.surrogate_key(texts)
    for column in ("left", "right") * 2:
        key = key.replace("name", column, 1)
    pairs = [(left, right, n) for left in TEXTS for right in TEXTS for n in (None, 0, 10)]
    frame = pipeline.session.createDataFrame(pairs, "left STRING, right STRING, n INT")
    frame.createOrReplaceTempView("keyed")
    rows = pipeline.session.sql(f"SELECT left, right, n, {key} AS key FROM keyed").collect()
    assert [row["key"] for row in rows] == [surrogate_key(*pair) for pair in pairs]
    assert len({row["key"] for row in rows}) == len(pairs)


def test_silver_has_one_open_file_where_rows_are_of_many_dates(pipeline: Pipeline) -> None:
    """Also a table that was made before its properties were known; with a fanout 1,461 dates filled 2 GB."""
    pipeline.declare(filters='["id > 0"]')
    create_bronze_table(pipeline)
    append_days(pipeline, 1, 10, MANY_DATES)
    pipeline.process("silver")
    table = f"lake.silver.{pipeline.name}"
    keys = (
        "'write.spark.fanout.enabled', 'write.distribution-mode', 'write.merge.distribution-mode'"
    )
    pipeline.session.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ({keys})")
    append_days(pipeline, 11, MANY_DATES, MANY_DATES)
    pipeline.process("silver", request=REBUILD_SILVER)
    found = pipeline.session.sql(f"SHOW TBLPROPERTIES {table}").collect()
    properties = {row["key"]: row["value"] for row in found}
    assert properties.items() >= silver.CLUSTERED_WRITES.items()
    assert pipeline.session.sql(f"SELECT * FROM {table}.files").count() == MANY_DATES


@pytest.mark.slow
@pytest.mark.parametrize("days", [5_000, 20_000])
def test_silver_takes_a_file_of_many_dates(pipeline: Pipeline, days: int) -> None:
    """A rebuild over all dates, an append and a merge over some: one file for each date and commit."""
    some = 500
    pipeline.declare(filters='["id > 0"]')
    create_bronze_table(pipeline)
    for first, rows in ((1, days), (days + 1, some), (1, some)):
        append_days(pipeline, first, rows, days)
        began = time.monotonic()
        pipeline.process("silver")
        print(f"{rows} of {days} dates: {time.monotonic() - began:.1f} s")
    table = f"lake.silver.{pipeline.name}"
    assert pipeline.outcomes("silver") == {"kept": days + some, "replaced": some}
    assert pipeline.session.table(table).count() == days + some
    files = pipeline.session.sql(f"SELECT count(*), count(DISTINCT partition) FROM {table}.files")
    assert tuple(files.collect()[0]) == (days + some, days)


def append_days(pipeline: Pipeline, first: int, rows: int, days: int) -> None:
    """Bronze rows in no order of time, over so many days."""
    pipeline.session.sql(
        f"""INSERT INTO lake.bronze.{pipeline.name} BY NAME
        SELECT id, timestamp_ntz '1960-01-01 08:00:00'
            + make_interval(0, 0, 0, cast((id * 7919) % {days} AS INT)) AS at,
          'row' AS name, 1.0D AS amount, 'played' AS kafka_topic, 0 AS kafka_partition,
          unix_micros(current_timestamp()) + id AS kafka_offset,
          current_timestamp() AS kafka_timestamp, current_timestamp() AS ingestion_ts
        FROM range({first}, {first + rows})"""
    )
