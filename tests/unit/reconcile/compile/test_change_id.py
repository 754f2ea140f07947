"""The name of a change: the same however often it is told, and another for another pair."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

from headgate.reconcile.decision_table import change_id

AT = datetime(2026, 1, 10, 12, tzinfo=UTC)


def test_pairs_that_share_keys_have_changes_of_their_own() -> None:
    assert change_id("orders", "42", AT, None, "MATCH") == change_id(
        "orders", "42", AT, None, "MATCH"
    )
    assert change_id("orders", "42", AT, None, "MATCH") != change_id(
        "customer", "42", AT, None, "MATCH"
    )


def test_no_two_changes_have_one_name() -> None:
    parts = (("a", "b"), ("1", "a\n1", "b\n1"), (AT, None), (AT, None), ("MATCH", "ZOMBIE"))
    told = list(product(*parts))
    assert len({change_id(*change) for change in told}) == len(told)
