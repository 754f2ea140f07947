"""Marks: found by the beginning of their names, which may hold any character."""

from __future__ import annotations

from headgate.core.ledger.ops_store import OpsStore


def test_marks_are_found_by_how_their_names_begin(store: OpsStore) -> None:
    store.mark("rules-deployed:a_b", "1")
    store.mark("rules-deployed:c%", "2")
    store.mark("rules_deployed:x", "3")
    found = store.marks("rules-deployed:")
    assert {name: mark.value for name, mark in found.items()} == {
        "rules-deployed:a_b": "1",
        "rules-deployed:c%": "2",
    }
    assert store.marks("rules%") == {}
