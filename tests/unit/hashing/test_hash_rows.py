"""A row's text and hash in Python: the page's examples, the traps, and that no two rows share a hash."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hash_oracle import KINDS, comparable_value, similar_rows
from tests.support.hash_text_reader import HashTextReader
from tools.hash_vectors import MOVED

from headgate.errors import RowRefusedError
from headgate.hashing.contract import contract_of
from headgate.hashing.python import Value, row_hash, row_text, writer
from headgate.hashing.typed_json import parse_row, read_value
from headgate.hashing.types import parse_hash_type

PAGE = (Path(__file__).parents[3] / "docs" / "hash_contract.md").read_text("utf-8")
THREE = contract_of("three", dict.fromkeys("abc", "string"))
QUICK, FULL = 20_000, 1_000_000


def text_of(kind: str, value: Value) -> str:
    return writer(parse_hash_type(kind))(value).decode()


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("string", "é|", "s3:é|"),
        ("string", "", "s0:"),
        ("string", None, "n;"),
        ("string(nulls_empty)", None, "s0:"),
        ("string(trim)", "  a b\t ", "s4:a b\t"),
        ("string(nfc)", "e\u0301", "s2:é"),
        ("boolean", False, "bfalse;"),
        ("integer", -(10**40), f"i-1{'0' * 40};"),
        ("decimal(2)", Decimal("12.5"), "d1250;"),
        ("decimal(2)", Decimal("0.005"), "d1;"),
        ("decimal(2)", Decimal("-0.005"), "d-1;"),
        ("decimal(2)", Decimal("-0.004"), "d0;"),
        ("decimal(0)", Decimal("2.5"), "d3;"),
        ("decimal(2)", 7, "d700;"),
        ("decimal(2)", Decimal("1E+2000000000"), "d1e2000000000;"),
        ("decimal(2)", Decimal("-1E-2000000000"), "d0;"),
        ("decimal(2)", Decimal("999999999999999999999999999999999999.994"), f"d{'9' * 38};"),
        ("decimal(2)", Decimal("999999999999999999999999999999999999.995"), f"d{'9' * 38}5e-3;"),
        ("decimal", Decimal("-0.0"), "d0e0;"),
        ("decimal", Decimal("1200"), "d12e2;"),
        ("double(6)", 0.1 + 0.2, "f300000;"),
        ("double(0)", 2.5, "f2;"),
        ("double(0)", 3.5, "f4;"),
        ("double(6)", -0.0, "f0;"),
        ("double(6)", 1e7, "f10000000000000;"),
        ("double(2)", 1e19, "f0x1.158e460913dp63;"),
        ("double(6)", Decimal("0.3"), "f300000;"),
        ("double(2)", 3, "f300;"),
        ("double", -0.0, "f0x0.0p0;"),
        ("double", float("-inf"), "f-Infinity;"),
        ("double", 5e-324, "f0x0.0000000000001p-1022;"),
        ("date", date(2024, 2, 29), "c19782;"),
        ("timestamp(s)", datetime(1969, 12, 31, 23, 59, 59, 1), "t-1;"),
        ("timestamp(us)", datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), "t0;"),
        ("uuid", uuid.UUID(int=0), "u36:00000000-0000-0000-0000-000000000000"),
        ("binary", b"\x00\xff", "x00FF;"),
        ("binary(nulls_empty)", None, "x;"),
        ("list<integer>", [3, None, 1], "L3:i3;n;i1;"),
        ("set<string>", {"b", "a", "ab"}, "S3:s1:as1:bs2:ab"),
        ("set<decimal(1)>", [Decimal("1.0"), 1, Decimal("1.04")], "S1:d10;"),
        ("map<string,integer>", {"b": 1, "a": None}, "M2:s1:an;s1:bi1;"),
        ("map<string(trim),integer>", {" a": 1, "a": 2}, "M2:s1:ai1;s1:ai2;"),
        ("map<string(trim),integer>", {" a": 1, "a": 1}, "M2:s1:ai1;s1:ai1;"),
        ("map<string,integer>(nulls_empty)", None, "M0:"),
        ("list<list<boolean>>", [[], [True]], "L2:L0:L1:btrue;"),
    ],
)
def test_a_value_has_one_text(kind: str, value: Value, text: str) -> None:
    assert text_of(kind, value) == text


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", 5),
        ("string", b"a"),
        ("string", "\ud800"),
        ("boolean", 1),
        ("integer", True),
        ("integer", "5"),
        ("integer", 5.0),
        ("decimal(2)", 0.5),
        ("decimal(2)", Decimal("NaN")),
        ("decimal", Decimal("Infinity")),
        ("double", "1.0"),
        ("double", 10**400),
        ("double", Decimal("1E400")),
        ("double(2)", Decimal("-1E400")),
        ("double", Decimal("NaN")),
        ("date", datetime(2024, 1, 1)),
        ("timestamp(ms)", date(2024, 1, 1)),
        ("timestamp(ms)", 1_700_000_000_000),
        ("uuid", "550e8400e29b41d4a716446655440000"),
        ("uuid", "{550e8400-e29b-41d4-a716-446655440000}"),
        ("uuid", "x"),
        ("binary", "00FF"),
        ("list<integer>", "abc"),
        ("list<integer>", [1, "2"]),
        ("set<integer>", {1: 2}),
        ("map<string,integer>", [("a", 1)]),
        ("map<string,integer>", {None: 1}),
    ],
)
def test_a_value_of_another_type_is_refused_without_being_shown(kind: str, value: Value) -> None:
    with pytest.raises(RowRefusedError) as refused:
        row_hash(contract_of("x", {"field": kind}), {"field": value})
    assert refused.value.what == f"`field` is no {kind}"
    assert refused.value.code == "HG-1005"


def test_a_field_that_is_not_there_is_not_null() -> None:
    with pytest.raises(RowRefusedError, match="the row has no field `b`"):
        row_hash(THREE, {"a": "x", "c": "y", "more": 1})


def test_fields_beside_the_contract_do_not_count() -> None:
    row = dict.fromkeys("abc", "x")
    assert row_hash(THREE, row) == row_hash(THREE, {**row, "d": "y"})


def test_the_hash_is_the_sha_256_of_the_text() -> None:
    row = {"a": "x", "b": None, "c": ""}
    assert row_text(THREE, row) == b"s1:xn;s0:"
    assert row_hash(THREE, row) == hashlib.sha256(b"s1:xn;s0:").hexdigest()


def test_the_tables_of_examples_on_the_page_hold() -> None:
    shown = re.findall(r"^\| `([a-z]+[^`]*)` \| ([^|]*) \| `([^`]+)` \|$", PAGE, re.M)
    wanted: dict[str, Any] = {
        "[3, null, 1]": [3, None, 1], '{"b", "a", "ab"}': {"b", "a", "ab"},
        '{"b": 1, "a": null}': {"b": 1, "a": None}, "[[], [true]]": [[], [True]],
        "1.500": Decimal("1.500"), "0.1": 0.1, "1969-12-31": date(1969, 12, 31), "bytes 00 FF": b"\x00\xff",
        "550E8400-E29B-41D4-A716-446655440000": "550E8400-E29B-41D4-A716-446655440000",
    }  # fmt: skip
    examples = [(kind, wanted[value], text) for kind, value, text in shown if value in wanted]
    assert len(examples) == 9
    assert [text_of(kind, value) for kind, value, _ in examples] == [
        text for _, _, text in examples
    ]


def test_the_rows_on_the_page_have_the_texts_that_it_shows() -> None:
    types = {"a": "string", "b": "decimal(2)", "c": "timestamp(ms)", "d": "double(6)"}
    contract = contract_of("page", types)
    rows = [
        '{"a": "x", "b": 12.5, "c": "2024-01-31T12:30:00.123Z", "d": 0.3}',
        '{"a": "x", "b": 12.50, "c": "2024-01-31T14:30:00.123999+02:00", "d": 0.30000000000000004}',
        '{"a": "", "b": null, "c": "1969-12-31T23:59:59.9999Z", "d": -0.0}',
        '{"a": null, "b": -0.005, "c": "1970-01-01T00:00:00Z", "d": "NaN"}',
        '{"a": "é", "b": 1E37, "c": null, "d": 1e300}',
        '{"a": "null", "b": 0, "c": null, "d": "-Infinity"}',
    ]
    texts = [row_text(contract, parse_row(contract, row)).decode() for row in rows]
    assert texts[0] == texts[1]
    assert all(f"| `{text}` |" in PAGE for text in texts)


def test_version_1_joins_texts_by_name_with_bars() -> None:
    types = {"b": "decimal(2)", "a": "string", "t": "timestamp(ms)", "d": "double(3)", "c": "date"}
    row = {
        "b": Decimal("-0.05"),
        "a": None,
        "t": datetime(2024, 1, 31, 12, 30, 0, 123999),
        "d": 7.0,
        "c": date(2024, 2, 29),
    }
    contract = contract_of("old", types, 1)
    text = b"|-0.05|2024-02-29|7.000|2024-01-31T12:30:00.123Z"
    assert row_text(contract, row) == text
    assert row_hash(contract, row) == hashlib.sha256(text).hexdigest()


def test_version_1_is_ambiguous_and_version_2_is_not() -> None:
    rows = [{"a": "x|y", "b": "z", "c": ""}, {"a": "x", "b": "y|z", "c": None}]
    old, new = THREE.at_version(1), THREE
    assert len({row_hash(old, row) for row in rows}) == 1
    assert len({row_hash(new, row) for row in rows}) == 2


def test_the_order_of_a_map_and_of_a_set_does_not_matter() -> None:
    assert text_of("map<integer,string>", {1: "a", 2: "b"}) == text_of(
        "map<integer,string>", {2: "b", 1: "a"}
    )
    assert text_of("set<integer>", [3, 1, 2, 1]) == text_of("set<integer>", {1, 2, 3})


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_every_text_can_be_read_back_in_one_way(data: st.DataObject) -> None:
    from random import Random

    from tools.hash_vectors import ALL

    names = data.draw(st.lists(st.sampled_from(list(ALL)), min_size=1, max_size=6, unique=True))
    draws = Random(data.draw(st.integers(0, 2**32)))
    row = {name: ALL[name][2](draws) for name in names}
    kinds = [KINDS[name] for name in names]
    contract = contract_of("read", {name: ALL[name][0] for name in names})
    read = HashTextReader(row_text(contract, row)).row(kinds)
    for kind, value, found in zip(kinds, row.values(), read, strict=True):
        assert (value is None) == (found is None)
        if kind.name in ("string", "uuid", "boolean", "binary", "timestamp"):
            assert found == comparable_value(kind, value)


@given(st.lists(st.text(), min_size=3, max_size=3), st.lists(st.text(), min_size=3, max_size=3))
def test_different_texts_never_share_a_row_text(one: list[str], other: list[str]) -> None:
    rows = [dict(zip("abc", given, strict=True)) for given in (one, other)]
    texts = [row_text(THREE, row) for row in rows]
    assert (texts[0] == texts[1]) == (one == other)


def test_no_two_of_the_known_traps_share_a_hash() -> None:
    found = defaultdict[str, set[tuple[str | None, ...]]](set)
    for values in MOVED:
        found[row_hash(THREE, dict(zip("abc", values, strict=True)))].add(values)
    assert {len(rows) for rows in found.values()} == {1}


def equal_by_chance(seed: int, count: int) -> tuple[int, int]:
    """How many pairs differ, and how many of those have equal hashes; equal rows must have them."""
    different = equal = 0
    for contract, row, other in similar_rows(seed, count):
        kinds = {field.name: field.kind for field in contract.fields}
        same = all(
            comparable_value(kinds[n], row[n]) == comparable_value(kinds[n], other[n]) for n in row
        )
        agree = row_hash(contract, row) == row_hash(contract, other)
        assert agree or not same, (contract.in_one_line, row, other)
        different += not same
        equal += agree and not same
    return different, equal


def test_x5_fuzzed_rows_that_differ_have_different_hashes() -> None:
    different, equal = equal_by_chance(5, QUICK)
    assert different > 0.8 * QUICK
    assert equal == 0


@pytest.mark.slow
def test_x5_a_million_fuzzed_pairs_have_different_hashes() -> None:
    different, equal = equal_by_chance(55, FULL * 5 // 4)
    assert different >= FULL
    assert equal == 0


@pytest.mark.parametrize(
    ("kind", "plain", "value"),
    [
        ("integer", "123456789012345678901234567890", 123456789012345678901234567890),
        ("integer", 5, 5),
        ("decimal(2)", "1E+3", Decimal("1000")),
        ("double", "NaN", None),
        ("binary", "00ff", b"\x00\xff"),
        ("map<integer,string>", [["1", "a"]], {1: "a"}),
        ("map<string,integer>", {"a": 1}, {"a": 1}),
        ("timestamp(s)", "2024-01-31T12:30:00+05:30", None),
        (
            "timestamp(us)",
            "2024-01-31T12:30:00.1234569Z",
            datetime(2024, 1, 31, 12, 30, 0, 123456, UTC),
        ),
    ],
)
def test_json_gives_values_without_loss(kind: str, plain: Value, value: Value) -> None:
    read = read_value(parse_hash_type(kind), plain)
    assert value is None or read == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("timestamp(s)", "2024-01-31T24:00:00Z"),
        ("timestamp(s)", "2024-01-31T12:30:60Z"),
        ("timestamp(s)", "0000-01-01T00:00:00Z"),
        ("timestamp(s)", "10000-01-01T00:00:00Z"),
        ("date", "0000-12-31"),
        ("date", "10000-01-01"),
        ("date", "2023-02-29"),
    ],
)
def test_a_time_that_no_calendar_has_is_refused(kind: str, text: str) -> None:
    contract = contract_of("one", {"a": kind})
    with pytest.raises(RowRefusedError):
        parse_row(contract, f'{{"a": "{text}"}}')


def test_in_version_1_a_null_inside_a_collection_is_written_as_in_version_2() -> None:
    for kind, text in (("list<string>", "L2:n;s1:x"), ("list<string(nulls_empty)>", "L2:s0:s1:x")):
        old = replace(contract_of("one", {"a": kind}), hash_version=1)
        assert row_text(old, {"a": [None, "x"]}).decode() == text
        assert row_text(old, {"a": None}) == b""


@pytest.mark.parametrize("row", ["[1]", "{", "5", '{"a": {"x": 1}}', '{"a": "x", "b": "y"}'])
def test_json_that_is_no_row_is_refused(row: str) -> None:
    with pytest.raises(RowRefusedError):
        row_hash(THREE, parse_row(THREE, row))
