"""Odd Parquet files from draft to certificate: what the file holds is what bronze and silver hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support import parquet_files as odd
from tests.support.nycflights import write_nycflights_table
from tests.support.pipeline import Pipeline

from headgate.core.profiler.draft import Wishes, draw_up
from headgate.pipeline.draft import draft_text
from headgate.pipeline.generator.parquet_to_kafka import Generated, Plan, generate
from headgate.pipeline.loader import load_dataset
from headgate.pipeline.spec import Dataset

NewPipeline = Callable[..., Pipeline]
ROWS = 60


class Nobody:
    def begin(self, total: int) -> None: ...

    def advance(self, rows: int) -> None: ...


def declare(pipeline: Pipeline, file: Path) -> Dataset:
    """The draft as it is written, on the pipeline's own topics."""
    draft = draw_up(Wishes(pipeline.name, file))
    text = draft_text(draft)
    for drafted, own in ((".events.dlq", "-dlq"), (".events", "")):
        text = text.replace(f'"{pipeline.name}{drafted}"', f"{pipeline.name}{own}")
    manifest = pipeline.settings.root / "datasets" / pipeline.name / "dataset.yml"
    manifest.write_text(text)
    return load_dataset(manifest, {}).value


def send(pipeline: Pipeline, file: Path) -> Generated:
    manifest = pipeline.settings.root / "datasets" / pipeline.name / "dataset.yml"
    plan = Plan(
        file=file,
        said="--file",
        dataset=load_dataset(manifest, {}),
        bootstrap=str(pipeline.settings.bootstrap_servers),
        broker="embedded",
        mode="burst",
        rate=1,
        max_events=0,
        schema_file=None,
        metrics_file=file.with_suffix(".json"),
    )
    return generate(plan, Nobody())


def through(pipeline: Pipeline, columns: dict[str, pa.Array], tmp_path: Path) -> Dataset:
    """From the file to silver."""
    file = odd.write_parquet(tmp_path / "events.parquet", columns)
    dataset = declare(pipeline, file)
    assert send(pipeline, file).events == len(columns["id"])
    pipeline.process("bronze")
    pipeline.process("silver")
    return dataset


def stored(value: Any) -> Any:
    """A value of the file as tables hold it."""
    match value:
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        case time():
            return value.isoformat()
        case Decimal() if abs(value) >= 10**38:
            return str(value)
        case _:
            return value


def rows_of(file: Path) -> list[dict[str, Any]]:
    table = pq.read_table(file)
    for at, kind in enumerate(table.schema.types):
        if pa.types.is_duration(kind):
            table = table.set_column(at, table.schema.names[at], table.column(at).cast(pa.int64()))
    return table.to_pylist(maps_as_pydicts="strict")


def read(value: Any, *, nested: bool) -> Any:
    if nested:
        return None if value is None else json.loads(value)
    return stored(value) if isinstance(value, datetime) else value


def assert_equal_to_file(pipeline: Pipeline, dataset: Dataset, file: Path) -> None:
    """Bronze and silver hold every value of the file, under their own names."""
    nested = [c.kafka_type.name == "JSON" for c in dataset.columns]
    expected = {
        row["id"]: [row[c.name] if n else stored(row[c.name]) for c, n in zip(dataset.columns, nested, strict=True)]
        for row in rows_of(file)
    }  # fmt: skip
    at = [c.name for c in dataset.columns].index("id")
    for table, names in (
        (dataset.bronze_table, [c.name for c in dataset.columns]),
        (dataset.silver_table, [c.silver_name for c in dataset.columns]),
    ):
        found = pipeline.select(", ".join(f'"{name}"' for name in names), table)
        assert len(found) == len(expected)
        for row in found:
            values = [read(v, nested=n) for v, n in zip(row, nested, strict=True)]
            assert values == expected[row[at]]


def test_every_type_and_odd_names_reach_silver_unchanged(
    new_pipeline: NewPipeline, tmp_path: Path
) -> None:
    pipeline = new_pipeline()
    dataset = through(pipeline, odd.every_kind(ROWS) | odd.odd_names(ROWS), tmp_path)
    assert pipeline.outcomes() == {"accepted": ROWS}
    assert_equal_to_file(pipeline, dataset, tmp_path / "events.parquet")
    assert pipeline.certify().holds


