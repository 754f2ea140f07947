"""Rows of Cassandra with values that no calendar has a place for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from headgate.errors import OperationError, RowRefusedError
from headgate.reconcile.cassandra.rows import RowForm, RowReader
from headgate.reconcile.cassandra.session import Cassandra, Column, Place, TableShape, failure_of
from headgate.reconcile.cassandra.values import LAST, micros, plain
from headgate.reconcile.repair.plan import Item
from headgate.reconcile.repair.targets import write_timestamp
from headgate.reconcile.rows import WholeRow

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
NANOSECONDS = 1_772_366_400_000_000_000
MILLISECONDS = NANOSECONDS // 1_000_000
Answer = tuple[object, ...]


def shape() -> TableShape:
    return TableShape(
        "ks",
        "t",
        {
            "pk": Column("pk", "text", "partition_key", 0),
            "col1": Column("col1", "text", "regular", -1),
            "last_updated": Column("last_updated", "timestamp", "regular", -1),
        },
    )


@dataclass
class Cluster:
    """Stands for a cluster whose session answers by key."""

    session: object
    place: Place = field(default_factory=lambda: Place(("127.0.0.1",), 1))

    def prepare(self, cql: str) -> str:
        return cql


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
    assert (
        write_timestamp(item, WholeRow({}, AT, micros(NANOSECONDS)), AT + timedelta(days=1)) is None
    )


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
    cluster = cast("Cassandra", Cluster(Session()))
    reader = RowReader(cluster, shape(), ("pk",), ("col1",), "last_updated")
    found = reader.read("ns")
    assert found is not None
    assert (found.cloud_ts, found.written) == (AT, LAST)
    with pytest.raises(OperationError, match=r"the row of bad in ks\.t could not be read"):
        reader.read("bad")
