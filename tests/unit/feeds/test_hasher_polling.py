"""Scans and lookups over rows that no calendar or contract has a place for: each is one dead letter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from headgate.errors import OperationError, RowRefusedError
from headgate.feeds.cassandra import Cassandra, Column, Place, TableShape, failure_of
from headgate.feeds.cassandra_rows import RowForm, RowReader
from headgate.feeds.cassandra_values import LAST, micros, plain, row_json
from headgate.feeds.hasher.asked import EventForm, Record
from headgate.feeds.hasher.counts import Counts
from headgate.feeds.hasher.plan import Given, HasherPlan
from headgate.feeds.hasher.polling import Poller
from headgate.feeds.hasher.publisher import Letter, Publisher
from headgate.feeds.hasher.reading import CloudForm
from headgate.feeds.hasher.table import HashedTable
from headgate.feeds.repair.cassandra import timestamp
from headgate.feeds.repair.model import Item
from headgate.feeds.rows.model import WholeRow

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
NANOSECONDS = 1_772_366_400_000_000_000
MICROSECONDS = NANOSECONDS // 1_000
MILLISECONDS = MICROSECONDS // 1_000
Answer = tuple[object, ...]


def shape(value: str = "text") -> TableShape:
    return TableShape(
        "ks",
        "t",
        {
            "pk": Column("pk", "text", "partition_key", 0),
            "col1": Column("col1", value, "regular", -1),
            "last_updated": Column("last_updated", "timestamp", "regular", -1),
        },
    )


@dataclass
class Rows:
    """Stands for a cluster with one table: all its rows are in the first range."""

    answers: Sequence[Answer]
    place: Place = field(default_factory=lambda: Place(("127.0.0.1",), 1))
    session: object = None

    def shape(self, _table: str) -> TableShape:
        return shape()

    def prepare(self, cql: str) -> str:
        return cql

    def stream(self, _cql: str, values: Sequence[object]) -> Iterator[dict[str, object]]:
        first = values[0] == -(1 << 63)
        for answer in self.answers if first else ():
            yield {str(at): value for at, value in enumerate(answer)}


@dataclass
class RecordingPublisher:
    """Stands for the broker."""

    sent: dict[str, dict[str, object]] = field(default_factory=dict[str, dict[str, object]])
    letters: list[tuple[Record, Letter]] = field(default_factory=list[tuple[Record, Letter]])

    def send(self, _t: str, key: str, value: bytes, _o: object, done: Callable[[], None]) -> None:
        self.sent[key] = orjson.loads(value)
        done()

    def dead_letter(
        self, _topic: str, record: Record, letter: Letter, done: Callable[[], None]
    ) -> None:
        self.letters.append((record, letter))
        done()

    def poll(self, timeout: float = 0) -> None: ...

    def flush(self) -> None: ...


class Quiet:
    def advance(self, records: int) -> None: ...

    def say(self, words: str) -> None: ...


def hashed(values: Mapping[str, object]) -> str:
    """As a contract does that takes texts."""
    if not isinstance(values["col1"], str):
        raise RowRefusedError("col1 is no text")
    return f"hash of {values['col1']}"


def plan(tmp_path: Path) -> HasherPlan:
    return HasherPlan(
        table="business",
        given=Given(mode="poll"),
        bootstrap="",
        topic="topic1",
        cloud_topic="topic2",
        letters_topic="letters",
        cassandra_table="ks.t",
        key=("pk",),
        version="last_updated",
        fields=("col1",),
        row_hash=hashed,
        events=EventForm("pk", (), "action", None, None, None),
        cloud=CloudForm("pk", "hash_cloud", "hash_version", "cloud_ts", 2),
        reread_after=1,
        state_file=tmp_path / "state.json",
    )


def scanned(tmp_path: Path, *answers: Answer) -> tuple[RecordingPublisher, Counts]:
    rows, recording, counts = cast("Cassandra", Rows(answers)), RecordingPublisher(), Counts()
    table = HashedTable(rows, "ks.t", ("pk",), ("col1",), "last_updated")
    publisher = cast("Publisher", recording)
    poller = Poller(plan(tmp_path), rows, table, publisher, counts, Quiet())
    poller.scan()
    poller.scan()
    return recording, counts


def test_a_write_time_in_nanoseconds_does_no_harm_to_a_row_with_a_version(tmp_path: Path) -> None:
    recording, _ = scanned(tmp_path, ("a", "x", MILLISECONDS, NANOSECONDS))
    assert recording.sent["a"]["cloud_ts"] == "2026-03-01T12:00:00.000Z"
    assert recording.letters == []


@pytest.mark.parametrize(
    "bad",
    [
        ("bad", "x", None, NANOSECONDS),
        ("bad", 2**70, MILLISECONDS, MICROSECONDS),
        ("bad", {1: "x", (1, "y"): Decimal("1.5")}, MILLISECONDS, MICROSECONDS),
        ("bad", b"\xff", MILLISECONDS, MICROSECONDS),
        ("bad", "x", MILLISECONDS, "no number"),
    ],
)
def test_a_row_that_cannot_be_read_is_one_dead_letter_and_the_scan_goes_on(
    tmp_path: Path, bad: Answer
) -> None:
    good = ("good", "x", MILLISECONDS, MICROSECONDS)
    recording, counts = scanned(tmp_path, bad, good)
    assert list(recording.sent) == ["good"]
    ((record, letter),) = recording.letters
    assert (record.key, letter.stage, letter.code) == (b"bad", "Hash", "dq_hash_refused")
    assert orjson.loads(record.value or b"")["pk"] == "bad"
    assert (counts.timeouts, counts.records["dead_letter"]) == (0, 1)


def test_any_value_of_cassandra_has_a_form_in_a_dead_letter() -> None:
    key = plain({("a", 1): {1: 2}})
    values = {"n": 2**70, "m": {1: [2**64, b"\x01"], AT: 1.5}, "k": key}
    assert orjson.loads(row_json(values)) == {
        "n": str(2**70),
        "m": {"1": [str(2**64), "0x01"], "2026-03-01T12:00:00Z": 1.5},
        "k": {'["a",1]': {"1": 2}},
    }


def test_a_map_may_have_collections_as_keys() -> None:
    class Pairs(dict[object, object]):
        """As the driver's map: its keys need no hash."""

        def items(self) -> Any:
            return [([1, 2], "x"), ({"a": [1]}, "y")]

    assert plain(Pairs()) == {(1, 2): "x", (("a", (1,)),): "y"}


