"""The sweep: judges keys for which no record arrives, which a stream alone would never look at again.

A key past its deadline, and a key whose two sides stand in two windows, wait for nothing that a batch could still
bring. So between batches such keys are merged from the table of states and judged as a whole, under the job's run,
with an intent and a ledger row of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from headgate.core.engine.batch import BatchProtocol, Point, Result, later_than
from headgate.core.engine.run import RunContext
from headgate.core.engine.staging import publish_once, set_clock, stage
from headgate.core.lake.spark import sql
from headgate.core.lake.table import ManagedTable, Reached, topic_reached
from headgate.core.ledger.model import Intent, LedgerRow
from headgate.core.ledger.ops_store import utc_now
from headgate.core.ledger.ranges import SweepRange, expect_range
from headgate.core.sql.fragments import job_name
from headgate.core.sql.script import Script
from headgate.errors import OperationError
from headgate.quality.job.batch import bind_committed, closed_before, set_batch
from headgate.quality.revision import RulesRevision
from headgate.quality.spec.reconcile_checks import Limits
from headgate.quality.store import RuleStore
from headgate.reconcile.compile.states import merged_query
from headgate.reconcile.job.states import LAST, steady
from headgate.reconcile.job.sweep_bounds import (
    SweepBounds,
    SweepProgress,
    SweepTimes,
    sweep_bounds,
)
from headgate.reconcile.job.target import ReconcileTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SWEPT = "swept"
CANDIDATES = "dq_sweep_keys"
# In a table of so many states keys in two windows are looked for at every sweep.
FEW_STATES = 2_000_000
# Sides that are far apart in one window may have met in another: a batch cannot tell.
LATE = "provisional = 'LATE_MATCH'"


def count_candidates(
    session: SparkSession, target: ReconcileTarget, rules: RulesRevision, bounds: SweepBounds
) -> int:
    """At most so many keys may have another verdict by now, of those not looked at before; 0 if none.

    A key is due when its deadline has passed, or was past when it was written.
    """
    if bounds.ended:
        return sql(session, _candidates(session, target, rules, bounds)).count()
    due, waiting = _waiting(session, target, bounds)
    if due or not waiting:
        return waiting if due else 0
    return 0 if sql(session, _candidates(session, target, rules, bounds)).isEmpty() else waiting


def _waiting(
    session: SparkSession, target: ReconcileTarget, bounds: SweepBounds
) -> tuple[bool, int]:
    """Whether a key is due, and how many rows wait that are due or new: only new files are read."""
    due, passed, fresh = _tests(bounds)
    now = f"({due} AND {passed}) OR ({fresh} AND {LATE})"
    (found,) = sql(
        session,
        f"SELECT max({now}) AS due, count(*) AS waiting FROM {target.table}"
        f" WHERE NOT settled AND processing_time <= timestamp_micros({bounds.until}L)"
        f" AND (({due} AND {passed}) OR {fresh})",
    ).collect()
    return bool(found["due"]), int(found["waiting"])


def _tests(bounds: SweepBounds) -> tuple[str, str, str]:
    """Past its deadline; not looked at since; written since."""
    fresh = f"processing_time > timestamp_micros({bounds.batches}L)"
    due = f"deadline <= timestamp_micros({bounds.until}L)"
    return due, f"(deadline > timestamp_micros({bounds.since}L) OR {fresh})", fresh


def _candidates(
    session: SparkSession, target: ReconcileTarget, rules: RulesRevision, bounds: SweepBounds
) -> str:
    until = bounds.until
    written = f"processing_time <= timestamp_micros({until}L)"
    if bounds.ended:
        return f"""SELECT pk
FROM {target.table}
WHERE {written}
GROUP BY pk
HAVING NOT max_by(settled, struct({LAST}))"""
    due, passed, fresh = _tests(bounds)
    waiting = f"SELECT pk FROM {target.table} WHERE NOT settled AND {written} AND {bounds.shard_condition}"
    keys = f"{waiting} AND (({due} AND {passed}) OR ({fresh} AND {LATE}))"
    if _looks_around(session, target, limits_of(rules), until):
        keys += f"""
UNION
SELECT pk
FROM {target.states}
WHERE batch_time <= timestamp_micros({until}L)
  AND pk IN ({waiting} AND {fresh} AND NOT {due})
