"""Why two rows differ: each kind by example, the order of the kinds, and what must hold of any pair."""

from __future__ import annotations

import unicodedata
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.config.reference import MASK
from headgate.reconcile.row_diff import (
    DIFFERENT,
    EQUAL,
    KINDS,
    NOT_CLOUD,
    NOT_ONPREM,
    NOWHERE,
    Kind,
    count_kinds,
    kind_of,
    row_difference,
    same_value,
    shown_key,
    shown_value,
)

AT = datetime(2024, 3, 31, 10, 15, 30, 123456, UTC)
EXAMPLES: list[tuple[object, object, Kind]] = [
    (None, "", "null_empty"),
    (b"", None, "null_empty"),
    ([], None, "null_empty"),
    (None, "null", "real"),
    (None, 0, "real"),
    ("", "abc", "real"),
    ("1.50", "1.5", "scale"),
    (Decimal("123.45"), Decimal(12345), "scale"),
    (Decimal(10), Decimal(100), "real"),
    (Decimal("123.45"), Decimal("-12345"), "real"),
    ("007", "7", "real"),
    (AT, AT + timedelta(hours=2), "zone_shift"),
    (AT, AT - timedelta(hours=5, minutes=45), "zone_shift"),
    (AT, AT + timedelta(hours=14), "zone_shift"),
    (AT, AT + timedelta(hours=14, minutes=15), "real"),
    (AT, AT + timedelta(minutes=7), "real"),
    ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00+02:00", "zone_shift"),
    (Decimal("12.345"), Decimal("12.35"), "scale"),
    (Decimal("12.345"), Decimal("12.34"), "scale"),
    (Decimal("12.34"), Decimal("12.3"), "scale"),
    (12.34, 12.3, "precision"),
    (Decimal("0.004"), Decimal(0), "real"),
    (0.1 + 0.2, 0.3, "precision"),
    (0.1, 0.10000000149011612, "precision"),
    (1.5, 1.6, "real"),
    (1.5, 2.0, "real"),
    (1234.56, 1235.0, "precision"),
    (float("nan"), 1.0, "real"),
    (float("inf"), 1e308, "real"),
    (AT, AT.replace(microsecond=123000), "precision"),
    (AT, AT.replace(microsecond=0), "precision"),
    (date(2024, 3, 31), AT, "precision"),
    ("caf\u00e9", "cafe\u0301", "unicode_form"),
    ("\ufb01n", "fin", "unicode_form"),
    ("ab ", "ab", "trim"),
    ("\u00a0ab", "ab", "trim"),
    ("abc", "abcdef", "truncation"),
    (b"ab", b"abc", "truncation"),
    ("Ada", "ADA", "case"),
    ("Straße", "STRASSE", "case"),
    ("Ada", "Bob", "real"),
    (True, False, "real"),
    (True, 1, "real"),
]
TEXTS = st.text(max_size=12)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False),
    TEXTS,
    st.binary(max_size=8),
    st.datetimes(timezones=st.just(UTC)),
    st.dates(),
    st.from_regex(r"-?[0-9]{1,6}(\.[0-9]{1,6})?", fullmatch=True),
)


@pytest.mark.parametrize(("a", "b", "kind"), EXAMPLES, ids=repr)
def test_each_example_is_of_its_kind_from_either_side(a: object, b: object, kind: Kind) -> None:
    assert not same_value(a, b)
    assert (kind_of(a, b), kind_of(b, a)) == (kind, kind)


def test_every_kind_has_an_example() -> None:
    assert {kind for _, _, kind in EXAMPLES} == set(KINDS)


@given(VALUES, VALUES)
@settings(max_examples=300, deadline=None)
def test_any_pair_has_one_kind_and_the_sides_do_not_matter(a: object, b: object) -> None:
    assert kind_of(a, b) in KINDS
    assert kind_of(a, b) == kind_of(b, a)
    assert same_value(a, b) == same_value(b, a)


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_a_value_is_the_same_as_itself(a: object) -> None:
    assert same_value(a, a)