def test_a_write_time_beyond_the_calendar_is_its_end_and_no_version() -> None:
    assert micros(NANOSECONDS) == LAST
    row = RowForm(shape(), ("col1",), None).made(("x", NANOSECONDS))
    assert row.written == LAST
    with pytest.raises(RowRefusedError, match="WRITETIME"):
        _ = row.cloud_ts


def test_a_row_of_such_a_write_time_is_never_repaired_over() -> None:
    item = Item("a", "MISMATCH", "upsert", AT)
    assert timestamp(item, WholeRow({}, AT, micros(NANOSECONDS)), AT + timedelta(days=1)) is None


def test_what_a_rows_values_break_is_no_time_out() -> None:
    for error in (OverflowError("date"), ValueError("x"), TypeError("x"), KeyError("x")):
        assert failure_of(error).kind == "row"
    assert failure_of(TimeoutError("slow")).kind == "timeout"


class Waiting:
    """Stands for the driver's future."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def result(self) -> Waiting:
        return self

    def one(self) -> Answer:
        return self._answer


class Session:
    def execute_async(self, _statement: object, values: tuple[str]) -> Waiting:
        return Waiting(("x", MILLISECONDS, NANOSECONDS if values[0] == "ns" else "no number"))


def test_a_row_that_cannot_be_read_by_key_is_told_in_words_and_one_of_nanoseconds_is_read() -> None:
    rows = cast("Cassandra", Rows((), session=Session()))
    reader = RowReader(rows, shape(), ("pk",), ("col1",), "last_updated")
    found = reader.read("ns")
    assert found is not None
    assert (found.cloud_ts, found.written) == (AT, LAST)
    with pytest.raises(OperationError, match=r"the row of bad in ks\.t could not be read"):
        reader.read("bad")
