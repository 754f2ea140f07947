"""The account of a rule table: what it must hold, and that it fails when one thing is off."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate.core.accounting.evidence import Commit, TableEvidence, TopicEvidence, Verdict
from headgate.core.ledger.model import Intent, LedgerRow
from headgate.core.ledger.ranges import Range, TableRange, TopicRange
from headgate.quality.accounting import RuleEvidence, account

TIME = datetime(2024, 1, 1, tzinfo=UTC)
OUTCOMES = {"accepted": 7, "dead_letter": 1, "refused": 1, "tombstone": 1}


def batch(range_: Range, **outcomes: int) -> LedgerRow:
    read = sum(outcomes.values())
    return LedgerRow(
        1, "quality-x", 1, range_, ("r",), TIME, 0, read, read, 0, outcomes, {"t": 1}, TIME
    )


def table(rows: int, *commits: Commit) -> TableEvidence:
    return TableEvidence("dq.x", rows, "h", (), "m", 1, TIME, commits or (Commit(1, "append", {}),))


TOPIC = RuleEvidence(
    table="x",
    ledger=(batch(TopicRange("t", "id", {"0": 0}, {"0": 10}), **OUTCOMES),),
    open_batches=0,
    streaming=False,
    settled=frozenset({1}),
    results=table(8),
    partials=table(3),
    letters=2,
    rows_counted=8,
    rules_counted=2,
    rules_settled=2,
    on_broker=TopicEvidence("id", {"0": 0}, {"0": 10}),
)


def failing(evidence: RuleEvidence) -> set[str]:
    return {line.name for line in account(evidence).lines if line.verdict is Verdict.FAIL}


def test_an_account_that_adds_up_holds() -> None:
    assert account(TOPIC).holds
    assert {line.verdict for line in account(TOPIC).lines} == {Verdict.PASS}


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"results": table(9)}, {"results", "windows"}),
        ({"letters": 3}, {"dead letters"}),
        ({"rows_counted": 7}, {"windows"}),
        ({"rules_counted": 3}, {"rules"}),
        ({"open_batches": 1}, {"open batches"}),
        ({"partials": table(3, Commit(99, "append", {}))}, {"history of dq.x"}),
    ],
)
def test_whatever_is_off_is_named(changed: dict[str, Any], line: set[str]) -> None:
    assert failing(replace(TOPIC, **changed)) == line


def test_commits_of_batches_without_a_ledger_row_must_be_those_of_a_known_intent() -> None:
    """A batch that was given up has published partials, and taking them back deleted rows."""
    intent = Intent(5, "quality-x", 1, TOPIC.ledger[0].range, ("r",), TIME, 1)
    summary = {
        "headgate.job": "fence-quality-x",
        "headgate.batch-time": TIME.isoformat(),
        "deleted-data-files": "1",
        "deleted-records": "4",
    }
    taken_back = replace(TOPIC, partials=table(3, Commit(9, "overwrite", summary)))
    assert failing(taken_back) == {"history of dq.x"}
    assert failing(replace(taken_back, unsettled=(intent,))) == set()
    other = replace(intent, batch_time=TIME + timedelta(seconds=1))
    assert failing(replace(taken_back, unsettled=(other,))) == {"history of dq.x"}


def test_offsets_that_were_judged_twice_are_found() -> None:
    again = batch(TopicRange("t", "id", {"0": 5}, {"0": 10}), accepted=5)
    twice = replace(TOPIC, ledger=(*TOPIC.ledger, again), results=table(13), rows_counted=13)
    assert failing(twice) == {"offsets"}


def test_what_waits_on_the_topic_is_told_and_no_failure() -> None:
    more = replace(TOPIC, on_broker=TopicEvidence("id", {"0": 0}, {"0": 12}))
    (told,) = [line for line in account(more).lines if line.verdict is Verdict.WARN]
    assert told.detail == "2 records are not judged yet"


TABLE = TableRange("silver.a", "i", None, 3)


def test_of_evaluations_of_a_snapshot_only_the_last_counts() -> None:
    ledger = (batch(TABLE, accepted=2), batch(TABLE, accepted=4, refused=1))
    evidence = replace(TOPIC, ledger=ledger, results=table(4), rows_counted=4, letters=1)
    assert account(evidence).holds
    (records,) = [line for line in account(evidence).lines if line.name == "records"]
    assert records.words == "read 5 = accepted 4 + refused 1"


def at(second: int) -> datetime:
    return TIME + timedelta(seconds=second)


def evaluated(*refused: int) -> RuleEvidence:
    """Evaluations a second apart, each of which refused so many."""
    made = [batch(TABLE, accepted=2, refused=n // 2, dead_letter=n - n // 2) for n in refused]
    ledger = tuple(replace(row, batch_time=at(second)) for second, row in enumerate(made))
    return replace(TOPIC, ledger=ledger)


@pytest.mark.parametrize(
    ("refused", "written", "holds"),
    [
        ((2,), {0: 2}, True),
        ((2,), {0: 1}, True),
        ((2,), {0: 4}, False),
        ((2,), {}, False),
        ((2, 2), {0: 2}, True),
        ((2, 2), {0: 3}, False),
        ((2, 3), {0: 2, 1: 1}, True),
        ((1, 3), {0: 2, 1: 1}, False),
        ((2, 0), {0: 2}, True),
        ((2,), {-1: 2}, True),
        ((0,), {}, True),
    ],
)
def test_letters_of_an_evaluation_are_held_against_what_it_refused(
    refused: tuple[int, ...], written: dict[int, int], holds: bool
) -> None:
    letters = {at(second): n for second, n in written.items()}
    made = evaluated(*refused)
    found = replace(made, letters=sum(letters.values()), letters_at=letters)
    assert failing(found) == (set() if holds else {"dead letters"})
