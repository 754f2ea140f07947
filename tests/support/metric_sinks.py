"""Metric sinks in memory, and batches whose counts they get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.metric_windows import event_time, settle_batch

from headgate.core.ledger.model import RuleCount
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.delivery import Change, said
from headgate.core.metrics.sinks import encoded
from headgate.errors import UnavailableError

# Counts that a batch of a reconciled pair enters in the ledger.
COUNTS = (
    RuleCount("verdict_match", "hash_match", "INFO", 5, 5),
    RuleCount("verdict_late_match", "hash_match", "INFO", 2, 2),
    RuleCount("verdict_late_mismatch", "hash_mismatch", "ERROR", 1, 1),
    RuleCount("counted_late_arrival", "late_arrival", "INFO", 4, 4),
    RuleCount("counted_deletes", "delete_count", "INFO", 9, 9),
    RuleCount("counted_duplicates", "duplicates", "INFO", 3, 3),
    RuleCount("counted_dq_missing_pk", "missing_pk", "INFO", 2, 2),
    RuleCount("counted_dq_unknown_action", "unknown_action", "INFO", 1, 1),
)
# The metrics that sinks get for such a batch.
BATCH_METRICS = {
    "dq_late_arrival": 7,
    "dq_delete_count": 9,
    "dq_duplicates": 3,
    "dq_missing_pk": 2,
    "dq_unknown_action": 1,
    "dq_dlq_records": 3,
}


class RecordingSink:
    """A metric sink in memory: it records what it is sent, as ids, Kafka messages and DogStatsD lines.

    `fails` makes it unavailable; `dies_after` ends the process, as a kill would, behind a send.
    """

    def __init__(self, name: str = "recording", at_most_once: bool = False) -> None:
        self.name = name
        self.at_most_once = at_most_once
        self.ids: list[str] = []
        self.before: list[int] = []
        self.messages: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self.fails = False
        self.dies_after = False
        self.tries = 0

    def ready(self) -> None:
        self.tries += 1
        if self.fails:
            raise UnavailableError("away", why="pulled out")

    def send(self, changes: Sequence[Change]) -> None:
        self.ids += [change.record.id for change in changes]
        self.before += [change.before.get("dq_rows_total", 0) for change in changes]
        self.messages += [message for change in changes for message in said(change.record)]
        self.lines += [line for change in changes for line in encoded(change)]
        if self.dies_after:
            raise KeyboardInterrupt

    def close(self) -> None:
        self.closed = True


def settle_counted_batch(store: OpsStore, offset: int = 0) -> None:
    """Settle a batch of 23 records that has these counts; 3 of its records were refused."""
    settle_batch(store, offset, {0: event_time(0)}, COUNTS, rows=8, accepted=20, refused=3)
