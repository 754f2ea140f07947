"""Columns and keys of a table in Cassandra, as the hasher takes them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from headgate.errors import SettingsError
from headgate.hashing.types import parse_hash_type
from headgate.reconcile.cassandra.rows import RowForm
from headgate.reconcile.cassandra.session import Column, TableShape
from headgate.reconcile.cassandra.values import KeyTypeError, key_values, moment
from headgate.reconcile.hasher.table import (
    Drift,
    DriftMemory,
    drift_of,
    fits,
    require_columns,
    require_types,
)

AT = datetime(2026, 3, 1, 12, 0, 0, 123_000, tzinfo=UTC)


def shape(*names: str) -> TableShape:
    columns = {name: Column(name, "text", "regular", -1) for name in names}
    return TableShape("ks", "t", {"pk": Column("pk", "text", "partition_key", 0), **columns})


def test_s1_125_a_new_column_is_told_and_s1_127_a_removed_one_too() -> None:
    drift = drift_of(shape("col1", "extra", "last_updated"), ("col1", "col2"), "last_updated")
    assert (drift.new, drift.removed) == (("extra",), ("col2",))
    assert drift.lines("ks.t") == [
        "ks.t has a column `extra` that the contract does not: it is not hashed",
        "ks.t has no column `col2` any more: it hashes as null, so its keys will differ",
    ]
    assert drift.since(drift).lines("ks.t") == []


def test_s1_126_a_start_is_no_drift_and_what_came_while_nobody_looked_is(tmp_path: Path) -> None:
    told: list[tuple[Drift, bool]] = []

    def start(*new: str, table_id: str = "id1") -> list[tuple[Drift, bool]]:
        memory = DriftMemory(tmp_path / "home" / "t.columns.json", lambda *what: told.append(what))
        memory.look(Drift(new, ()), table_id)
        found, told[:] = told[:], []
        return found

    assert start("a") == [(Drift(("a",), ()), False)], "said, but not counted"
    assert start("a") == []
    assert start("a", "b") == [(Drift(("b",), ()), True)]
    assert start("a", "b", table_id="id2") == [(Drift(("a", "b"), ()), False)]
    (tmp_path / "home" / "t.columns.json").write_text("{")
    assert start("a", table_id="id2") == [(Drift(("a",), ()), False)]
    assert start() == [(Drift((), ()), False)]
    assert start("a") == [(Drift(("a",), ()), True)]


@pytest.mark.parametrize(
    ("cql_type", "kind", "fitting"),
    [
        ("text", "string", True),
        ("uuid", "string", False),
        ("inet", "string", False),
        ("bigint", "decimal(2)", True),
        ("decimal", "double(2)", False),
        ("list<int>", "set<integer>", True),
        ("set<int>", "list<integer>", False),
        ("map<text, frozen<list<double>>>", "map<string,list<double>>", True),
        ("map<text, frozen<list<time>>>", "map<string,list<string>>", False),
        ("frozen<tuple<int, int>>", "list<integer>", False),
    ],
)
def test_a_column_is_hashed_only_as_what_both_sides_read_alike(
    cql_type: str, kind: str, fitting: bool
) -> None:
    assert fits(cql_type, parse_hash_type(kind)) is fitting


def test_a_contract_that_reads_a_column_as_something_else_is_refused() -> None:
    with pytest.raises(SettingsError, match="col1 is text and cannot be hashed as integer"):
        require_types(shape("col1"), {"col1": parse_hash_type("integer")})


def test_a_column_that_the_table_never_had_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(SettingsError, match="has no column `colum1`") as raised:
        require_columns(shape("col1"), ("colum1",))
    assert "col1" in raised.value.fix
    dropped = TableShape("ks", "t", shape("col1").columns, frozenset({"col2"}))
    require_columns(dropped, ("col1", "col2"))


def test_a_column_that_the_table_lacks_is_null_in_the_row() -> None:
    form = RowForm(shape("col1"), ("col1", "col2"), None)
    assert form.selection == '"col1", WRITETIME("col1")'
    assert form.made(("a", 1_000_000)).values == {"col1": "a", "col2": None}


@pytest.mark.parametrize(
    ("text", "cql_type", "value"),
    [
        ("a", "text", "a"),
        ("-7", "int", -7),
        ("9223372036854775807", "bigint", 2**63 - 1),
        ("1.50", "decimal", Decimal("1.50")),
        (
            "2f1e4b12-0000-4000-8000-000000000001",
            "uuid",
            UUID(int=0x2F1E4B12000040008000000000000001),
        ),
        ("2026-03-01", "date", date(2026, 3, 1)),
        ("0x00ff", "blob", b"\x00\xff"),
        ("2026-03-01T12:00:00.123Z", "timestamp", AT),
    ],
)
def test_a_key_has_the_type_of_its_column(text: str, cql_type: str, value: object) -> None:
    assert key_values(text, [cql_type]) == (value,)


@pytest.mark.parametrize(
    ("text", "cql_type"),
    [
        ("x", "int"),
        ("2147483648", "int"),
        ("1", "uuid"),
        ("é", "ascii"),
        ("", "text"),
        ("x" * 65_536, "text"),
        ("\ud800", "text"),
    ],
)
def test_a_text_that_no_key_can_have_is_none(text: str, cql_type: str) -> None:
    with pytest.raises(KeyTypeError):
        key_values(text, [cql_type])


def test_a_key_of_several_columns_is_a_json_list() -> None:
    assert key_values('["a", 7]', ["text", "int"]) == ("a", 7)
    with pytest.raises(KeyTypeError):
        key_values('["a"]', ["text", "int"])


def test_a_time_beyond_the_calendar_stays_milliseconds() -> None:
    assert moment(1_772_366_400_123) == AT
    assert moment(10**17) == 10**17
