"""How a job stands, for people: its newest run, its pace over the last batches, what it waits for.

Pure: the kind of the job, a run and its newest ledger rows in, values out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.core.engine.job_kind import JobKind
from headgate.core.ledger.model import LedgerRow, Run, RunState
from headgate.core.ledger.ranges import Range

LAST = 10
WINDOW = timedelta(minutes=1)
# The outcomes that became rows of the job's table.
WRITTEN = ("accepted", "kept", "routed")
# Above 1 a stream falls behind its trigger; for three batches on end, that is no accident.
HIGH, ON_END = 1.0, 3
# So many partitions are told one by one.
FEW = 4


@dataclass(frozen=True)
class BatchView:
    """One settled batch."""

    batch: int
    run: int
    committed_at: str
    seconds: float
    read: int
    rows_per_s: int
    outcomes: str


@dataclass(frozen=True)
class JudgedBatchView(BatchView):
    """One settled batch of a rule table's job, with the offsets that its revision judged."""

    revision: str
    offsets: str


@dataclass(frozen=True)
class Pace:
    """Rows a second over the last minute, and how long batches take."""

    rows_in_per_s: float
    rows_out_per_s: float
    last_batch_seconds: float | None
    processed_per_s: float | None
    backpressure: float | None
    falls_behind: bool


@dataclass(frozen=True)
class JobView:
    """Everything `job show` tells, apart from the lag."""

    job: str
    run: int
    mode: str
    state: str
    since: str | None
    batches: int
    records: int
    restarts: int
    last_restart: str
    trouble: str
    pace: Pace
    last: tuple[BatchView, ...]


def view(
    kind: JobKind,
    run: Run,
    rows: Sequence[LedgerRow],
    trigger_seconds: float,
    now: datetime,
) -> JobView:
    """The job as its newest run and its newest ledger rows (oldest first) tell it."""
    batch = _judged if kind.shows_revisions else _batch
    return JobView(
        job=run.job,
        run=run.number,
        mode=run.mode,
        state=str(run.state),
        since=f"{run.started_at:%Y-%m-%d %H:%M:%S} UTC" if run.started_at else None,
        batches=run.progress.batches,
        records=run.progress.records,
        restarts=run.restarts,
        last_restart=_restart_words(run),
        trouble=_trouble(run),
        pace=pace(kind, run, rows, trigger_seconds, now),
        last=tuple(batch(row) for row in rows[-LAST:]),
    )


def pace(
    kind: JobKind, run: Run, rows: Sequence[LedgerRow], trigger_seconds: float, now: datetime
) -> Pace:
    recent = [row for row in rows if row.committed_at > now - WINDOW]
    window = WINDOW.total_seconds()
    taken = [seconds(row) for row in rows[-LAST:] if not row.is_accepted_gap]
    read = sum(row.read for row in rows[-LAST:])
    triggered = run.mode == "streaming" and kind.follows_topics
    over = [took / trigger_seconds for took in taken] if triggered else []
    return Pace(
        rows_in_per_s=round(sum(row.read for row in recent) / window, 1),
        rows_out_per_s=round(sum(written(row.outcomes) for row in recent) / window, 1),
        last_batch_seconds=taken[-1] if taken else None,
        processed_per_s=round(read / sum(taken), 1) if sum(taken) else None,
        backpressure=round(over[-1], 2) if over else None,
        falls_behind=len(over) >= ON_END and all(value > HIGH for value in over[-ON_END:]),
    )


def seconds(row: LedgerRow) -> float:
    """From its announcement to its outcome."""
    return round((row.committed_at - row.batch_time).total_seconds(), 2)


def written(outcomes: Mapping[str, int]) -> int:
    return sum(outcomes.get(name, 0) for name in WRITTEN)


def _batch(row: LedgerRow) -> BatchView:
    took = seconds(row)
    words = ", ".join(f"{n:,} {name}" for name, n in row.outcomes.items() if n)
    if row.is_accepted_gap:
        words = f"{row.gaps:,} expired unread, accepted"
    return BatchView(
        row.batch_id,
        row.run,
        f"{row.committed_at:%Y-%m-%d %H:%M:%S}",
        took,
        row.read,
        round(row.read / took) if took else 0,
        words or "no record",
    )


def _judged(row: LedgerRow) -> JudgedBatchView:
    by = ",".join(revision[:12] for revision in row.revisions)
    return JudgedBatchView(**vars(_batch(row)), revision=by, offsets=_offsets(row.range))


def _offsets(range_: Range) -> str:
    """Of each partition, from the first to behind the last."""
    keys = sorted(range_.end, key=lambda key: (len(key), key))
    moved = [k for k in keys if range_.end[k] != range_.start.get(k, 0)]
    told = [f"{key}:{range_.start.get(key, 0)}-{range_.end[key]}" for key in moved]
    more = f" and {len(told) - FEW} more" if len(told) > FEW else ""
    return " ".join(told[:FEW]) + more


def _restart_words(run: Run) -> str:
    if run.restarted_at is None:
        return ""
    reason = (run.restart_reason or "").split(" | ")[0]
    return f"{run.restarted_at:%Y-%m-%d %H:%M:%S} UTC: {reason}"


def _trouble(run: Run) -> str:
    if not run.error_text:
        return ""
    return run.error_text if run.state is RunState.FAILED else f"waits: {run.error_text}"