@given(
    st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2200, 1, 1)),
    st.integers(1, 56),
)
def test_any_quarter_hours_up_to_fourteen_hours_are_a_zone_shift(at: datetime, n: int) -> None:
    assert kind_of(at, at + n * timedelta(minutes=15)) == "zone_shift"
    assert kind_of(at, at + n * timedelta(minutes=15) + timedelta(minutes=1)) == "real"


@given(st.decimals(-(10**9), 10**9, places=6), st.integers(0, 5))
def test_a_decimal_that_was_rounded_has_another_scale_unless_nothing_is_left(
    number: Decimal, places: int
) -> None:
    short = round(number, places)
    assert short in (number, 0) or kind_of(number, short) == "scale"


@given(st.integers(0, 10**6), st.floats(0.01, 0.4), st.integers(0, 5))
def test_a_float_that_was_rounded_has_another_precision(
    whole: int, rest: float, places: int
) -> None:
    number = 100 * whole + 11 + rest
    short = round(number, places)
    assert short == number or kind_of(number, short) == "precision"


@given(TEXTS)
def test_a_decomposed_text_is_another_unicode_form(text: str) -> None:
    other = unicodedata.normalize("NFD", text)
    assert other == text or kind_of(text, other) == "unicode_form"


def test_only_differing_columns_are_told_in_the_order_asked_for() -> None:
    onprem = {"a": "x", "b": Decimal("1.0"), "c": None, "d": 1.0}
    cloud = {"a": "X", "b": Decimal("1.00"), "c": "", "d": float("nan")}
    found = row_difference("7", onprem, cloud, ("d", "c", "b", "a"))
    assert found.found == DIFFERENT
    assert [(d.column, d.kind) for d in found.differences] == [
        ("d", "real"),
        ("c", "null_empty"),
        ("a", "case"),
    ]


def test_what_counts_as_equal_is_the_callers_to_say() -> None:
    def lenient(column: str, a: object, b: object) -> bool:
        return str(a).lower() == str(b).lower()

    assert row_difference("7", {"a": "x"}, {"a": "X"}, ("a",), same=lenient).found == EQUAL


def test_sensitive_values_are_masked_and_keep_their_kind() -> None:
    found = row_difference("7", {"a": "x", "b": None}, {"a": "x ", "b": ""}, "ab", frozenset("ab"))
    assert [(d.onprem, d.cloud, d.kind) for d in found.differences] == [
        (MASK, MASK, "trim"),
        (None, MASK, "null_empty"),
    ]


@pytest.mark.parametrize(
    ("onprem", "cloud", "found"),
    [({}, None, NOT_CLOUD), (None, {}, NOT_ONPREM), (None, None, NOWHERE)],
)
def test_a_row_that_is_not_there_is_said(
    onprem: dict[str, object] | None, cloud: dict[str, object] | None, found: str
) -> None:
    assert row_difference("7", onprem, cloud, ()).found == found


def test_kinds_are_counted_in_their_order() -> None:
    rows = [
        row_difference("1", {"a": "x"}, {"a": "X"}, "a"),
        row_difference("2", {"a": None}, {"a": ""}, "a"),
        row_difference("3", {"a": "y"}, {"a": "Y"}, "a"),
    ]
    assert list(count_kinds(rows).items()) == [("null_empty", 1), ("case", 2)]


def test_a_key_cannot_speak_to_the_terminal() -> None:
    assert shown_key("a\x1b[2Jb\nc") == "a\\x1b[2Jb\\nc"
    assert shown_key("a\u202eb") == "a\\u202eb"
    assert shown_key("Größe 1") == "Größe 1"


def test_values_that_look_alike_are_written_so_that_they_do_not() -> None:
    assert shown_value("caf\u00e9", "unicode_form") == "'caf\\xe9'"
    assert shown_value("cafe\u0301", "unicode_form") == "'cafe\\u0301'"
    assert shown_value("caf\u00e9") == "'caf\u00e9'"
    assert shown_value("a\tb") == "'a\\tb'"
    assert shown_value(Decimal("1E+3")) == "1000"
    assert shown_value(AT) == "2024-03-31T10:15:30.123456Z"
    assert len(shown_value("x" * 1000) or "") == 200
