"""Where the job of a reconciled pair reads and writes, and what its tables tell of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.engine.protocol import Result
from headgate.core.lake.iceberg import Committed, ManagedTable
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Intent, Judged, RuleCount
from headgate.core.metrics.metrics_names import COUNTED, COUNTED_METRICS, LATE_ARRIVAL
from headgate.core.sql.compile_fragments import DEAD_LETTERS, job_name
from headgate.quality.compile.names import RECONCILE
from headgate.quality.job.quality_target import ACCEPTED, QualityTarget
from headgate.quality.revision import Revisions, dq_table
from headgate.reconcile.job.reconcile_counts import late_by_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ReconcileTarget(QualityTarget):
    """`table` holds the changes of verdicts, and is published last; `states` what they rest on.

    `dlq_topics` says for each topic where its dead letters go, `state_shape` what the state looks like.
    """

    dlq_topics: Mapping[str, str] | None = None
    state_shape: str = ""

    @property
    def shape(self) -> str:
        return self.state_shape

    @property
    def states(self) -> str:
        return dq_table("states", self.name)

    @property
    def before(self) -> tuple[str, ...]:
        return (DEAD_LETTERS, self.states, self.partials)

    def account(self, session: SparkSession, intent: Intent) -> Result | None:
        """The partials' commit says what became of the records; a gap has results alone."""
        results = ManagedTable(session, self.table).commit_of(intent)
        if results is None:
            return None
        partials = ManagedTable(session, self.partials).commit_of(intent)
        outcomes = (partials.marker.outcomes if partials else None) or {ACCEPTED: 0}
        judged = self._told(session, intent, partials) if partials else None
        return Result(
            sum(outcomes.values()),
            outcomes,
            self._snapshots(session, intent, results),
            results.marker.revisions,
            judged=judged,
        )

    def _told(self, session: SparkSession, intent: Intent, partials: Committed) -> Judged:
        """What the partials say of verdicts, and what was counted of records."""
        judged = self._judged(session, intent)
        late = late_by_rules(session, self.table, intent, judged.counts)
        counters = {**(partials.marker.counters or {}), LATE_ARRIVAL: late}
        counts = (_count(name, n) for name, n in sorted(counters.items()) if n)
        return replace(judged, counts=(*judged.counts, *counts))


def pair_target(
    session: SparkSession, settings: Settings, store: OpsStore, name: str
) -> ReconcileTarget | None:
    """The target of a pair's job as its tables tell it, without topics; None where there is no pair."""
    if not session.catalog.tableExists(dq_table("states", name)):
        return None
    job, table = job_name(RECONCILE, name), dq_table("results", name)
    return ReconcileTarget(job, table, "", "", name, Revisions(store, settings))


def _count(name: str, n: int) -> RuleCount:
    metric = COUNTED_METRICS.get(name, name.removeprefix("dq_"))
    return RuleCount(f"{COUNTED}{name}", metric, "INFO", n, n)
