"""The end of a bounded input settles what would wait, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from tests.support.reconcile_messages import random_messages
from tests.support.rule_tables import compile_shipped, script_of, shipped_table

from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.decision_table import judge
from headgate.reconcile.state import Reading, of_message

AT = datetime(2026, 1, 10, 12, tzinfo=UTC)
ONPREM = of_message("onprem", "k", Reading(AT, 0, 1, "a" * 64, 2, None, read_at=AT))


def test_a_key_that_waits_is_judged_as_if_its_deadline_had_passed() -> None:
    now, later = AT + timedelta(seconds=1), AT + Limits().wait
    waiting, ended, due = (
        judge(ONPREM, now, Limits()),
        judge(ONPREM, now, Limits(), ended=True),
        judge(ONPREM, later, Limits()),
    )
    assert (waiting.status, waiting.provisional) == ("PENDING", "MISSING_CLOUD")
    assert ended == due
    assert (ended.status, ended.settled) == ("MISSING_CLOUD", True)


def test_the_state_of_one_window_alone_is_not_settled_by_it() -> None:
    assert not judge(ONPREM, AT, Limits(), whole=False, ended=True).settled


def test_no_key_waits_behind_the_end() -> None:
    for message in random_messages(Random(11), 200):
        assert judge(message.state, AT - timedelta(days=9), Limits(), ended=True).settled


def test_a_result_says_what_has_settled_it() -> None:
    script = script_of(compile_shipped("customer"), shipped_table("customer"))
    results = " ".join(script.view("dq_results_customer").split())
    assert (
        "CASE WHEN is_pending THEN NULL WHEN NOT has_waited THEN 'records'"
        " WHEN judged_at >= deadline THEN 'deadline' ELSE 'end_of_input' END AS settled_by"
    ) in results
    by_hand = script.view("dq_states_customer")
    assert "TRUE AS ended" in by_hand
