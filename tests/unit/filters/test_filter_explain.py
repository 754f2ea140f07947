from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.support.filter_documents import DEALER
from tests.support.hostile_texts import hostile_texts
from tests.support.random_filters import random_filter

from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.compile.spark_sql import compile_filter
from headgate.filters.explain import (
    ExplainedCondition,
    ExplainedFilter,
    ExplainedRevision,
    explain_filter,
    explanation_lines,
    read_counts,
)
from headgate.filters.loader import parse_filter
from headgate.filters.spec import Filter
from headgate.filters.store.model import Seen, Standing
from headgate.filters.store.routing import RoutingStore

NUMBER = {"field": "header_data.n", "valueType": "number"}
TIME = {"field": "saved_date", "valueType": "timestamp"}
A, B, C = ({"field": "id", "operator": "equals", "value": value} for value in "abc")
NOTE = "(a condition on a missing value is neither true nor false, and neither is its opposite)"


def explain(*conditions: dict[str, Any], **document: Any) -> ExplainedFilter:
    return explain_document(
        parse_filter({**DEALER, "conditions": list(conditions) or [A], **document})
    )


def explain_document(
    declared: Filter, counts: tuple[ExplainedRevision, ...] = ()
) -> ExplainedFilter:
    return explain_filter(declared, compile_filter(declared), "filter.json", counts)


def lines(explained: ExplainedFilter, label: str = "") -> list[str]:
    """What stands beside the label, its first line without the label."""
    printed = list(explanation_lines(explained))
    start = next(at for at, line in enumerate(printed) if line[2:].startswith(label))
    found = [printed[start][12:]]
    for line in printed[start + 1 :]:
        if line[2:12].strip():
            break
        found.append(line[12:])
    return found


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"field": "id", "operator": "equals", "value": "e1"}, "id is 'e1'"),
        ({"field": "id", "operator": "in", "values": ["a", "b"]}, "id is one of 'a' or 'b'"),
        ({"field": "id", "operator": "notIn", "values": ["a"]}, "id is not 'a'"),
        (
            {**NUMBER, "operator": "greaterThan", "value": 12345678.5},
            "header_data.n read as a number is above 12345678.5",
        ),
        (
            {**NUMBER, "operator": "greaterThanOrEqual", "value": 5},
            "header_data.n read as a number is at least 5",
        ),
        (
            {**TIME, "operator": "lessThan", "value": "2025-01-31T12:30:00Z"},
            "saved_date read as a time is before 2025-01-31 12:30:00 UTC",
        ),
        (
            {"field": "header_data.s[0].t", "operator": "lessThanOrEqual", "value": "m"},
            "header_data.s[0].t is at most 'm' in the order of text",
        ),
        (
            {"field": "__ts_ms", "operator": "between", "min": 1, "max": 2},
            "__ts_ms is between 1 and 2",
        ),
        ({"field": "id", "operator": "matches", "value": "^e[0-9]+$"}, "id matches '^e[0-9]+$'"),
        ({"field": "header_data.vin", "operator": "isNull"}, "header_data.vin is missing"),
        ({"field": "header_data.vin", "operator": "isNotNull"}, "header_data.vin is present"),
    ],
)
def test_every_operator_has_words(condition: dict[str, Any], words: str) -> None:
    explained = explain(condition)
    assert explained.condition == ExplainedCondition(words)
    assert lines(explained, "matches")[0] == f"when {words}"


def test_groups_are_an_indented_tree() -> None:
    explained = explain(
        A,
        {"any": [B, {"all": [A, C]}]},
        {"not": {"any": [B, {"not": {"not": C}}]}},
        {"not": {"all": [A, {"not": C}]}},
    )
    assert lines(explained, "matches") == [
        "when all of these are true:",
        "  id is 'a'",
        "  at least one of these is true:",
        "    id is 'b'",
        "    all of these are true:",
        "      id is 'a'",
        "      id is 'c'",
        "  none of these is true:",
        "    id is 'b'",
        "    id is 'c'",
        "  not all of these are true:",
        "    id is 'a'",
        "    id is not 'c'",
        NOTE,
    ]


def test_the_first_level_is_joined_as_the_document_says() -> None:
    explained = explain(A, B, conditionLogic="OR")
    assert lines(explained, "matches")[0] == "when at least one of these is true:"
    assert explained.sql == "__op = 'c'\n  AND (id = 'a' OR id = 'b')"


def test_missing_values_are_mentioned_only_where_something_is_negated() -> None:
    there = {"field": "id", "operator": "isNotNull"}
    assert NOTE not in lines(explain(A, there), "matches")
    assert NOTE in lines(explain({"not": A}), "matches")


def test_the_events_and_the_receiver_are_those_of_the_document() -> None:
    assert lines(explain(), "takes") == [
        "create (c) events from raw-event-headers, from its deployment onwards"
    ]
    assert lines(explain(), "sends to") == [
        "filtered-service-events-dealer-001, for dealer-001-service-consumer"
    ]
    more = explain(ops=["d", "r", "u"], backfill="earliest", source="other", enabled=False)
    assert lines(more, "takes") == [
        "nothing while `enabled` is false; once it is true, snapshot read (r), update (u) and"
        " delete (d) events from other, including those from before its deployment"
    ]


def test_the_sql_is_the_one_that_the_filter_compiles_to() -> None:
    declared = parse_filter(DEALER)
    sql = explain_document(declared).sql
    assert sql.splitlines()[-1] == "  AND `header_data.dealerId` = 'DEALER-001'"
    assert f"WHERE {sql};" in compile_filter(declared).sql


def test_no_value_can_break_a_line_hide_or_pose_as_another_condition() -> None:
    for value in hostile_texts(Random(7), 300):
        explained = explain({"field": "id", "operator": "equals", "value": value})
        assert all(line.isprintable() for line in explanation_lines(explained)), ascii(value)
    forged = explain({"field": "id", "operator": "equals", "value": "a', or id is 'b"})
    assert forged.condition.words == "id is 'a'', or id is ''b'"


def test_any_filter_can_be_explained() -> None:
    rng = Random(11)
    for n in range(200):
        explained = explain_document(random_filter(rng, f"f{n}"))
        assert all(line.isprintable() for line in explanation_lines(explained))


def test_counts_are_listed_by_revision() -> None:
    declared = parse_filter(DEALER)
    revision = compile_filter(declared).revision
    counts = (
        ExplainedRevision("b" * 64, "", 12_000, 340, 1),
        ExplainedRevision("c" * 64, "live", 1, 0, 0),
        ExplainedRevision(revision, "", 0, 0, 0),
    )
    assert lines(explain_document(declared, counts), "counts") == [
        "revision bbbbbbbbbbbb: judged 12,000 records, sent 340, refused 1",
        "revision cccccccccccc (live): judged 1 record, sent 0",
        f"revision {revision[:12]} (this document): nothing judged yet",
    ]
    assert not [line for line in explanation_lines(explain()) if "counts" in line]


def test_what_was_deployed_is_listed_before_it_judged_anything(store: OpsStore) -> None:
    assert read_counts(store, "f", "a") == (ExplainedRevision("a", "", 0, 0, 0),)
    store.part(RoutingStore).see([Seen("f", "events", "b", "d", Standing.AHEAD, "")])
    assert read_counts(store, "f", "a") == (
        ExplainedRevision("b", "ahead", 0, 0, 0),
        ExplainedRevision("a", "", 0, 0, 0),
    )
    store.part(RoutingStore).see([Seen("f", "events", "a", "d", Standing.LIVE, "")])
    assert read_counts(store, "f", "a") == (ExplainedRevision("a", "live", 0, 0, 0),)
