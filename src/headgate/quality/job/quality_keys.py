"""The keys that rules of uniqueness have seen: how many there are, and letting go of old ones."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from headgate.conditions.expr_literals import spark_literal
from headgate.core.lake.iceberg import SUMMARY, ManagedTable
from headgate.core.lake.statements import sql
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.gauges import keep
from headgate.core.metrics.metrics_names import UNIQUE_KEYS
from headgate.core.metrics.times import earlier
from headgate.quality.revision import RulesRevision

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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

    def let_go(self, rules: RulesRevision, greatest: datetime | None, at: datetime) -> None:
        """Delete keys that no row can meet any more; not at every batch, but some at a time.

        Both the event time and the arrival of a key must lie far back: one row that claims to be of
        another century must not make the keys of a moment ago look old.
        """
        if rules.keys is None or rules.horizon is None or greatest is None:
            return
        arrived = earlier(at, kept_for(rules.horizon, rules.first.watermark))
        if self._until is not None and arrived - self._until < rules.horizon / 4:
            return
        until = earlier(greatest, kept_for(rules.horizon, rules.first.watermark))
        old = f"event_time < {spark_literal(until)} AND batch_time < {spark_literal(arrived)}"
        if sql(self._session, f"SELECT 1 FROM {rules.keys} WHERE {old} LIMIT 1").take(1):
            self._delete(rules.keys, old)
        self._until = arrived

    def _delete(self, table: str, old: str) -> None:
        told = f"{SUMMARY}headgate.note"
        self._session.conf.set(told, f"{LETTING_GO}{self._job}")
        try:
            sql(self._session, f"DELETE FROM {table} WHERE {old}")
        finally:
            self._session.conf.unset(told)


def kept_for(horizon: timedelta, watermark: timedelta) -> timedelta:
    """A row that comes as late as a horizon still meets all keys within the horizon before it."""
    return 2 * horizon + watermark
