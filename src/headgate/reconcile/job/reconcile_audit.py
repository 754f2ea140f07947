"""The audit on its topic: each settled change of a verdict that is worth telling, keyed by its key.

At least once: what was told is kept as a mark after it was sent. The headers have the id of a change and its
time: a verdict that comes back at the same versions has its id again, so a reader who keys on both sees each
change once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headgate.conditions.expr_literals import spark_literal
from headgate.core.engine.context import RunContext
from headgate.core.kafka.engine_topics import Topics, TopicSpec
from headgate.core.lake.statements import sql
from headgate.core.ledger.store_model import LedgerRow
from headgate.core.metrics import gauges
from headgate.core.metrics import metrics_names as names
from headgate.quality.compile.unique import TIME_FORMAT, TIME_OPTIONS
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.reconcile.job.reconcile_sweep import sweep_job
from headgate.reconcile.job.reconcile_target import COUNTED, ReconcileTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS, KEPT_DAYS = 3, 30
AT_ONCE, BATCH = 1_000, "batch"
MATCHED = "verdict_match"


def audit_mark(table: str) -> str:
    """The mark that says up to which row of the ledger the audit was sent."""
    return f"audit-sent:{table}"


def told_mark(table: str) -> str:
    """The mark that something other than a match was told."""
    return f"audit-told:{table}"


def make_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """A topic that is written to is made where it is missing."""
    Topics(bootstrap).create([TopicSpec(topic, partitions, KEPT_DAYS)])


class Audit:
    """Sends what batches and sweeps have settled; what a killed run left unsent is sent first."""

    what = "the changes of verdicts on the audit topic"

    def __init__(
        self, context: RunContext, target: ReconcileTarget, declared: Callable[[], Reconcile]
    ) -> None:
        self._context, self._target, self._declared = context, target, declared
        self._session: SparkSession = context.session.newSession()
        self._made: set[str] = set()
        self._last, self._owed = 0, -1

    def tick(self) -> None:
        if self._context.run.mode != BATCH and self._context.store.ledger_after(self._last, 1):
            self.send()

    def settled(self, row: LedgerRow) -> None:
        """It is in the ledger: the next look finds it there."""

    def ended(self) -> None:
        self.send()

    def send(self) -> int:
        """Send what the ledger has settled since; how many rows of it there were."""
        topic, store = self._declared().audit.topic, self._context.store
        if topic is None:
            self._owe(0)
            return 0
        mark = store.read_mark(audit_mark(self._target.name))
        sent, (rows, last) = 0, self._rows(int(mark.value) if mark else 0)
        done = 0
        try:
            for row in rows:
                if self._is_worth_telling(row):
                    self._send(row, topic)
                    sent += 1
                self._context.still_mine()
                store.mark(audit_mark(self._target.name), str(row.id))
                done += 1
        finally:
            self._owe(len(rows) - done)
        self._last = last
        return sent

    def _owe(self, batches: int) -> None:
        if batches != self._owed:
            self._owed = batches
            gauges.keep(self._context.store, names.AUDIT_BEHIND, self._target.job, batches)

    def _rows(self, last: int) -> tuple[list[LedgerRow], int]:
        """The rows of this pair since, and the last of all that were looked at."""
        jobs = (self._target.job, sweep_job(self._target.name))
        found: list[LedgerRow] = []
        while rows := self._context.store.ledger_after(last, AT_ONCE):
            found += [row for row in rows if row.job in jobs]
            last = rows[-1].id or 0
        return found, last

    def _is_worth_telling(self, row: LedgerRow) -> bool:
        """Nothing settled is nothing to tell; matches alone only where something worse was told."""
        last = row.id or 0
        counted = self._context.store.rule_counts_between(last - 1, last)
        settled = {count.rule for _, count in counted if not count.rule.startswith(COUNTED)}
        settled.discard("")
        if not settled - {MATCHED}:
            return bool(settled) and (self._declared().keep_matches or self._has_told())
        return True

    def _has_told(self) -> bool:
        return self._context.store.read_mark(told_mark(self._target.name)) is not None

    def _send(self, row: LedgerRow, topic: str) -> None:
        if topic not in self._made:
            make_topic(self._target.bootstrap, topic, PARTITIONS)
            self._made.add(topic)
        keeps = self._declared().keep_matches
        query = changes_sql(self._target, row, keeps, looks_back=self._has_told())
        sql(self._session, query).write.format("kafka").options(
            **{"kafka.bootstrap.servers": self._target.bootstrap, "topic": topic}
        ).save()
        self._context.store.mark(told_mark(self._target.name), "worse")


def changes_sql(
    target: ReconcileTarget, row: LedgerRow, keep_matches: bool, looks_back: bool
) -> str:
    """The changes of one batch or sweep as records, each with what was settled of its key before.

    Several pairs may tell on one topic, so each record names its pair. A match is told where it ends something else. Without a look back nothing was told before, and
    nothing is asked of it.
    """
    table, pair, at = target.table, spark_literal(target.name), spark_literal(row.batch_time)
    swept = "=" if row.range.is_table else "<>"
    wanted = "TRUE" if keep_matches else "dq_status <> 'MATCH' OR previous <> 'MATCH'"
    own = f"processing_time = {at} AND settled AND origin {swept} 'sweep'"
    earlier = f"settled AND processing_time < {at}" if looks_back else "FALSE"
    return f"""
SELECT
  CAST(pk AS BINARY) AS key,
  CAST(to_json(struct(
    id, {pair} AS table, pk, hash_onprem AS onprem_hash, hash_cloud AS cloud_hash, dq_status AS status, previous,
    dq_reason AS reason, rollup, onprem_version, cloud_version, late, stale, conflict,
    processing_time AS audit_ts
  ), {TIME_OPTIONS}) AS BINARY) AS value,
  array(
    struct('headgate.id' AS key, CAST(id AS BINARY) AS value),
    struct('headgate.audit_ts' AS key, CAST(date_format(processing_time, '{TIME_FORMAT}') AS BINARY) AS value),
    struct('headgate.table' AS key, CAST({pair} AS BINARY) AS value),
    struct('headgate.revision' AS key, CAST(revision AS BINARY) AS value)
  ) AS headers
FROM (
  SELECT told.*, earlier.previous
  FROM (SELECT * FROM {table} WHERE {own}) AS told
  LEFT JOIN (
    SELECT pk, max_by(dq_status, struct(processing_time, onprem_version, cloud_version)) AS previous
    FROM {table}
    WHERE {earlier} AND pk IN (SELECT pk FROM {table} WHERE {own})
    GROUP BY pk
  ) AS earlier
    ON earlier.pk = told.pk
)
WHERE {wanted}"""