GROUP BY pk
HAVING count(DISTINCT window_start) > 1"""
    return f"SELECT DISTINCT pk FROM ({keys})"


def _looks_around(
    session: SparkSession, target: ReconcileTarget, limits: Limits, until: int
) -> bool:
    """Halves in two windows are found at once while the window is young, or where that costs little."""
    current = ManagedTable(session, target.states).look().current()
    if current is None:
        return False
    horizon = limits.horizon // timedelta(microseconds=1)
    young = until % horizon < limits.wait // timedelta(microseconds=1)
    few = int(current.summary.get("total-records", "0")) <= FEW_STATES
    return (young or few) and _has_windows(session, target)


def _has_windows(session: SparkSession, target: ReconcileTarget) -> bool:
    """Whether the states are of more than one window, by what the table knows of its files."""
    bounds = "readable_metrics.window_start"
    (found,) = sql(
        session,
        f"SELECT min({bounds}.lower_bound) < max({bounds}.upper_bound) AS several"
        f" FROM {target.states}.files",
    ).collect()
    return bool(found["several"])


def limits_of(rules: RulesRevision) -> Limits:
    if rules.limits is None:
        raise OperationError(f"{rules.name} is no reconciled pair")
    return rules.limits


class SweepWork:
    """The work of one sweep, as the protocol asks for it."""

    def __init__(
        self,
        session: SparkSession,
        target: ReconcileTarget,
        protocol: BatchProtocol,
        bounds: SweepBounds,
    ) -> None:
        self._session, self._target, self._protocol = session, target, protocol
        self._bounds = bounds
        self._results = ManagedTable(session, target.table)
        self._partials = ManagedTable(session, target.partials)

    def reached(self, intent: Intent) -> Reached | None:
        return topic_reached(self._results, self._protocol.store, intent.job)

    def account(self, intent: Intent) -> Result | None:
        """Its windows are those of the pair's own job: there they are closed."""
        return self._target.account(self._session, intent, windows_of=self._target.job)

    def write(self, intent: Intent) -> Result:
        rules = self._target.revisions.of(intent.revisions[0])
        script = self._target.revisions.script(intent.revisions[0])
        self._bind(intent, script, rules)
        with self._changed(intent, script, rules) as changed:
            changed.createOrReplaceTempView(rules.names.changes)
            results = stage(self._results, intent, script.one("accept"))
        bind_committed(self._session, script, rules, self._results.appended(results))
        outcomes = {SWEPT: results.added}
        partials = stage(self._partials, intent, script.one("partials"), outcomes)
        self._protocol.faults.at(Point.AFTER_STAGING)
        publish_once(self._partials, intent, partials)
        self._protocol.faults.at(Point.AFTER_PARTIALS)
        return self._protocol.published(self, intent, lambda: self._results.publish(results))

    def _bind(self, intent: Intent, script: Script, rules: RulesRevision) -> None:
        """The clock of the file; its sources are not asked."""
        for statement in script.named("clock"):
            sql(self._session, statement)
        set_clock(self._session, intent)
        set_batch(
            self._session, intent, closed_before(self._protocol, self._session, rules, intent)
        )

    @contextmanager
    def _changed(
        self, intent: Intent, script: Script, rules: RulesRevision
    ) -> Generator[DataFrame]:
        """The verdicts on the candidates' merged states that were not told before."""
        until = self._bounds.at
        keys = _candidates(self._session, self._target, rules, self._bounds)
        sql(self._session, keys).createOrReplaceTempView(CANDIDATES)
        own = (
            f"(SELECT states.* FROM {self._target.states} AS states LEFT SEMI JOIN {CANDIDATES}"
            f" ON states.pk = {CANDIDATES}.pk WHERE batch_time <= timestamp_micros({until}L))"
        )
        ended = str(self._bounds.ended).upper()
        now = steady("session.batch_time")
        about = f"TRUE AS whole, {ended} AS ended, {now} AS judged_at, 'sweep' AS origin"
        merged = sql(self._session, f"SELECT *, {about} FROM ({merged_query(own)})")
        merged.createOrReplaceTempView(rules.names.states)
        names = rules.names
        for view in (names.facts, names.decided, names.verdicts, names.results):
            sql(self._session, script.view(view))
        judged = self._session.table(names.results).persist()
        try:
            yield judged.join(self._last_told(), ["pk", "id"], "left_anti")
        finally:
            judged.unpersist()

    def _last_told(self) -> DataFrame:
        """What was last told of each candidate: at the earliest by the row that made it one.

        Only the last counts: a verdict that comes back at the same versions is told again.
        """
        due, passed, fresh = _tests(self._bounds)
        looked_at = "TRUE" if self._bounds.ended else f"(({due} AND {passed}) OR {fresh})"
        (row,) = sql(
            self._session,
            f"SELECT unix_micros(min(processing_time)) AS least FROM {self._target.table}"
            f" WHERE NOT settled AND {looked_at}",
        ).collect()
        return sql(
            self._session,
            f"SELECT told.pk, max_by(id, struct({LAST})) AS id FROM {self._target.table} AS told"
            f" LEFT SEMI JOIN {CANDIDATES} ON told.pk = {CANDIDATES}.pk"
            f" WHERE processing_time >= timestamp_micros({int(row['least'] or 0)}L)"
            f" AND processing_time <= timestamp_micros({self._bounds.at}L) GROUP BY told.pk",
        )


