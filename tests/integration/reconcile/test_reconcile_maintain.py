"""The tables of a pair are kept small like all others, and nothing that anyone reads of them changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.pipeline import Pipeline
from tests.support.reconcile_job import Pair, cloud, onprem

from headgate.certify.certificate import broken
from headgate.maintenance import job as maintain
from headgate.maintenance.plan import COMPACT, EXPIRE, MaintenanceRunOptions, Report
from headgate.maintenance.selection import DQ


def maintained(pair: Pair) -> Report:
    options = MaintenanceRunOptions(
        actions=(COMPACT, EXPIRE), compact_tables=(DQ,), other_tables=(DQ,), keep=1, min_files=2
    )
    run = pair.pipeline.process("maintain", request=options)
    report = maintain.read_report(pair.pipeline.store, run.job, run.number)
    assert report is not None
    return report


@pytest.mark.slow
def test_the_tables_of_a_pair_are_compacted_and_their_snapshots_expire(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(pipeline)
    for number in range(3):
        pair.send(onprem(f"k{number}"), cloud(f"k{number}", number=1 + number % 2))
        pair.process()
    before, told = pair.verdicts(), pair.last_published()
    monkeypatch.setattr(maintain, "utc_now", lambda: datetime.now(UTC) + timedelta(days=10))
    report = maintained(pair)
    assert {done.table for done in report.tables} == {
        f"lake.dq.{kind}_{pair.name}" for kind in ("states", "results", "partials")
    }
    for done in report.tables:
        assert done.parts_compacted == 1
        assert done.after.files < done.before.files
        assert done.snapshots_expired > 0
    assert pair.verdicts() == before
    assert pair.last_published() == told
    # The job goes on from its newest marker, wherever the older ones are.
    pair.send(onprem("k9"), cloud("k9"))
    pair.process()
    assert pair.verdicts() == pair.expected()
    assert broken(pipeline.certify()) == ()
