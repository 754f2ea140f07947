"""The keys that rules of uniqueness have seen: how many there are, and letting go of old ones."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import SparkSession

from headgate.engine.iceberg import SUMMARY, ManagedTable
from headgate.engine.statements import sql
from headgate.expr.literals import spark_literal
from headgate.jobs.rules_revision import RulesRevision
from headgate.metrics.gauges import keep
from headgate.metrics.names import UNIQUE_KEYS
from headgate.store.ops import OpsStore

# Its commits are no batch of the job: they bring no row.
LETTING_GO = "forget-"


class SeenKeys:
    """The key table of one job."""

    def __init__(self, session: SparkSession, store: OpsStore, job: str) -> None:
        self._session, self._store, self._job = session, store, job
        self._until: datetime | None = None

    def tell(self, rules: RulesRevision) -> None:
        """Note how large the table is, for whoever looks at the job."""
        if rules.keys is not None:
            current = ManagedTable(self._session, rules.keys).look().current()
            keep(self._store, UNIQUE_KEYS, self._job, current.total if current else 0)

    def let_go(self, rules: RulesRevision, greatest: datetime | None) -> None:
        """Delete keys that no row can meet any more; not at every batch, but a horizon at a time."""
        if rules.keys is None or rules.horizon is None or greatest is None:
            return
        until = greatest - kept_for(rules.horizon, rules.first.watermark)
        if self._until is not None and until - self._until < rules.horizon / 4:
            return
        # The first time says only from where on it is counted, so that restarts cost nothing.
        if self._until is not None or self._has_older(rules.keys, until - rules.horizon / 4):
            self._delete(rules.keys, until)
        self._until = until

    def _has_older(self, table: str, until: datetime) -> bool:
        older = f"SELECT 1 FROM {table} WHERE event_time < {spark_literal(until)} LIMIT 1"
        return bool(sql(self._session, older).take(1))

    def _delete(self, table: str, until: datetime) -> None:
        told = f"{SUMMARY}headgate.note"
        self._session.conf.set(told, f"{LETTING_GO}{self._job}")
        try:
            sql(self._session, f"DELETE FROM {table} WHERE event_time < {spark_literal(until)}")
        finally:
            self._session.conf.unset(told)


def kept_for(horizon: timedelta, watermark: timedelta) -> timedelta:
    """A row that comes as late as a horizon still meets all keys within the horizon before it."""
    return 2 * horizon + watermark
