"""Where the router reads and writes; it has no table, so the ledger says how far it has come."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import SparkSession

from headgate.core.engine.protocol import Result
from headgate.core.engine.topic_target import TopicTarget
from headgate.core.lake.iceberg import ManagedTable
from headgate.core.lake.reach import Reached
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Intent
from headgate.core.sql.compile_fragments import DEAD_LETTERS
from headgate.filters.store.routing_model import RoutedBatch, RoutedCount

ROUTED, UNROUTED, REFUSED, TOMBSTONE = "routed", "unrouted", "refused", "tombstone"
# A record that the router has refused; the replay of a filter comes across it a second time.
UNREADABLE = "unreadable"


@dataclass(frozen=True)
class RouterTarget(TopicTarget):
    """`table` holds its dead letters, which come last: a batch that has a commit there is sent."""

    store: OpsStore
    source: str

    @property
    def before(self) -> tuple[str, ...]:
        return ()

    def account(self, session: SparkSession, intent: Intent) -> Result | None:
        """From the dead letters of the batch; one without any is not accounted for by a table."""
        commit = ManagedTable(session, DEAD_LETTERS).commit_of(intent)
        outcomes = commit.marker.outcomes if commit else None
        if commit is None or outcomes is None:
            return None
        marker = commit.marker
        set_id = marker.revisions[0]
        revisions = {one.filter: one.revision for one in self.store.routing.members(set_id)}
        counts: dict[str, dict[str, int]] = {}
        for name, n in (marker.counters or {}).items():
            filter, what = json.loads(name)
            counts.setdefault(filter, {})[what] = n
        found = (
            RoutedCount(filter, revisions[filter], own.get("n", 0), own.get("refused", 0))
            for filter, own in sorted(counts.items())
        )
        return Result(
            sum(outcomes.values()),
            outcomes,
            {DEAD_LETTERS: commit.snapshot.id},
            marker.revisions,
            routed=RoutedBatch(set_id, tuple(found)),
        )


def ledger_reached(store: OpsStore, job: str) -> Reached | None:
    """How far the job has come, by the ledger alone."""
    settled = store.settled_range(job)
    return Reached(settled.source_id, settled.end) if settled else None
