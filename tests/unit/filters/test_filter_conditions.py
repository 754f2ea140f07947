"""Conditions of a filter's document as trees, and filters held against each other."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.filter_documents import DEALER, EVERYTHING

from headgate.conditions.ast import mapped, walk
from headgate.conditions.spark_sql import to_spark
from headgate.filters.compile.conditions import conditions_of
from headgate.filters.compile.matcher import findings_of, never_matches
from headgate.filters.compile.routing import MOST_ROWS, Cut, cut
from headgate.filters.compile.spark_sql import CompiledFilter, compile_filter
from headgate.filters.loader import parse_filter


def compiled(name: str, *conditions: dict[str, Any], **document: Any) -> CompiledFilter:
    given = {**DEALER, "id": name, "conditions": list(conditions), **document}
    return compile_filter(parse_filter(given))


def number(operator: str, value: float) -> dict[str, Any]:
    return {"field": "header_data.a", "operator": operator, "value": value, "valueType": "number"}


def text(value: str, field: str = "event_type") -> dict[str, Any]:
    return {"field": field, "operator": "equals", "value": value}


@pytest.mark.parametrize(
    ("condition", "sql"),
    [
        (text("it's"), r"event_type = 'it\'s'"),
        (text("x", "header_data.a[0].b"), "json_text(header_data, '$.a[0].b') = 'x'"),
        (text("x", "header_data[2]"), "json_text(header_data, '$[2]') = 'x'"),
        (number("greaterThan", 5), "try_cast(json_value(header_data, '$.a') AS DOUBLE) > 5.0D"),
        (
            {"field": "__ts_ms", "operator": "between", "min": 1, "max": 2},
            "__ts_ms BETWEEN 1L AND 2L",
        ),
        ({"field": "id", "operator": "notIn", "values": ["a", "b", "a"]}, "id NOT IN ('a', 'b')"),
        (
            {"field": "header_data.a", "operator": "isNotNull"},
            "json_value(header_data, '$.a') IS NOT NULL",
        ),
        ({"not": {"any": [text("a"), text("b")]}}, "NOT (event_type = 'a' OR event_type = 'b')"),
        (
            {"field": "header_data.a", "operator": "equals", "value": True, "valueType": "boolean"},
            "try_cast(json_value(header_data, '$.a') AS BOOLEAN) = TRUE",
        ),
    ],
)
def test_a_condition_is_this_sql(condition: dict[str, Any], sql: str) -> None:
    declared = parse_filter({**DEALER, "conditions": [condition]})
    assert to_spark(conditions_of(declared)) == sql


def test_a_tree_mapped_by_nothing_is_the_same_tree() -> None:
    made = compiled("x", *EVERYTHING).condition
    assert mapped(made, lambda node: node) == made
    assert len({type(node) for node in walk(made)}) > 8


def test_equalities_are_rows_of_keys_and_the_rest_is_asked() -> None:
    listed = {"field": "id", "operator": "in", "values": ["a", "b"]}
    found = cut(
        compiled("x", text("s"), listed, number("greaterThan", 5), ops=["u", "c"]).condition
    )
    assert [to_spark(term) for term in found.terms] == ["__op", "event_type", "id"]
    assert found.rows == (
        *(("c", "s", "a"), ("c", "s", "b")),
        *(("u", "s", "a"), ("u", "s", "b")),
    )
    assert found.rest is not None
    assert to_spark(found.rest).endswith("> 5.0D")


def test_two_equalities_on_one_field_leave_what_both_allow() -> None:
    assert cut(compiled("x", text("a"), text("b")).condition).rows == ()
    assert cut(compiled("x", text("a"), text("a")).condition).rows == (("c", "a"),)


def test_lists_that_multiply_beyond_measure_are_asked_instead() -> None:
    many = {"field": "id", "operator": "in", "values": [str(n) for n in range(MOST_ROWS + 1)]}
    found = cut(compiled("x", many, text("a")).condition)
    assert found.rows == (("c", "a"),)
    assert found.rest is not None


def test_a_filter_without_equalities_of_its_own_is_asked_of_every_event() -> None:
    either = compiled("x", text("a"), text("b"), conditionLogic="OR")
    assert cut(either.condition) == Cut((), (), either.condition)


def told(one: CompiledFilter, *others: CompiledFilter) -> set[tuple[str, str | None]]:
    return {(found.kind, found.other) for found in findings_of(one, others)}


def test_filters_that_match_never_or_always_are_told() -> None:
    never = compiled("never", text("a"), text("b"))
    assert told(never) == {("never", None)}
    assert never_matches(never)
    every = {
        "any": [{"field": "__op", "operator": "isNull"}, {"field": "id", "operator": "isNotNull"}]
    }
    assert ("never", None) not in told(compiled("all", every, ops=["c", "u", "d", "r"]))
    assert not never_matches(compiled("usual", text("a")))


def test_filters_that_hold_each_other_are_told() -> None:
    wide, narrow = (
        compiled("wide", number("greaterThan", 3)),
        compiled("narrow", number("greaterThan", 5)),
    )
    same = compiled("same", {"not": {"not": number("greaterThan", 3)}})
    assert told(narrow, wide, same) == {("contained", "wide"), ("contained", "same")}
    assert told(wide, narrow) == {("contains", "narrow")}
    assert told(same, wide) == {("equal", "wide")}
    assert told(compiled("other", text("a")), wide, narrow) == set()


def test_filters_of_other_sources_are_not_compared() -> None:
    here, there = compiled("here", text("a")), compiled("there", text("a"), source="elsewhere")
    assert told(here, there) == set()


def test_what_is_not_there_is_equal_to_nothing() -> None:
    missing = {"field": "header_data.a", "operator": "isNull"}
    there = {"field": "header_data.a", "operator": "isNotNull"}
    equal = text("x", "header_data.a")
    assert told(compiled("both", missing, equal)) == {("never", None)}
    assert told(compiled("equal", equal), compiled("there", there)) == {("contained", "there")}
    assert told(compiled("same", equal, there), compiled("equal", equal)) == {("equal", "equal")}
    header = {"field": "header_data", "operator": "isNull"}
    assert told(compiled("both", header, number("greaterThan", 5))) == {("never", None)}
