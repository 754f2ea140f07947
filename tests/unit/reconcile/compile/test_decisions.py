"""The decision table is total, in order, and says of every status what is made of it."""

from __future__ import annotations

from itertools import product

import pytest

from headgate.conditions.ast import columns_of
from headgate.conditions.evaluator.values import Value
from headgate.reconcile.compile.file import rows_while_open
from headgate.reconcile.decision_table import (
    ROLLUPS,
    decided,
    decisions,
    settled_decisions,
    statuses,
    verdict_rules,
)
from headgate.reconcile.state import FACTS, TYPES

UNSEEN, DELETED, ABSENT, INVALID, ONE, OTHER = "unseen", "deleted", "absent", "invalid", "a", "b"
KINDS = (UNSEEN, DELETED, ABSENT, INVALID, ONE, OTHER)
HASHES = {INVALID: "x", ONE: "a", OTHER: "b"}
ROLLED_UP = {
    "valid": {"MATCH", "LATE_MATCH", "DELETE_EVENT"},
    "invalid": {"MISMATCH", "LATE_MISMATCH", "ZOMBIE", "VERSION_SKEW", "INVALID_HASH"},
    "missing": {"MISSING_CLOUD", "MISSING_ONPREM"},
    "pending": {"PENDING", "DELETE_PENDING"},
}


def combinations() -> list[dict[str, Value]]:
    """Every combination of facts that a key can have; one side at least has said something."""
    flags = ("version_skew", "cloud_older", "late", "due", "whole", "stale", "conflict")
    found: list[dict[str, Value]] = []
    for onprem, cloud in product(KINDS, KINDS):
        if onprem == cloud == UNSEEN:
            continue
        for values in product((False, True), repeat=len(flags)):
            facts: dict[str, Value] = {
                "onprem_seen": onprem != UNSEEN,
                "cloud_seen": cloud != UNSEEN,
                "onprem_deleted": onprem == DELETED,
                "cloud_deleted": cloud == DELETED,
                "cloud_absent": cloud == ABSENT,
                "onprem_invalid": onprem in (INVALID, ABSENT),
                "cloud_invalid": cloud == INVALID,
                "hash_onprem": HASHES.get(onprem),
                "hash_cloud": HASHES.get(cloud),
                "within_grace": True,
                **dict(zip(flags, values, strict=True)),
            }
            if UNSEEN in (onprem, cloud) and any(values[:3]):
                continue
            if facts["due"] and not facts["whole"]:
                continue
            found.append(facts)
    return found


@pytest.mark.heavy
def test_every_combination_of_facts_has_a_verdict() -> None:
    asked = combinations()
    met = {decided(facts).place for facts in asked}
    assert len(asked) > 1_000
    assert met == {row.place for row in decisions()}, "a row that no facts reach"


@pytest.mark.heavy
def test_a_verdict_waits_only_until_its_deadline() -> None:
    for facts in combinations():
        row = decided(facts)
        assert row.settled or facts["due"] is False
        assert decided({**facts, "due": True, "whole": True}).settled


@pytest.mark.heavy
def test_what_a_pending_key_would_be_is_what_it_becomes() -> None:
    for facts in combinations():
        final = next(row for row in settled_decisions() if row.holds(facts))
        assert final == decided({**facts, "due": True, "whole": True})


def test_the_roll_up_covers_every_status() -> None:
    by_rollup = {rollup: set[str]() for rollup in ROLLUPS}
    for name, status in statuses().items():
        by_rollup[status.rollup].add(name)
    assert by_rollup == ROLLED_UP
    assert {row.status for row in decisions()} == set(statuses())


def test_what_is_settled_is_counted_and_what_waits_is_not() -> None:
    for row in decisions():
        assert (row.metric is not None) == row.settled == (row.severity is not None)


def test_conditions_ask_for_facts_only() -> None:
    assert len(TYPES) == len(FACTS)
    for row in decisions():
        assert set(columns_of(row.condition)) <= set(TYPES)


def test_what_is_settled_is_counted_as_a_rule_of_its_own() -> None:
    said = {name: status for name, status in statuses().items() if status.metric}
    assert {rule.status: (rule.name, rule.metric, rule.severity) for rule in verdict_rules()} == {
        name: (f"verdict_{name.lower()}", status.metric, status.severity)
        for name, status in said.items()
    }


@pytest.mark.heavy
def test_the_rows_that_a_waiting_key_is_asked_are_those_of_the_table() -> None:
    """In SQL the rows stand twice: as they are before the deadline, and those that do not wait."""
    asked = rows_while_open()
    assert all("due" not in columns_of(row.condition) for row in asked)
    for facts in combinations():
        if not facts["due"]:
            found = next(row for row in asked if row.holds(facts))
            assert (found.place, found.reason) == (decided(facts).place, decided(facts).reason)


def test_a_row_without_a_cloud_reading_is_never_said_to_match() -> None:
    for facts in combinations():
        if not facts["cloud_seen"]:
            assert decided(facts).status not in {"MATCH", "LATE_MATCH", "MISMATCH", "LATE_MISMATCH"}


def test_a_hash_that_is_none_is_never_compared() -> None:
    for facts in combinations():
        if facts["onprem_invalid"] or facts["cloud_invalid"]:
            status = decided({**facts, "due": True, "whole": True}).status
            assert status in {"INVALID_HASH", "DELETE_EVENT", "ZOMBIE"}
