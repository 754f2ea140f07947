"""Writers, compaction and expiry at once: nothing is lost, nothing is there twice, and they did meet."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.integration.events import events
from tests.integration.oracle import bronze_rows
from tests.integration.spark import MORNING, SECOND, TYPES, Interruption, Pipeline, Sent

from headgate.compile.fragments import TABLE_PROPERTIES
from headgate.engine.conflicts import TableMovedError
from headgate.engine.faults import Point
from headgate.engine.iceberg import ManagedTable
from headgate.engine.jvm import Snapshot
from headgate.engine.maintained import MaintainedTable
from headgate.engine.small_files import Part
from headgate.errors import ConflictError
from headgate.jobs import maintain
from headgate.jobs.maintain_plan import COMPACT, EXPIRE, TABLES, Report, Wanted, span_of
from headgate.jobs.silver import EmptyBronzeError
from headgate.store.model import JobSpec, RunState

BAD = b"not a record"
DAYS = 2  # few dates, so that each has several files
METADATA_FILES = int(TABLE_PROPERTIES["write.metadata.previous-versions-max"]) + 1
# What Iceberg writes into the log when a commit finds another one before it.
CONFLICT = re.compile(r"Retrying task after failure|Cannot commit|Failure during rewrite commit")


def later(number: int) -> int:
    return MORNING + number * 60 * SECOND


def small_commits(pipeline: Pipeline, count: int) -> None:
    for number in range(count):
        pipeline.produce(events(number, 20, number * 20, days=DAYS))
        pipeline.process("bronze")
        pipeline.process("silver")


def compact(pipeline: Pipeline) -> Report:
    wanted = Wanted((COMPACT,), min_files=2)
    run = pipeline.process("maintain", None, **wanted.options())
    report = maintain.kept_report(pipeline.store, run.job, run.number)
    assert report is not None
    return report


def agrees(pipeline: Pipeline) -> None:
    merged = pipeline.silver()
    certificate = pipeline.certify()
    assert certificate.holds, certificate
    rechecked = pipeline.recheck()
    assert rechecked.returncode == 0, rechecked.stdout
    pipeline.process("silver", form="full")
    assert pipeline.silver() == merged


def in_threads(*works: Callable[[], None]) -> None:
    """All of them at once; the first failure is raised."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # raised by the main thread
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(400)
    assert not any(thread.is_alive() for thread in threads)
    if failures:
        raise failures[0]


@pytest.mark.slow
def test_a_merge_that_meets_a_compaction_is_run_again_whole(pipeline: Pipeline) -> None:
    small_commits(pipeline, 2)
    pipeline.produce(
        [
            *events(9, 20, 90, days=DAYS),
            *(Sent(v, timestamp=later(1)) for v in events(0, 15, days=DAYS)),
        ]
    )
    pipeline.process("bronze")
    interruption = Interruption(Point.AFTER_STAGING, lambda: None)

    def once() -> None:
        if interruption.met == 1:
            report = compact(pipeline)
            assert report.tables[0].after.files < report.tables[0].before.files

    interruption._act = once
    pipeline.process("silver", interruption)
    assert interruption.met == 2
    assert pipeline.outcomes("silver")["replaced"] > 0
    agrees(pipeline)


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
            *(Sent(v, timestamp=later(1)) for v in events(0, 15, days=DAYS)),
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
    assert merge.met == 1, "the merge came second"
    assert len(tries) > 1
    assert report.tables[0].retries > 0
    assert report.tables[0].parts_left == ()
    agrees(pipeline)


