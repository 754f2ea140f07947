"""The sweep: what a stream cannot see of a key, since no record comes for it.

A key past its deadline, and a key whose halves stand in two windows, wait for nothing more that a batch
could bring. So between batches such keys are merged from the table of states and judged as a whole, under
the job's run, with an intent and a ledger row of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from headgate.core.engine.context import RunContext
from headgate.core.engine.protocol import later_than
from headgate.core.lake.iceberg import ManagedTable
from headgate.core.lake.reach import topic_reached
from headgate.core.ledger.ops_store import utc_now
from headgate.core.ledger.store_model import TABLE_SOURCE, LedgerRow, Range
from headgate.core.sql.compile_fragments import job_name
from headgate.quality.revision import deployed
from headgate.reconcile.job.reconcile_swept import SweepWork, count_candidates
from headgate.reconcile.job.reconcile_target import ReconcileTarget
from headgate.reconcile.job.sweep_bounds import (
    BATCHES,
    UNTIL,
    Look,
    ended_ends,
    is_amid_round,
    look_of,
    next_ends,
    round_ends,
    single_ends,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "sweep"
SECONDS = 5.0
# A sweep that takes long must not become what the job does most of the time.
SHARE, BATCH = 4, "batch"
# So many waiting keys are judged at once; where there are more, a batch may come between two portions.
PORTION = 200_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def sweep_job(table: str) -> str:
    """The name that the sweeps of a table have in its commits and in the ledger."""
    return job_name(KIND, table)


class Sweep:
    """Sweeps a pair every few seconds, and once more at the end of a batch run."""

    def __init__(
        self,
        context: RunContext,
        target: ReconcileTarget,
        clock: Callable[[], datetime] = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context, self._target = context, target
        self._clock, self._monotonic = clock, monotonic
        self._session: SparkSession = context.session.newSession()
        self._job = sweep_job(target.name)
        self._results = ManagedTable(self._session, target.table)
        self._next = float("-inf")
        self._looked: Mapping[str, int] = {}
        self.rows: list[LedgerRow] = []

    def tick(self) -> None:
        begun = self._monotonic()
        if begun < self._next or self._context.run.mode == BATCH:
            return
        self.sweep()
        took = self._monotonic() - begun
        self._next = self._monotonic() + max(SECONDS, SHARE * took)

    def settled(self, row: LedgerRow) -> None:
        """A batch says nothing that a look at the tables would not."""

    def ended(self) -> None:
        """The end of a batch run: no record can settle what still waits, so its input's end does."""
        while self.sweep() is not None and is_amid_round(self._last()):
            self._context.still_mine()
        last, now = self._last(), self._ends()
        look = Look(0, 0, now[UNTIL], now[UNTIL], ended=True)
        rules = self._target.revisions.of(self._revision())
        if self._results.exists() and count_candidates(self._session, self._target, rules, look):
            self._carried_out(self._range(last, ended_ends(last, now)))

    def sweep(self) -> LedgerRow | None:
        """Judge what is due now, or a portion of it; None when nothing was."""
        store = self._context.store
        if store.open_intents(self._target.job) or not self._results.exists():
            return None  # what that batch writes would be written behind our back
        done = self.finish_open()
        last, now = self._last(), self._ends()
        if is_amid_round(last):
            return self._carried_out(self._range(last, next_ends(last, now)))
        since = {key: max(last.get(key, 0), self._looked.get(key, 0)) for key in now}
        if now[UNTIL] <= since[UNTIL]:
            return done
        rules = self._target.revisions.of(self._revision())
        look = Look(since[UNTIL], since[BATCHES], now[UNTIL], now[UNTIL])
        waiting = count_candidates(self._session, self._target, rules, look)
        if waiting > PORTION:
            portions = -(-waiting // PORTION)
            return self._carried_out(self._range(last, round_ends(last, now, portions))) or done
        if waiting:
            done = self._carried_out(self._range(last, single_ends(last, now, since))) or done
        self._looked = now
        return done

    def _carried_out(self, range_: Range) -> LedgerRow | None:
        """One sweep as its range has it, judged behind the time until which it looks.

        A clock that was set back would else find keys of that time not due, and never look again.
        """
        context, protocol, look = self._context, self._context.protocol(), look_of(range_)
        work = SweepWork(self._session, self._target, protocol, look)
        run, revisions, after = context.run.number, (self._revision(),), _time(look.at)
        return self._kept(protocol.process(self._job, run, range_, revisions, 0, work, after))

    def finish_open(self) -> LedgerRow | None:
        """What a killed run announced, judged at the time that it announced."""
        done, protocol = None, self._context.protocol()
        for intent in self._context.store.open_intents(self._job):
            work = SweepWork(self._session, self._target, protocol, look_of(intent.range))
            done = self._kept(protocol.finish(intent, work))
        return done

    def _kept(self, row: LedgerRow | None) -> LedgerRow | None:
        if row is not None:
            self.rows.append(row)
        return row

    def _ends(self) -> dict[str, int]:
        """Now, and the pair's last batch: times rise for each job, but a clock that is set back
        makes those of one job lie behind the other's."""
        store = self._context.store
        batch = store.last_batch_time(self._target.job) or _EPOCH
        swept = store.last_batch_time(self._job)
        now = later_than(max(batch, swept) if swept else batch, self._clock())
        return {UNTIL: _micros(now), BATCHES: _micros(batch)}

    def _last(self) -> Mapping[str, int]:
        """How far sweeps have come, by the table or the ledger."""
        reached = topic_reached(self._results, self._context.store, self._job)
        return reached.end if reached else {}

    def _range(self, start: Mapping[str, int], end: Mapping[str, int]) -> Range:
        states = ManagedTable(self._session, self._target.states)
        name = self._target.states.partition(".")[2]
        begin = {key: start.get(key, 0) for key in end}
        return Range(f"{TABLE_SOURCE}{name}", states.look().uuid, begin, dict(end))

    def _revision(self) -> str:
        """As it is deployed now: a run takes over a new one between batches."""
        return deployed(self._context.store, self._target.name) or self._context.run.revision


def _micros(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
