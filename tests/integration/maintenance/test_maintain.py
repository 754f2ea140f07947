"""Maintenance makes tables smaller and changes nothing that anyone reads or goes on from."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.dataset_events import events
from tests.support.pipeline import Pipeline

from headgate.core.engine.recovery import rebuild_on
from headgate.core.ledger.ops_store import OpsStore
from headgate.maintenance import job as maintain
from headgate.maintenance.plan import (
    ACTIONS,
    TABLES,
    VACUUM,
    MaintenanceRunOptions,
    Plan,
    Report,
    TableReport,
)
from headgate.maintenance.table import MaintainedTable

ROUNDS = 2
DAYS = 2  # few dates, so that each has several files


def maintain_it(pipeline: Pipeline, options: MaintenanceRunOptions) -> tuple[Plan, Report | None]:
    run = pipeline.process("maintain", request=options)
    plan = maintain.read_plan(pipeline.store, run.job, run.number)
    return plan, maintain.read_report(pipeline.store, run.job, run.number)


def of(report: Report | None, pipeline: Pipeline, schema: str) -> TableReport:
    assert report is not None
    return next(t for t in report.tables if t.table == f"lake.{schema}.{pipeline.name}")


def looked_at(pipeline: Pipeline, schema: str) -> MaintainedTable:
    return MaintainedTable(pipeline.session, f"lake.{schema}.{pipeline.name}")


@pytest.fixture
def worked(pipeline: Pipeline) -> Pipeline:
    """A pipeline after several small batches, each with a refused record."""
    for number in range(ROUNDS):
        pipeline.produce([*events(number, 20, number * 20, days=DAYS), b"not a record"])
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


@pytest.mark.slow
@pytest.mark.usefixtures("later")
def test_everything_goes_on_after_maintenance(worked: Pipeline) -> None:
    bronze, silver = worked.bronze(), worked.silver()
    options = MaintenanceRunOptions(
        actions=ACTIONS, compact_tables=TABLES, keep=1, min_files=2, dry_run=True
    )
    planned, nothing = maintain_it(worked, options)
    assert nothing is None
    assert [looked_at(worked, t).current for t in ("bronze", "silver")] == [
        table.snapshot for table in planned.tables[:2]
    ], "a dry run changed a table"

    # Between the plan and its carrying out the world moves: a batch comes, and a file is named.
    orphan, staged = plant(worked), staged_file(worked)
    worked.produce(events(7, 20, 300, days=DAYS))
    worked.process("bronze")
    shown = options.model_copy(update={"dry_run": False, "plan_run": planned.run})
    _, report = maintain_it(worked, shown)
    assert orphan.exists(), "what was not shown was removed"
    for schema, was in zip(("bronze", "silver"), planned.tables, strict=False):
        done = of(report, worked, schema)
        assert done.after.files < done.before.files
        assert 0 < done.snapshots_expired <= len(was.going)
        assert done.parts_left == ()
    assert worked.silver() == silver
    assert worked.bronze().total() == bronze.total() + 20
    # Bronze goes on from its marker, silver from the bronze snapshot that it has seen.
    worked.produce([*events(99, 30, 500, days=DAYS), b"not a record"])
    worked.process("bronze")
    worked.process("silver")
    assert [row.read for row in worked.ledger("silver")] == [*[20] * ROUNDS, 50]

    _, report = maintain_it(worked, MaintenanceRunOptions(actions=(VACUUM,)))
    assert of(report, worked, "silver").orphans_removed == 1
    assert not orphan.exists()
    assert staged.exists(), "a file of a staged snapshot is no orphan"
    agrees(worked)
    says_what_is_expired(worked)


def says_what_is_expired(pipeline: Pipeline) -> None:
    """A ledger that is lost after an expiry comes back in part, and says so."""
    with OpsStore.open(f"sqlite:///{pipeline.settings.root}/lost.db") as lost:
        rebuilt = rebuild_on(pipeline.session, pipeline.settings, lost)
        for kind in ("bronze", "silver"):
            rows = lost.ledger(f"{kind}-{pipeline.name}")
            known = pipeline.ledger(kind)
            assert 0 < len(rows) < len(known)
            assert [r.outcomes for r in rows] == [r.outcomes for r in known[-len(rows) :]]
            assert any(f"lake.{kind}.{pipeline.name}: batches before" in w for w in rebuilt.unknown)


def plant(pipeline: Pipeline) -> Path:
    """A file in silver's folder that no snapshot knows, and that is old enough to go."""
    folder = Path(looked_at(pipeline, "silver").location.removeprefix("file:")) / "data"
    orphan = folder / "left over.parquet"
    orphan.write_bytes(b"nobody knows it")
    age(orphan)
    return orphan


def age(file: Path) -> None:
    long_ago = time.time() - timedelta(days=5).total_seconds()
    os.utime(file, (long_ago, long_ago))


def staged_file(pipeline: Pipeline) -> Path:
    """A file that only a staged snapshot of silver knows, as old as the orphan."""
    name = f"lake.silver.{pipeline.name}"
    session = pipeline.session.newSession()
    known = files_of(pipeline)
    session.conf.set("spark.wap.id", "a batch that was killed")
    session.sql(f"INSERT INTO {name} SELECT * FROM {name} LIMIT 1")
    (file,) = files_of(pipeline) - known
    age(file)
    return file


def files_of(pipeline: Pipeline) -> set[Path]:
    folder = Path(looked_at(pipeline, "silver").location.removeprefix("file:"))
    return set(folder.glob("data/*/*.parquet"))