@pytest.mark.parametrize(("seed", "rounds"), [(7, 3), pytest.param(8, 20, marks=pytest.mark.slow)])
def test_two_writers_compaction_and_expiry_at_once(
    pipeline: Pipeline,
    lake_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    rounds: int,
) -> None:
    print(f"seed {seed}")
    rng = Random(seed)
    log = lake_home / "logs" / "spark.log"
    before = log.stat().st_size
    done = threading.Event()
    met = count_conflicts(monkeypatch)
    expired: list[int] = []
    compacted: list[int] = []

    def bronze() -> None:
        try:
            for number in range(rounds):
                again = [Sent(v, timestamp=later(number)) for v in events(seed, 10, days=DAYS)]
                pipeline.produce([*events(seed + number, 30, number * 30, days=DAYS), *again, BAD])
                pipeline.process("bronze", slowly(pipeline, "bronze", rng, met))
        finally:
            done.set()

    def silver() -> None:
        last = False
        while not last:
            last = done.is_set()
            try:
                pipeline.process("silver", slowly(pipeline, "silver", rng, met))
            except EmptyBronzeError:
                time.sleep(0.2)

    def maintenance(name: str, wanted: Wanted) -> Callable[[], None]:
        def work() -> None:
            last = False
            while not last:
                last = done.is_set()
                try:
                    report = maintained(pipeline, name, wanted)
                except ConflictError as error:
                    met.append(error.what)
                    continue
                expired.append(sum(table.snapshots_expired for table in report.tables))
                compacted.append(sum(table.parts_compacted for table in report.tables))
                met.extend(
                    "a part was tried again" for t in report.tables for _ in range(t.retries)
                )

        return work

    soon = Wanted((EXPIRE,), keep=1, older_than=span_of("0s"))
    in_threads(
        bronze,
        silver,
        maintenance("compact", Wanted((COMPACT,), TABLES, min_files=2)),
        maintenance("expire", replace(soon, other_tables=("bronze", "silver"))),
    )
    with log.open("rb") as file:
        file.seek(before)
        met += CONFLICT.findall(file.read().decode(errors="replace"))
    print(*met, sep="\n")
    print(
        f"{len(met)} conflicts, {sum(expired)} snapshots expired, {sum(compacted)} parts compacted"
    )
    assert met, "they never met"
    assert sum(expired) > 0
    assert sum(compacted) > 0
    for schema in ("bronze", "silver"):
        table = MaintainedTable(pipeline.session, f"lake.{schema}.{pipeline.name}")
        assert table.metadata_files() <= METADATA_FILES
    records = pipeline.records()
    assert pipeline.bronze() == bronze_rows([r for r in records if r.value != BAD], TYPES)
    assert pipeline.outcomes() == {"accepted": 40 * rounds, "refused": rounds}
    agrees(pipeline)


def slowly(pipeline: Pipeline, schema: str, rng: Random, met: list[str]) -> Interruption:
    """Gives others time to commit between the staging of a batch and its publishing."""
    table = ManagedTable(pipeline.session, f"lake.{schema}.{pipeline.name}")

    def wait() -> None:
        patience = rng.random() if met else 8.0
        before, until = table.look().current(), time.monotonic() + patience
        while table.look().current() == before and time.monotonic() < until:
            time.sleep(0.1)

    return Interruption(Point.AFTER_STAGING, wait)


def count_conflicts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a staged batch met: a table that had moved under it, and published or refused."""
    met: list[str] = []

    def noting(method: Callable[[ManagedTable, Snapshot], Snapshot]) -> Any:
        def noted(table: ManagedTable, staged: Snapshot) -> Snapshot:
            try:
                published = method(table, staged)
            except TableMovedError as error:
                met.append(error.what)
                raise
            if published.id != staged.id:
                met.append(f"{table.name}: published after another commit")
            return published

        return noted

    for name in ("publish", "fast_forward"):
        monkeypatch.setattr(ManagedTable, name, noting(getattr(ManagedTable, name)))
    return met


def maintained(pipeline: Pipeline, name: str, wanted: Wanted) -> Report:
    """A maintenance run under a job name of its own, so that two can be under way."""
    declared = maintain_revision(pipeline)
    spec = JobSpec(
        f"{name}-{pipeline.name}", "maintain", pipeline.name, "batch", declared, wanted.options()
    )
    asked = pipeline.store.submit(spec)
    run = pipeline.store.claim(asked.job, asked.number, "this test")
    try:
        pipeline.carry_out(run)
    except Exception:
        pipeline.store.move(run.job, run.number, RunState.FAILED)
        raise
    pipeline.store.move(run.job, run.number, RunState.FINISHED)
    report = maintain.kept_report(pipeline.store, run.job, run.number)
    assert report is not None
    return report


def maintain_revision(pipeline: Pipeline) -> str:
    from headgate.jobs.declaration import declared_revision, keep

    return keep(pipeline.store, declared_revision(pipeline.settings, pipeline.name))
