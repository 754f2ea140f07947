"""What a repair writes into Cassandra: its timestamps, and values that the column holds exactly."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import cast
from uuid import UUID

import pytest

from headgate.reconcile.cassandra.session import Cassandra, Column, TableShape
from headgate.reconcile.hasher.requests import zulu
from headgate.reconcile.repair.plan import Item, Outcome
from headgate.reconcile.repair.targets import (
    CassandraTarget,
    InexactError,
    column_value,
    micros,
    write_timestamp,
)
from headgate.reconcile.rows import CassandraRows, WholeRow

AT = datetime(2024, 1, 1, 10, tzinfo=UTC)
SECOND = timedelta(seconds=1)


NOW = AT + timedelta(days=1)


@pytest.mark.parametrize(
    ("version", "written", "stamp"),
    [
        (AT, None, AT),
        (AT, AT - SECOND, AT),
        (AT, AT + SECOND, AT + SECOND + timedelta(microseconds=1)),
        # A version of the future would hide every write until then.
        (NOW + timedelta(days=1), None, NOW),
        (datetime(2099, 1, 1, tzinfo=UTC), AT, NOW),
        (AT, NOW, None),
        (AT, datetime(2099, 1, 1, tzinfo=UTC), None),
    ],
)
def test_the_timestamp_is_the_sources_version_or_just_after_what_stands_there_and_never_after_now(
    version: datetime, written: datetime | None, stamp: datetime | None
) -> None:
    item = Item("1", "MISMATCH", "upsert", version)
    found = write_timestamp(item, WholeRow({"col1": "x"}, AT - SECOND, written), NOW)
    assert found == (None if stamp is None else micros(stamp))
    assert write_timestamp(item, None, NOW) == micros(min(version, NOW))


def test_values_become_those_of_the_column() -> None:
    assert column_value(Decimal("1.50"), "decimal") == Decimal("1.50")
    assert column_value(1.5, "decimal") == Decimal("1.5")
    assert column_value(Decimal("1.5"), "double") == 1.5
    assert column_value(7, "text") == "7"
    assert column_value(Decimal(7), "bigint") == 7
    assert column_value(None, "uuid") is None
    text = "00000000-0000-0000-0000-000000000001"
    assert column_value(text, "uuid") == UUID(text)
    assert zulu(AT) == "2024-01-01T10:00:00Z"
    assert column_value(Decimal("0.1"), "float") == 0.1
    assert column_value(0.5, "float") == 0.5
    assert column_value("7", "int") == 7
    assert column_value(7.0, "int") == 7
    assert column_value(AT.replace(hour=0), "date") == AT.date()
    assert column_value(AT, "timestamp") == AT
    assert column_value([1], "list<int>") == [1]


@pytest.mark.parametrize(
    ("value", "cql_type"),
    [
        (Decimal("12.7"), "int"),
        (12.7, "bigint"),
        (Decimal(2**31), "int"),
        (300, "tinyint"),
        ("seven", "int"),
        (True, "int"),
        (1, "boolean"),
        (float("nan"), "decimal"),
        (Decimal("12345678901234567.89"), "double"),
        (2**63 + 1, "double"),
        (0.1, "float"),
        (Decimal("0.123456789"), "float"),
        (AT, "date"),
        ("x", "uuid"),
        ("é", "ascii"),
        (True, "text"),
        (b"x", "text"),
        ("soon", "timestamp"),
    ],
)
def test_a_value_that_the_column_cannot_hold_exactly_is_refused(
    value: object, cql_type: str
) -> None:
    with pytest.raises(InexactError):
        column_value(value, cql_type)


class Cloud:
    """Stands for Cassandra: keeps what is written to a table with two columns."""

    def __init__(self) -> None:
        self.written: list[tuple[object, ...]] = []
        self.rows: dict[str, WholeRow] = {}

    def shape(self, _table: str) -> TableShape:
        columns = {
            "pk": ("text", "partition_key"),
            "n": ("int", "regular"),
            "s": ("int", "regular"),
        }
        return TableShape("ks", "t", {c: Column(c, k, p, 0) for c, (k, p) in columns.items()})

    def reader(self, *_: object) -> Cloud:
        return self

    def read_many(self, keys: Sequence[str]) -> list[tuple[str, WholeRow | None]]:
        return [(key, self.rows.get(key)) for key in keys]

    def write_many(self, _cql: str, rows: Sequence[tuple[object, ...]]) -> int:
        self.written += rows
        self.rows |= {str(row[0]): WholeRow({}, None, NOW) for row in rows}
        return len(rows)


def test_a_row_that_its_columns_cannot_hold_is_left_alone_with_its_column_and_the_others_go() -> (
    None
):
    cloud, announced = Cloud(), dict[str, int]()
    rows = CassandraRows(cast("Cassandra", cloud), "ks.t", "pk", None)
    target = CassandraTarget(rows, ["pk", "n", "s"], lambda: NOW, frozenset({"s"}))
    source = {
        "good": WholeRow({"n": Decimal(7), "s": 1}, AT),
        "bad": WholeRow({"n": Decimal("12.7"), "s": 1}, AT),
        "secret": WholeRow({"n": 1, "s": Decimal("98.6")}, AT),
        "dropped": WholeRow({"n": 1}, AT),
    }
    plan = [Item(pk, "MISMATCH", "upsert", AT) for pk in source]
    outcomes = {each.pk: each for each in target.send(plan, source, {}, {}, announced.update)}
    assert cloud.written == [("good", 7, 1, micros(AT))]
    assert list(announced) == ["good"]
    assert outcomes["good"].result == "applied"
    told = "n is int in the cloud and cannot hold Decimal('12.7') exactly"
    assert outcomes["bad"] == Outcome("bad", "skipped", told)
    assert outcomes["dropped"].why == "on-prem's row has no column s any more"
    assert "***" in outcomes["secret"].why
    assert "98.6" not in outcomes["secret"].why
