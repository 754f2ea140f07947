"""The generator without a broker: what is sent, what is refused, and what is said about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.core.kafka.arrow_json import from_numpy
from headgate.declarations.columns import Column
from headgate.declarations.errors import Declared
from headgate.declarations.types import parse_type
from headgate.errors import (
    DeclarationError,
    InterruptedByUserError,
    OperationError,
    SettingsError,
)
from headgate.pipeline.generator.parquet_to_kafka import Generated, Plan, Sending, generate
from headgate.pipeline.generator.source import ParquetSource, RowContract, envelope, require_fit
from headgate.pipeline.spec import Dataset

ROWS = 50
TYPES = {"Id": "BIGINT", "amount": "DOUBLE", "note": "STRING", "at": "STRING"}
SCHEMA = {
    "type": "object",
    "required": ["at"],
    "properties": {"at": {"type": "string"}, "amount": {"type": "number", "maximum": 47}},
}


class Memory:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.sent: dict[str, list[tuple[bytes, bytes | None]]] = {}
        self.flushes = 0

    def send(self, topic: str, values: list[bytes], keys: Iterable[bytes | None]) -> None:
        self.sent.setdefault(topic, []).extend(zip(values, keys, strict=True))

    def flush(self) -> None:
        self.flushes += 1


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 100.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Nobody:
    def begin(self, total: int) -> None:
        self.total = total

    def advance(self, rows: int) -> None:
        pass


def dataset(**types: str) -> Declared[Dataset]:
    columns = tuple(
        Column(name, parse_type(text), parse_type(text), name.lower(), parse_type(text))
        for name, text in (types or TYPES).items()
    )
    value = Dataset(
        name="d",
        topic="events",
        dlq_topic="events.dlq",
        bronze_table="b.t",
        silver_table="s.t",
        event_ts_col="at",
        ts_format="yyyy-MM-dd'T'HH:mm:ss",
        partition_date_col="p",
        partition_date_expr="e",
        columns=columns,
        dedup_key=("Id",),
        quality_filters=("x",),
        surrogate_key_fields=("Id",),
        key_field="Id",
    )
    return Declared(value, "dataset.yml", {"columns[0].name": 11, "columns": 10})


def write(file: Path, rows: int = ROWS, amount: float = 1.5) -> Path:
    none = np.zeros(rows, dtype=bool)
    counting: Any = np.arange(rows)
    amounts = counting.astype(np.float64)
    amounts[:1] = amount
    at = 1_704_069_167_000_000 + counting * 1_000_000
    columns = {
        "Id": from_numpy(counting, pa.int64(), none),
        "amount": from_numpy(amounts, pa.float64(), none),
        "note": from_numpy(np.full(rows, "x", dtype=object), pa.string(), ~none),
        "at": from_numpy(at, pa.timestamp("us"), none),
    }
    pq.write_table(pa.Table.from_arrays(list(columns.values()), names=list(columns)), file)
    return file


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(
        file=write(tmp_path / "events.parquet"),
        said="HOST_DATA_DIR=data and DATA_PATH=/data/events.parquet",
        dataset=dataset(),
        bootstrap="nowhere:1",
        broker="embedded",
        mode="burst",
        rate=20,
        max_events=0,
        schema_file=None,
        metrics_file=tmp_path / "metrics" / "generator.json",
    )


def send(plan: Plan, writer: Memory, clock: Clock | None = None, stop_after: int = 99) -> Generated:
    source = ParquetSource(plan.file, plan.said)
    contract = RowContract(plan.schema_file) if plan.schema_file else None
    clock = clock or Clock()
    asked = iter(range(10_000))
    sending = Sending(plan, source, contract, writer, clock.time, clock.sleep)
    return sending.run(Nobody(), lambda: next(asked) >= stop_after)


def with_schema(plan: Plan, schema: object = SCHEMA) -> Plan:
    file = plan.metrics_file.parent.with_name("schema.json")
    file.write_bytes(orjson.dumps(schema))
    return replace(plan, schema_file=file)


def test_every_row_is_sent_with_its_key_and_its_own_names(plan: Plan) -> None:
    writer = Memory()
    generated = send(plan, writer)
    first = b'{"Id":0,"amount":1.5,"note":null,"at":"2024-01-01T00:32:47"}'
    assert writer.sent["events"][0] == (first, b"0")
    assert [key for _, key in writer.sent["events"]] == [str(n).encode() for n in range(ROWS)]
    assert generated.summary() == f"Events produced: {ROWS} / Invalid (→ DLQ): 0"


def test_max_events_limits_the_rows(plan: Plan) -> None:
    writer = Memory()
    assert send(replace(plan, max_events=7), writer).events == len(writer.sent["events"]) == 7


def test_the_figures_are_left_in_the_metrics_file(plan: Plan) -> None:
    send(plan, Memory(), Clock())
    assert orjson.loads(plan.metrics_file.read_bytes()) == {
        "events": ROWS,
        "invalid": 0,
        "elapsed_seconds": 0.0,
        "events_per_second": 0.0,
        "mode": "burst",
        "broker": "embedded",
        "topic": "events",
        "schema_validation": False,
    }


def test_realtime_keeps_to_the_rate(plan: Plan) -> None:
    generated = send(replace(plan, mode="realtime", rate=20), Memory())
    assert generated.elapsed_seconds == pytest.approx(ROWS / 20)
    assert generated.events_per_second == 20


def test_batch_waits_for_each_batch_and_burst_only_for_the_last(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.pipeline.generator.parquet_to_kafka.BATCH_ROWS", 10)
    burst, batch = Memory(), Memory()
    send(plan, burst)
    send(replace(plan, mode="batch"), batch)
    assert burst.flushes == 1
    assert batch.flushes == ROWS // 10 + 1
    assert batch.sent == burst.sent


def test_rows_outside_the_schema_go_to_the_dead_letter_topic(plan: Plan) -> None:
    writer = Memory()
    generated = send(with_schema(plan), writer)
    letters = [orjson.loads(value) for value, _ in writer.sent["events.dlq"]]
    assert generated.events == len(writer.sent["events"]) == 48
    assert generated.invalid == len(letters) == 2
    assert set(letters[0]) == {"error", "row", "timestamp"}
    assert letters[0]["error"] == "amount: 48.0 is greater than the maximum of 47"
    assert letters[0]["row"]["Id"] == 48


def test_a_row_that_is_not_json_is_refused_too(plan: Plan) -> None:
    write(plan.file, amount=float("nan"))
    writer = Memory()
    send(with_schema(plan), writer)
    letter = orjson.loads(writer.sent["events.dlq"][0][0])
    assert letter["error"] == "not JSON: the token NaN"
    assert letter["row"]["amount"] == "NaN"


def test_the_envelope_is_json_even_around_broken_bytes() -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    assert orjson.loads(envelope("e", b'{"a":"\xff"', moment)) == {
        "error": "e",
        "row": '{"a":"\\xff"',
        "timestamp": "2024-01-01T00:00:00+00:00",
    }


def test_an_interruption_ends_between_batches_and_says_how_many_were_sent(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.pipeline.generator.parquet_to_kafka.BATCH_ROWS", 10)
    writer = Memory()
    with pytest.raises(InterruptedByUserError, match="after 20 of 50 rows"):
        send(plan, writer, stop_after=2)
    assert len(writer.sent["events"]) == 20
    assert writer.flushes == 1
    assert orjson.loads(plan.metrics_file.read_bytes())["events"] == 20


def test_a_missing_file_names_both_variables_and_what_is_there(plan: Plan) -> None:
    missing = replace(plan, file=plan.file.with_name("other.parquet"))
    with pytest.raises(SettingsError, match=r"other\.parquet") as caught:
        generate(missing, Nobody())
    assert "HOST_DATA_DIR=data and DATA_PATH=/data/events.parquet" in caught.value.why
    assert "events.parquet" in caught.value.fix


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PAR1" + b"\0" * 40 + b"PAR1"])
def test_what_is_no_parquet_file_is_refused(plan: Plan, content: bytes) -> None:
    plan.file.write_bytes(content)
    with pytest.raises(OperationError, match="is not a Parquet file"):
        generate(plan, Nobody())


def test_a_file_without_rows_is_refused(plan: Plan) -> None:
    write(plan.file, rows=0)
    with pytest.raises(OperationError, match="has no rows"):
        generate(plan, Nobody())


def test_column_names_are_case_sensitive_and_the_near_one_is_named(plan: Plan) -> None:
    schema = ParquetSource(plan.file, "").schema
    types = {"id": "BIGINT", "amount": "DOUBLE", "note": "STRING", "at": "STRING"}
    with pytest.raises(DeclarationError) as caught:
        require_fit(schema, dataset(**types))
    first, second = caught.value.faults
    assert (first.line, first.what) == (11, "the file has no column `id`")
    assert first.fix == "Did you mean `Id`?"
    assert (second.line, second.what) == (10, "the file's `Id` is not declared")
    assert second.fix.endswith("Did you mean `id`?")


def test_a_column_of_another_type_is_refused(plan: Plan) -> None:
    schema = ParquetSource(plan.file, "").schema
    types = {"Id": "DOUBLE", "amount": "INT", "note": "STRING", "at": "BIGINT"}
    with pytest.raises(DeclarationError) as caught:
        require_fit(schema, dataset(**types))
    assert [fault.what for fault in caught.value.faults] == [
        "`amount` is double in the file, not INT",
        "`at` is timestamp[us] in the file, not BIGINT",
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [(b"{", "not JSON"), (b'{"type": "nonsense"}', "not a JSON Schema"), (None, "cannot be read")],
)
def test_a_broken_schema_is_told_before_anything_is_sent(
    tmp_path: Path, text: bytes | None, what: str
) -> None:
    file = tmp_path / "schema.json"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(DeclarationError, match="not valid") as caught:
        RowContract(file)
    assert what in caught.value.why
