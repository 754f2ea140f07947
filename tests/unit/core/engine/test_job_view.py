from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from headgate.core.engine.job_kind import KINDS
from headgate.core.engine.job_status import JobView, JudgedBatchView, view
from headgate.core.ledger.model import (
    ACCEPTED_GAP,
    LedgerRow,
    Progress,
    Run,
    RunState,
)
from headgate.core.ledger.ranges import TopicRange

NOW = datetime(2024, 1, 1, 12, tzinfo=UTC)
RUN = Run(
    "bronze-orders",
    3,
    "bronze",
    "orders",
    "streaming",
    "r",
    {},
    RunState.RUNNING,
    restarts=0,
    submitted_at=NOW,
    started_at=NOW,
    progress=Progress(2, 300, words="300 accepted"),
)


def batch(number: int, ago: float, took: float, **outcomes: int) -> LedgerRow:
    n = sum(outcomes.values())
    done = NOW - timedelta(seconds=ago)
    range_ = TopicRange("orders", "id1", {"0": 0}, {"0": n})
    begun = done - timedelta(seconds=took)
    return LedgerRow(None, RUN.job, 3, range_, ("r",), begun, number, n, n, 0, outcomes, {}, done)


def seen(*rows: LedgerRow, run: Run = RUN) -> JobView:
    return view(KINDS[run.kind], run, rows, trigger_seconds=10, now=NOW)


def test_rows_a_second_are_those_of_the_last_minute() -> None:
    old = batch(0, ago=90, took=1, accepted=60_000)
    pace = seen(old, batch(1, 50, 2, accepted=540, refused=60), batch(2, 5, 4, accepted=600)).pace
    assert (pace.rows_in_per_s, pace.rows_out_per_s) == (20.0, 19.0)
    assert pace.last_batch_seconds == 4


def test_backpressure_is_the_last_batch_over_the_trigger() -> None:
    assert seen(batch(1, 5, 4, accepted=1)).pace.backpressure == 0.4
    assert (
        seen(batch(1, 5, 4, accepted=1), run=replace(RUN, mode="batch")).pace.backpressure is None
    )
    assert seen().pace.backpressure is None


def test_three_batches_longer_than_the_trigger_fall_behind() -> None:
    slow = [batch(n, 5, 12, accepted=1) for n in range(3)]
    assert seen(*slow).pace.falls_behind
    assert not seen(*slow[:2]).pace.falls_behind
    assert not seen(*slow, batch(3, 1, 2, accepted=1)).pace.falls_behind


def test_the_last_ten_batches_are_shown_with_their_outcomes() -> None:
    found = seen(*(batch(n, 5, 2, accepted=90, refused=10) for n in range(12))).last
    assert [b.batch for b in found] == list(range(2, 12))
    assert (found[-1].read, found[-1].rows_per_s) == (100, 50)
    assert found[-1].outcomes == "90 accepted, 10 refused"


def test_an_accepted_gap_says_so() -> None:
    gap = replace(batch(ACCEPTED_GAP, 5, 1), gaps=7, span=7)
    assert seen(gap).last[0].outcomes == "7 expired unread, accepted"


def test_a_run_that_waits_says_for_what() -> None:
    waiting = replace(RUN, error_text="the broker is away | no answer | make up")
    assert seen(run=waiting).trouble == "waits: the broker is away | no answer | make up"
    failed = replace(waiting, state=RunState.FAILED)
    assert seen(run=failed).trouble == "the broker is away | no answer | make up"
    assert seen().trouble == ""


def test_the_last_restart_is_told_with_its_reason() -> None:
    reason = "its engine went away | why"
    again = replace(RUN, restarts=1, restarted_at=NOW, restart_reason=reason)
    assert seen(run=again).last_restart == "2024-01-01 12:00:00 UTC: its engine went away"
    assert seen().last_restart == ""


def test_a_quality_batch_says_which_revision_judged_which_offsets() -> None:
    quality = replace(RUN, kind="quality", job="quality-orders")
    many = {str(p): 10 for p in range(6)}
    row = replace(
        batch(1, 5, 2, accepted=10),
        revisions=("0123456789abcdef",),
        range=TopicRange("orders", "t1", {"0": 5}, {"0": 15, "1": 0}),
    )
    (last,) = seen(row, run=quality).last
    assert isinstance(last, JudgedBatchView)
    assert (last.revision, last.offsets) == ("0123456789ab", "0:5-15")
    (wide,) = seen(replace(row, range=TopicRange("orders", "t1", {}, many)), run=quality).last
    assert isinstance(wide, JudgedBatchView)
    assert wide.offsets.endswith("3:0-10 and 2 more")
