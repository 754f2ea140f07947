"""Where the quality job of a table reads and writes, and what its tables tell of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.engine.protocol import Result
from headgate.core.engine.topic_target import TopicTarget
from headgate.core.lake.iceberg import Committed, ManagedTable
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Intent, Judged
from headgate.core.sql.compile_fragments import DEAD_LETTERS, job_name
from headgate.errors import BatchRefusedError
from headgate.quality.compile.names import QUALITY
from headgate.quality.job.quality_partials import Partials
from headgate.quality.revision import Revisions, dq_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ACCEPTED, DEAD_LETTER, REFUSED, TOMBSTONE = "accepted", "dead_letter", "refused", "tombstone"


@dataclass(frozen=True)
class QualityTarget(TopicTarget):
    """`table` holds the results: one row for each judged record."""

    name: str
    revisions: Revisions
    has_keys: bool = False

    @property
    def partials(self) -> str:
        return dq_table("partials", self.name)

    @property
    def keys(self) -> str:
        return dq_table("keys", self.name)

    @property
    def before(self) -> tuple[str, ...]:
        return (DEAD_LETTERS, self.partials, *([self.keys] if self.has_keys else []))

    def account(self, session: SparkSession, intent: Intent) -> Result | None:
        """The partials' commit says what became of the records; a gap has results alone."""
        results = ManagedTable(session, self.table).commit_of(intent)
        if results is None:
            return None
        partials = ManagedTable(session, self.partials).commit_of(intent)
        outcomes = (partials.marker.outcomes if partials else None) or {ACCEPTED: 0}
        rows = outcomes.get(ACCEPTED, 0) + outcomes.get(DEAD_LETTER, 0)
        if not intent.range.starts_anew and rows != results.snapshot.added:
            raise BatchRefusedError(
                f"a batch of {intent.job} does not add up",
                why=f"{results.snapshot.added} rows in {self.table}, but {dict(outcomes)} with its partials",
                fix="compare the two commits: headgate ledger show",
            )
        snapshots = self._snapshots(session, intent, results)
        judged = self._judged(session, intent) if partials else None
        return Result(
            sum(outcomes.values()), outcomes, snapshots, results.marker.revisions, judged=judged
        )

    def _judged(self, session: SparkSession, intent: Intent) -> Judged:
        return Partials(session, self.partials).judged(intent)

    def _snapshots(
        self, session: SparkSession, intent: Intent, results: Committed
    ) -> dict[str, int]:
        """The batch's commits, in its table and beside it."""
        others = (self._snapshot(session, name, intent) for name in self._beside(session))
        return {self.table: results.snapshot.id, **{n: i for n, i in others if i is not None}}

    def _beside(self, session: SparkSession) -> tuple[str, ...]:
        """With the keys of a stream that has taken over its first rule of uniqueness since it began."""
        keys = not self.has_keys and ManagedTable(session, self.keys).exists()
        return (*self.before, *([self.keys] if keys else []))

    def _snapshot(self, session: SparkSession, name: str, intent: Intent) -> tuple[str, int | None]:
        found = ManagedTable(session, name).commit_of(intent)
        return name, found.snapshot.id if found else None


def table_target(
    session: SparkSession, settings: Settings, store: OpsStore, name: str
) -> QualityTarget:
    """The target of a rule table's job as its tables tell it, without topics."""
    keys = session.catalog.tableExists(dq_table("keys", name))
    job, table = job_name(QUALITY, name), dq_table("results", name)
    return QualityTarget(job, table, "", "", name, Revisions(store, settings), keys)
