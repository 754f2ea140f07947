"""Maintenance makes tables smaller and changes nothing that anyone reads or goes on from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.integration.events import events
from tests.integration.spark import Pipeline

from headgate.engine.maintained import MaintainedTable
from headgate.jobs import maintain
from headgate.jobs.maintain_plan import (
    ACTIONS,
    TABLES,
    Plan,
    Report,
    TableReport,
    Wanted,
)

ROUNDS = 3


def maintain_it(pipeline: Pipeline, wanted: Wanted) -> tuple[Plan, Report | None]:
    run = pipeline.process("maintain", None, **wanted.options())
    plan = maintain.kept_plan(pipeline.store, run.job, run.number)
    return plan, maintain.kept_report(pipeline.store, run.job, run.number)


def of(report: Report | None, pipeline: Pipeline, schema: str) -> TableReport:
    assert report is not None
    return next(t for t in report.tables if t.table == f"lake.{schema}.{pipeline.name}")


def looked_at(pipeline: Pipeline, schema: str) -> MaintainedTable:
    return MaintainedTable(pipeline.session, f"lake.{schema}.{pipeline.name}")


@pytest.fixture
def worked(pipeline: Pipeline) -> Pipeline:
    """A pipeline after several small batches, each with a refused record."""
    for number in range(ROUNDS):
        pipeline.produce([*events(number, 20, number * 20), b"not a record"])
        pipeline.process("bronze")
        pipeline.process("silver")
    return pipeline


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maintenance as it would see the tables in ten days."""
    in_ten_days = datetime.now(UTC) + timedelta(days=10)
    monkeypatch.setattr(maintain, "utc_now", lambda: in_ten_days)


def agrees(pipeline: Pipeline) -> None:
    certificate = pipeline.certify()
    assert certificate.holds, certificate
    rechecked = pipeline.recheck()
    assert rechecked.returncode == 0, rechecked.stdout


@pytest.mark.usefixtures("later")
def test_everything_goes_on_after_maintenance(worked: Pipeline) -> None:
    bronze, silver = worked.bronze(), worked.silver()
    wanted = Wanted(ACTIONS, compact_tables=TABLES, keep=1, min_files=2, dry_run=True)
    planned, nothing = maintain_it(worked, wanted)
    assert nothing is None
    assert looked_at(worked, "silver").current == planned.tables[1].snapshot

    wanted = Wanted(ACTIONS, compact_tables=TABLES, keep=1, min_files=2, plan_run=planned.run)
    plan, report = maintain_it(worked, wanted)
    assert [t.going for t in plan.tables] == [t.going for t in planned.tables]
    for schema in ("bronze", "silver"):
        table = of(report, worked, schema)
        assert table.after.files < table.before.files
        assert table.snapshots_expired > 0
        assert table.parts_left == ()
    assert (worked.bronze(), worked.silver()) == (bronze, silver)
    agrees(worked)

    # Bronze goes on from its marker, silver from the bronze snapshot that it has seen.
    worked.produce([*events(99, 30, 500), b"not a record"])
    worked.process("bronze")
    worked.process("silver")
    assert len(worked.ledger("silver")) == ROUNDS + 1
    assert worked.ledger("silver")[-1].read == 30
    agrees(worked)
