"""A merge and a compaction that meet: whichever comes second is done again, and nothing is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from tests.support.bronze_table import assert_consistent
from tests.support.dataset_events import events
from tests.support.pipeline import MORNING, SECOND, Interruption, Pipeline, ProducerRecord

from headgate.core.engine.batch import Point
from headgate.maintenance import job as maintain
from headgate.maintenance.plan import COMPACT, MaintenanceRunOptions, Report
from headgate.maintenance.selection import Part
from headgate.maintenance.table import MaintainedTable

DAYS = 2  # few dates, so that each has several files


def later(number: int) -> int:
    return MORNING + number * 60 * SECOND


def small_commits(pipeline: Pipeline, count: int) -> None:
    for number in range(count):
        pipeline.produce(events(number, 20, number * 20, days=DAYS))
        pipeline.process("bronze")
        pipeline.process("silver")


def compact(pipeline: Pipeline) -> Report:
    options = MaintenanceRunOptions(actions=(COMPACT,), min_files=2)
    run = pipeline.process("maintain", request=options)
    report = maintain.read_report(pipeline.store, run.job, run.number)
    assert report is not None
    return report


@pytest.mark.slow
def test_a_merge_that_meets_a_compaction_is_run_again_whole(pipeline: Pipeline) -> None:
    small_commits(pipeline, 2)
    pipeline.produce(
        [
            *events(9, 20, 90, days=DAYS),
            *(ProducerRecord(v, timestamp=later(1)) for v in events(0, 15, days=DAYS)),
        ]
    )
    pipeline.process("bronze")
    interruption = Interruption(Point.AFTER_STAGING, lambda: None)

    def once() -> None:
        if interruption.hits == 1:
            report = compact(pipeline)
            assert report.tables[0].after.files < report.tables[0].before.files

    interruption._act = once
    pipeline.process("silver", interruption)
    assert interruption.hits == 2
    assert pipeline.outcomes("silver")["replaced"] > 0
    assert_consistent(pipeline)


class BusyCores:
    """Holds every core until it is told to let go, so that what needs one has to wait."""

    def __init__(self, pipeline: Pipeline, folder: Path) -> None:
        self._context = pipeline.session.sparkContext
        self._free = folder / "free"
        self._thread = threading.Thread(target=self._hold)
        self._thread.start()
        self.wait_for_jobs(1)

    def _hold(self) -> None:
        free = str(self._free)
        count = self._context.defaultParallelism
        self._context.parallelize(range(count), count).foreach(lambda _: hold(free))

    def wait_for_jobs(self, count: int) -> None:
        until = time.monotonic() + 60
        while len(self._context.statusTracker().getActiveJobsIds()) < count:
            assert time.monotonic() < until, "no job has begun"
            time.sleep(0.05)

    def let_go(self) -> None:
        self._free.touch()
        self._thread.join(60)


def hold(file: str) -> None:
    while not Path(file).exists():
        time.sleep(0.05)


@pytest.mark.slow
def test_a_compaction_that_loses_against_a_merge_is_tried_again(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small_commits(pipeline, 2)
    pipeline.produce(
        [
            *events(9, 20, 90, days=DAYS),
            *(ProducerRecord(v, timestamp=later(1)) for v in events(0, 15, days=DAYS)),
        ]
    )
    pipeline.process("bronze")
    staged, publish = threading.Event(), threading.Event()

    def wait() -> None:
        staged.set()
        publish.wait(120)

    merge = Interruption(Point.AFTER_STAGING, wait)
    silver = threading.Thread(target=lambda: pipeline.process("silver", merge))
    rewrite, tries = MaintainedTable.rewrite, list[int]()

    def overtaken(
        table: MaintainedTable, parts: Collection[Part], min_files: int
    ) -> Mapping[str, int]:
        tries.append(len(parts))
        if len(tries) > 1:
            return rewrite(table, parts, min_files)
        cores = BusyCores(pipeline, tmp_path)

        def overtake() -> None:
            cores.wait_for_jobs(2)  # it has chosen its files and waits for a core
            publish.set()
            silver.join(60)
            cores.let_go()

        overtaking = threading.Thread(target=overtake)
        overtaking.start()
        try:
            return rewrite(table, parts, min_files)
        finally:
            overtaking.join(120)

    monkeypatch.setattr(MaintainedTable, "rewrite", overtaken)
    silver.start()
    assert staged.wait(60)
    report = compact(pipeline)
    silver.join(60)
    assert merge.hits == 1, "the merge came second"
    assert len(tries) > 1
    assert report.tables[0].retries > 0
    assert report.tables[0].parts_left == ()
    assert_consistent(pipeline)
