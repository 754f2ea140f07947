"""What the audit topic is told: each record names the pair that it is of."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
import sqlglot
from sqlglot import expressions as sql

from headgate.core.engine.run import RunContext
from headgate.core.ledger.model import Intent, Judged, LedgerRow, RuleCount
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import PairRange, TopicRange
from headgate.core.ledger.windows import JudgedRows
from headgate.errors import LeaseLostError
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.reconcile.job.publishers import MATCHED, Audit, changes_sql
from headgate.reconcile.job.target import ReconcileTarget
from headgate.reconcile.store import AuditProgress, PairStore

AT = datetime(2026, 1, 10, 12, tzinfo=UTC)


def told(name: str) -> sql.Expr:
    target = ReconcileTarget(
        f"reconcile-{name}", f"lake.dq.results_{name}", "", "", name, cast("Any", None)
    )
    range_ = PairRange({"onprem": TopicRange("topic1", "id", {"0": 0}, {"0": 1})})
    row = LedgerRow(
        id=1, job=target.job, run=1, range=range_, revisions=("r",), batch_time=AT,
        batch_id=0, span=1, gaps=0, committed_at=AT, read=1, outcomes={"accepted": 1}, snapshots={},
    )  # fmt: skip
    return sqlglot.parse_one(changes_sql(target, row, True, looks_back=True), dialect="spark")


def test_a_record_names_its_pair_in_its_value_and_in_a_header() -> None:
    for name in ("orders", "customer"):
        found = told(name)
        texts = [literal.this for literal in found.find_all(sql.Literal)]
        assert texts.count(name) == 2
        assert "headgate.table" in texts


def test_a_record_has_its_id_and_its_time_in_headers() -> None:
    """A verdict that comes back at the same versions has its id again: only both are of one change."""
    headers = next(array for array in told("orders").find_all(sql.Array))
    names = [literal.this for literal in headers.find_all(sql.Literal)]
    assert {"headgate.id", "headgate.audit_ts"} <= set(names)


JOB = "reconcile-orders"


def settle(store: OpsStore, start: int, *rules: str) -> None:
    """A batch of one record, of which these rules gave the status."""
    range_ = PairRange({"onprem": TopicRange("topic1", "id", {"0": start}, {"0": start + 1})})
    intent = store.begin(Intent(None, JOB, 1, range_, ("r",), AT, start))
    row = LedgerRow(
        id=None, job=JOB, run=1, range=range_, revisions=("r",), batch_time=AT, batch_id=start,
        span=1, gaps=0, committed_at=AT, read=1, outcomes={"accepted": 1}, snapshots={},
    )  # fmt: skip
    counts = tuple(RuleCount(rule, rule, "INFO", 1, 1) for rule in rules)
    store.settle(intent, row, (JudgedRows(Judged(counts)),))


class RecordingAudit(Audit):
    """Notes which rows of the ledger it would send, and whether it looks back for each."""

    def __init__(self, store: OpsStore) -> None:
        self.sent: list[tuple[int | None, bool]] = []
        self.has_lease = True
        session = SimpleNamespace(newSession=lambda: None)
        context = SimpleNamespace(store=store, session=session, still_mine=self.still_mine)
        target = ReconcileTarget(JOB, "", "", "", "orders", cast("Any", None))
        super().__init__(cast("RunContext", context), target, Reconcile)

    def still_mine(self) -> None:
        if not self.has_lease:
            raise LeaseLostError("another engine took over")

    def _send(self, row: LedgerRow, topic: str, *, looks_back: bool) -> None:
        self.sent.append((row.id, looks_back))


def test_matches_are_sent_behind_a_change_alone_and_each_row_once(store: OpsStore) -> None:
    audit = RecordingAudit(store)
    for start, rule in enumerate((MATCHED, "verdict_mismatch", MATCHED)):
        settle(store, start, rule)
    assert audit.send() == 2
    assert audit.sent == [(2, False), (3, True)]
    assert store.part(PairStore).audit_progress("orders") == AuditProgress(3, has_sent=True)
    assert RecordingAudit(store).send() == 0
    assert store.gauges("dq_audit_behind") == {(JOB,): 0}


def test_a_row_that_was_sent_and_not_noted_is_sent_again_as_before(store: OpsStore) -> None:
    settle(store, 0, "verdict_mismatch")
    first, second = RecordingAudit(store), RecordingAudit(store)
    first.has_lease = False
    with pytest.raises(LeaseLostError):
        first.send()
    assert store.part(PairStore).audit_progress("orders") == AuditProgress()
    assert second.send() == 1
    assert first.sent == second.sent == [(1, False)]