KIND = "sweep"
SECONDS = 5.0
# A sweep that takes long must not become what the job does most of the time.
SHARE, BATCH = 4, "batch"
# So many waiting keys are judged at once; where there are more, a batch may come between two shards.
SHARD_KEYS = 200_000
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
        self._examined = SweepTimes()
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
        while self.sweep() is not None and self._progress().is_amid_round:
            self._context.still_mine()
        progress, now = self._progress(), self._now()
        bounds = SweepBounds(0, 0, now.until, now.until, ended=True)
        rules = self._target.revisions.of(self._revision())
        if self._results.exists() and count_candidates(self._session, self._target, rules, bounds):
            self._carry_out(progress, progress.after_end_of_input(now))

    def sweep(self) -> LedgerRow | None:
        """Judge what is due now, or a shard of it; None when nothing was."""
        store = self._context.store
        if store.open_intents(self._target.job) or not self._results.exists():
            return None  # what that batch writes would be written behind our back
        done = self.finish_open()
        progress, now = self._progress(), self._now()
        if progress.is_amid_round:
            return self._carry_out(progress, progress.after_next_shard(now))
        since = SweepTimes(*map(max, progress.times, self._examined))
        if now.until <= since.until:
            return done
        rules = self._target.revisions.of(self._revision())
        bounds = SweepBounds(since.until, since.batches, now.until, now.until)
        waiting = count_candidates(self._session, self._target, rules, bounds)
        if waiting > SHARD_KEYS:
            shards = -(-waiting // SHARD_KEYS)
            return self._carry_out(progress, progress.after_first_shard(now, shards)) or done
        if waiting:
            done = self._carry_out(progress, progress.after_single(now, since)) or done
        self._examined = now
        return done

    def _carry_out(self, before: SweepProgress, after: SweepProgress) -> LedgerRow | None:
        """One sweep between these two, judged behind the time until which it examines.

        A clock that was set back would else find keys of that time not due, and never examine them again.
        """
        states = ManagedTable(self._session, self._target.states)
        name = self._target.states.partition(".")[2]
        range_ = SweepRange(name, states.look().uuid, before.counters, after.counters)
        protocol, bounds = self._context.protocol(), sweep_bounds(range_)
        work = SweepWork(self._session, self._target, protocol, bounds)
        run, revisions, after_time = self._context.run.number, (self._revision(),), _time(bounds.at)
        return self._kept(protocol.process(self._job, run, range_, revisions, 0, work, after_time))

    def finish_open(self) -> LedgerRow | None:
        """What a killed run announced, judged at the time that it announced."""
        done, protocol = None, self._context.protocol()
        for intent in self._context.store.open_intents(self._job):
            bounds = sweep_bounds(expect_range(intent.range, SweepRange))
            work = SweepWork(self._session, self._target, protocol, bounds)
            done = self._kept(protocol.finish(intent, work))
        return done

    def _kept(self, row: LedgerRow | None) -> LedgerRow | None:
        if row is not None:
            self.rows.append(row)
        return row

    def _now(self) -> SweepTimes:
        """Now, and the pair's last batch: times rise for each job, but a clock that is set back
        makes those of one job lie behind the other's."""
        store = self._context.store
        batch = store.last_batch_time(self._target.job) or _EPOCH
        swept = store.last_batch_time(self._job)
        now = later_than(max(batch, swept) if swept else batch, self._clock())
        return SweepTimes(_micros(now), _micros(batch))

    def _progress(self) -> SweepProgress:
        """How far sweeps have come, by the table or the ledger."""
        reached = topic_reached(self._results, self._context.store, self._job)
        return SweepProgress.parse(reached.end) if reached else SweepProgress()

    def _revision(self) -> str:
        """As it is deployed now: a run takes over a new one between batches."""
        rules = self._context.store.part(RuleStore)
        return rules.deployed_revision(self._target.name) or self._context.run.revision


def _micros(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