def test_events_without_a_time_are_kept_under_the_day_of_their_record(
    new_pipeline: NewPipeline, tmp_path: Path
) -> None:
    pipeline = new_pipeline()
    ratio = pa.array([0.5, float("nan"), float("inf"), None], pa.float64())
    dataset = through(pipeline, {"id": odd.integers(4), "ratio": ratio}, tmp_path)
    assert dataset.event_ts_col == "kafka_timestamp"
    assert pipeline.outcomes() == {"accepted": 2, "refused": 2}
    days = pipeline.select("received_date, kafka_timestamp", dataset.silver_table)
    assert {day for day, _ in days} == {at.astimezone(UTC).date() for _, at in days}
    assert pipeline.certify().holds


def test_times_that_are_text_are_times_in_silver(new_pipeline: NewPipeline, tmp_path: Path) -> None:
    pipeline = new_pipeline()
    columns = {
        "id": odd.integers(4),
        "day": pa.array(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]),
        "seen": pa.array(["2024-01-01 08:00", "2024-01-01T08:00:01.5", "2024-01-01 08:00:02", None]),
        "sent": pa.array(["2024-01-01T08:00:00Z", "2024-01-01T08:00:00+02:00", None, "2024-01-01T08:00:00.25-03:30"]),
        "fine": pa.array([1, 2_000, 3_000_000, None], pa.timestamp("ns")),
    }  # fmt: skip
    dataset = through(pipeline, columns, tmp_path)
    assert pipeline.outcomes() == {"accepted": 4}
    found = sorted(pipeline.select("id, day, seen, sent, fine", dataset.silver_table))
    utc = [None if row[3] is None else row[3].astimezone(UTC) for row in found]
    assert [row[1] for row in found] == [date(2024, 1, n) for n in (1, 2, 3, 4)]
    assert [row[2] for row in found] == [
        datetime(2024, 1, 1, 8),
        datetime(2024, 1, 1, 8, 0, 1, 500_000),
        datetime(2024, 1, 1, 8, 0, 2),
        None,
    ]
    assert utc == [
        datetime(2024, 1, 1, 8, tzinfo=UTC),
        datetime(2024, 1, 1, 6, tzinfo=UTC),
        None,
        datetime(2024, 1, 1, 11, 30, 0, 250_000, tzinfo=UTC),
    ]
    assert found[0][4] == "1970-01-01T00:00:00.000000001"


@pytest.mark.slow
def test_a_date_can_be_the_event_time(new_pipeline: NewPipeline, tmp_path: Path) -> None:
    pipeline = new_pipeline()
    days = pa.array([date(2024, 1, 1), date(2024, 2, 29), None], pa.date32())
    dataset = through(pipeline, {"id": odd.integers(3), "day": days}, tmp_path)
    assert dataset.event_ts_col == "day"
    assert pipeline.outcomes("silver") == {"kept": 2, "filtered": 1}
    found = pipeline.select("day, event_date", dataset.silver_table)
    assert sorted(found) == [(d, d) for d in (date(2024, 1, 1), date(2024, 2, 29))]


@pytest.mark.slow
def test_three_hundred_columns_reach_silver(new_pipeline: NewPipeline, tmp_path: Path) -> None:
    pipeline = new_pipeline()
    dataset = through(pipeline, odd.wide(300, 2_000), tmp_path)
    assert pipeline.outcomes() == {"accepted": 2_000}
    assert_equal_to_file(pipeline, dataset, tmp_path / "events.parquet")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows"), [("weather", 26_115), ("flights", 336_776)])
def test_real_tables_reach_silver_whole(
    new_pipeline: NewPipeline, tmp_path: Path, name: str, rows: int
) -> None:
    pipeline = new_pipeline()
    file = write_nycflights_table(name, tmp_path / f"{name}.parquet")
    dataset = declare(pipeline, file)
    assert send(pipeline, file).events == rows
    pipeline.process("bronze")
    pipeline.process("silver")
    assert pipeline.outcomes() == {"accepted": rows}
    assert pipeline.outcomes("silver") == {"kept": rows}
    days = "CAST(time_hour AT TIME ZONE 'UTC' AS DATE) = event_date"
    assert len(pipeline.select("1", dataset.silver_table, days)) == rows
    assert pipeline.certify().holds


def test_flights_are_known_by_carrier_number_and_hour(tmp_path: Path) -> None:
    file = write_nycflights_table("flights", tmp_path / "flights.parquet")
    draft = draw_up(Wishes("flights", file))
    assert draft.event_time == "time_hour"
    assert (draft.key.columns, draft.key.sharing) == (("carrier", "flight", "time_hour"), 0)
    assert draft.key_field == "flight"
    assert draft.profile.column("dep_time").nulls == 8_255
    assert draft.profile.column("tailnum").distinct == 4_043
