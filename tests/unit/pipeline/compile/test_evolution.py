"""Which unknown fields become columns: the frequent ones that can be one, never too many."""

from __future__ import annotations

import pytest

from headgate.declarations.types import JSON, STRING
from headgate.pipeline.compile.evolution import (
    FRACTION,
    LARGE,
    LONG_FRACTION,
    NESTED,
    TEXT,
    TRUTH,
    WHOLE,
    Seen,
    evolved_column,
    evolved_columns,
    new_columns,
    type_of,
    with_fractions,
)


def seen(field: str, *kinds: str, records: int = 1, place: int = 0) -> Seen:
    return Seen(field, frozenset(kinds or {TEXT}), records, place)


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        ({TRUTH}, "BOOLEAN"),
        ({WHOLE}, "BIGINT"),
        ({WHOLE, LARGE}, "BIGINT"),
        ({WHOLE, FRACTION}, "DOUBLE"),
        ({LARGE, FRACTION}, "JSON"),
        ({LONG_FRACTION}, "JSON"),
        ({TEXT}, "STRING"),
        ({TEXT, WHOLE}, "JSON"),
        ({NESTED}, "JSON"),
        ({TRUTH, NESTED}, "JSON"),
        (set(), "None"),
    ],
)
def test_a_column_holds_every_value_without_loss(kinds: set[str], kind: str) -> None:
    assert str(type_of(Seen("x", frozenset(kinds), 1))) == kind


@pytest.mark.parametrize(
    ("kinds", "kind"), [({WHOLE}, "DOUBLE"), ({LARGE}, "JSON"), ({WHOLE, LARGE}, "JSON")]
)
def test_a_whole_number_written_with_a_point_is_a_fraction(kinds: set[str], kind: str) -> None:
    """A BIGINT would refuse the 2.0 of a record."""
    before = (seen("x", *kinds), seen("y", WHOLE))
    x, y = with_fractions(before, {"x"})
    assert (str(type_of(x)), str(type_of(y))) == (kind, "BIGINT")


def test_columns_stand_in_the_order_in_which_records_have_them() -> None:
    made = new_columns([seen("b", place=2), seen("a", place=7), seen("c", place=1)], [], 10)
    assert [column.name for column in made] == ["c", "b", "a"]


def test_when_there_is_no_room_the_most_frequent_fields_get_it() -> None:
    fields = [seen(f"f{n}", records=n, place=n) for n in range(10)]
    assert [column.name for column in new_columns(fields, [], 3)] == ["f7", "f8", "f9"]
    assert new_columns(fields, [], 0) == ()


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", " x", "a.b", "a`b", 'a"b', "a\nb", "${HOME}", "a;b", "x" * 101, "\u202eb", "😀"),
        *("_extra", "_MISSING", "kafka_offset", "Ingestion_TS", "_reason", "record"),
        *("ID", "ﬁeld", "STRASSE"),
    ],
)
def test_a_name_that_cannot_be_a_column_gets_none(name: str) -> None:
    assert new_columns([seen(name)], ["id", "field", "straße"], 10) == ()


@pytest.mark.parametrize(
    "name", ["x", "tip_amount", "prix", "größe", "名前", "two words", "a-b", "9"]
)
def test_any_other_name_gets_one(name: str) -> None:
    (column,) = new_columns([seen(name)], ["id"], 10)
    assert (column.name, column.bronze_type) == (name, STRING)


def test_of_two_that_differ_by_case_only_one_gets_it() -> None:
    made = new_columns([seen("Tip", records=2), seen("tip", records=3)], [], 10)
    assert [column.name for column in made] == ["tip"]


def test_a_column_is_known_again_by_its_comment() -> None:
    column = evolved_column("stops", JSON)
    assert column.bronze_type == STRING
    told = [("id", ""), ("by_hand", "STRING"), ("stops", column.comment or "")]
    assert evolved_columns(told) == (column,)
