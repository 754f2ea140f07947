"""One sweep: which keys, their states merged, their verdicts, and what of it is new."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from headgate.core.engine.binding import set_clock
from headgate.core.engine.faults import Point
from headgate.core.engine.protocol import BatchProtocol, Result
from headgate.core.engine.refusals import publish_once, stage
from headgate.core.lake.iceberg import ManagedTable
from headgate.core.lake.reach import Reached, topic_reached
from headgate.core.lake.statements import sql
from headgate.core.ledger.store_model import Intent
from headgate.core.sql.compile_script import Script
from headgate.errors import OperationError
from headgate.quality.job.quality_batch import bind_committed, closed_before, set_batch
from headgate.quality.revision import RulesRevision
from headgate.quality.spec.limits import Limits
from headgate.reconcile.compile.merging import merged_query
from headgate.reconcile.job.reconcile_states import LAST
from headgate.reconcile.job.reconcile_target import ReconcileTarget
from headgate.reconcile.job.steady import steady
from headgate.reconcile.job.sweep_bounds import Look

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SWEPT = "swept"
CANDIDATES = "dq_sweep_keys"
# In a table of so many states keys in two windows are looked for at every sweep.
FEW_STATES = 2_000_000
# Sides that are far apart in one window may have met in another: a batch cannot tell.
LATE = "provisional = 'LATE_MATCH'"


def count_candidates(
    session: SparkSession, target: ReconcileTarget, rules: RulesRevision, look: Look
) -> int:
    """At most so many keys may have another verdict by now, of those not looked at before; 0 if none.

    A key is due when its deadline has passed, or was past when it was written.
    """
    if look.ended:
        return sql(session, _candidates(session, target, rules, look)).count()
    due, waiting = _waiting(session, target, look)
    if due or not waiting:
        return waiting if due else 0
    return 0 if sql(session, _candidates(session, target, rules, look)).isEmpty() else waiting


def _waiting(session: SparkSession, target: ReconcileTarget, look: Look) -> tuple[bool, int]:
    """Whether a key is due, and how many rows wait that are due or new: only new files are read."""
    due, passed, fresh = _tests(look)
    now = f"({due} AND {passed}) OR ({fresh} AND {LATE})"
    (found,) = sql(
        session,
        f"SELECT max({now}) AS due, count(*) AS waiting FROM {target.table}"
        f" WHERE NOT settled AND processing_time <= timestamp_micros({look.until}L)"
        f" AND (({due} AND {passed}) OR {fresh})",
    ).collect()
    return bool(found["due"]), int(found["waiting"])


def _tests(look: Look) -> tuple[str, str, str]:
    """Past its deadline; not looked at since; written since."""
    fresh = f"processing_time > timestamp_micros({look.batches}L)"
    due = f"deadline <= timestamp_micros({look.until}L)"
    return due, f"(deadline > timestamp_micros({look.since}L) OR {fresh})", fresh


def _candidates(
    session: SparkSession, target: ReconcileTarget, rules: RulesRevision, look: Look
) -> str:
    until = look.until
    written = f"processing_time <= timestamp_micros({until}L)"
    if look.ended:
        return f"""SELECT pk
FROM {target.table}
WHERE {written}
GROUP BY pk
HAVING NOT max_by(settled, struct({LAST}))"""
    due, passed, fresh = _tests(look)
    waiting = f"SELECT pk FROM {target.table} WHERE NOT settled AND {written} AND {look.own}"
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
        self, session: SparkSession, target: ReconcileTarget, protocol: BatchProtocol, look: Look
    ) -> None:
        self._session, self._target, self._protocol = session, target, protocol
        self._look = look
        self._results = ManagedTable(session, target.table)
        self._partials = ManagedTable(session, target.partials)

    def reached(self, intent: Intent) -> Reached | None:
        return topic_reached(self._results, self._protocol.store, intent.job)

    def account(self, intent: Intent) -> Result | None:
        """Its windows are those of the pair's own job: there they are closed."""
        found = self._target.account(self._session, intent)
        if found is None or found.judged is None:
            return found
        return replace(found, judged=replace(found.judged, windows_of=self._target.job))

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
        until = self._look.at
        keys = _candidates(self._session, self._target, rules, self._look)
        sql(self._session, keys).createOrReplaceTempView(CANDIDATES)
        own = (
            f"(SELECT states.* FROM {self._target.states} AS states LEFT SEMI JOIN {CANDIDATES}"
            f" ON states.pk = {CANDIDATES}.pk WHERE batch_time <= timestamp_micros({until}L))"
        )
        ended = str(self._look.ended).upper()
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
        due, passed, fresh = _tests(self._look)
        looked_at = "TRUE" if self._look.ended else f"(({due} AND {passed}) OR {fresh})"
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
            f" AND processing_time <= timestamp_micros({self._look.at}L) GROUP BY told.pk",
        )
