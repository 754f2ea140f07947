"""What the audit topic is told: each record names the pair that it is of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import sqlglot
from sqlglot import expressions as sql

from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.ranges import PairRange, TopicRange
from headgate.reconcile.job.publishers import changes_sql
from headgate.reconcile.job.target import ReconcileTarget

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
