"""Everything that writes, at once: nothing is lost, nothing is there twice, and they did meet."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from tests.support.bronze_table import assert_consistent
from tests.support.dataset_events import events
from tests.support.oracle import expected_bronze
from tests.support.pipeline import MORNING, SECOND, TYPES, Interruption, Pipeline, ProducerRecord
from tests.support.run_requests import request_backfill

from headgate.core.engine.batch import Point, Result
from headgate.core.engine.controller import TRIES
from headgate.core.lake.commits import TableMovedError
from headgate.core.lake.spark import IcebergTable, Snapshot
from headgate.core.lake.table import ManagedTable
from headgate.core.ledger.model import Intent, JobSpec, RunState
from headgate.core.sql.fragments import TABLE_PROPERTIES
from headgate.errors import BatchRefusedError, ConflictError
from headgate.maintenance import job as maintain
from headgate.maintenance.plan import (
    COMPACT,
    EXPIRE,
    TABLES,
    MaintenanceRunOptions,
    Report,
    span_of,
)
from headgate.maintenance.table import MaintainedTable
from headgate.pipeline.revision import declared_revision, keep
from headgate.pipeline.silver import EmptyBronzeError, SilverWork

BAD = b"not a record"
DAYS = 2  # few dates, so that each has several files
DATES = ("2024-01-01", "2024-01-02", "2024-01-03")
METADATA_FILES = int(TABLE_PROPERTIES["write.metadata.previous-versions-max"]) + 1
# What Iceberg writes into the log when a commit finds another one before it.
CONFLICT = re.compile(r"Retrying task after failure|Cannot commit|Failure during rewrite commit")
LATE_COMMIT = r"CommitFailedException: .*\b{table}\b"
LONGEST_WAIT = 8.0
EXPIRE_AT_ONCE = MaintenanceRunOptions(actions=(EXPIRE,), keep=1, older_than=span_of("3s"))


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


@dataclass
class ConcurrentWriters:
    """Who writes to the tables of one dataset; they go on until bronze has made its batches."""

    pipeline: Pipeline
    seed: int
    rounds: int
    met: list[str] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    backfills: int = 0
    elsewhere: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng, self._done = Random(self.seed), threading.Event()

    def bronze(self) -> None:
        try:
            for number in range(self.rounds):
                again = [ProducerRecord(v, timestamp=later(number)) for v in self._events(0, 10)]
                self.pipeline.produce([*self._events(number, 30), *again, BAD])
                self.pipeline.process("bronze", self._slowly("bronze"))
        finally:
            self._done.set()

    def _events(self, number: int, count: int) -> list[bytes]:
        return list(events(self.seed + number, count, number * 30, days=DAYS))

    def silver(self) -> None:
        def once() -> None:
            try:
                self._as_the_controller(
                    lambda: self.pipeline.process("silver", self._slowly("silver"))
                )
            except EmptyBronzeError:
                time.sleep(0.2)

        self._until_done(once)

    def _as_the_controller(self, run: Callable[[], object]) -> object:
        """Begin the run again while others change its table, as often as the controller does."""
        for _ in range(TRIES - 1):
            try:
                return run()
            except TableMovedError as error:
                self.met.append(error.what)
        return run()

    def backfill(self) -> None:
        """Another writer of silver: each of its commits makes a merge that is under way begin anew."""

        def once() -> None:
            first, last = sorted(self._rng.choices(DATES, k=2))
            try:
                self.pipeline.process("backfill", request=request_backfill(first, last))
                self.backfills += 1
            except (BatchRefusedError, EmptyBronzeError) as error:
                if "has no rows" not in error.what:
                    raise
            time.sleep(self._rng.random())

        self._until_done(once)

    def maintenance(self, name: str, options: MaintenanceRunOptions) -> Callable[[], None]:
        return lambda: self._until_done(lambda: self.maintain(name, options))

    def maintain(self, name: str, options: MaintenanceRunOptions) -> None:
        try:
            report = maintained(self.pipeline, name, options)
        except ConflictError as error:
            self.met.append(error.what)
            return
        self.reports.append(report)
        retries = sum(table.retries for table in report.tables)
        self.met += ["a part was tried again"] * retries

    def maintenance_elsewhere(self) -> None:
        """The same by a process of its own, which is no part of this JVM."""

        def once() -> None:
            tables = ("--table", "bronze", "--table", "silver", "--min-files", "2")
            command = self.pipeline.command("maintain", "compact", *tables)
            out, talk = command.communicate(timeout=200)
            assert command.returncode == 0, talk
            self.elsewhere.append(out)

        self._until_done(once)

    def _until_done(self, once: Callable[[], None]) -> None:
        last = False
        while not last:
            last = self._done.is_set()
            once()

    def _slowly(self, kind: str) -> Interruption:
        """Gives others time to commit between staging and publishing: much, until they have met."""
        table = ManagedTable(self.pipeline.session, f"lake.{kind}.{self.pipeline.name}")

        def wait() -> None:
            has_met = any(words.startswith(f"{kind} ") for words in self.met)
            patience = self._rng.random() if has_met else LONGEST_WAIT
            before, until = table.look().current(), time.monotonic() + patience
            while table.look().current() == before and time.monotonic() < until:
                time.sleep(0.1)

        return Interruption(Point.AFTER_STAGING, wait)

    def total(self, what: str) -> int:
        return sum(getattr(table, what) for report in self.reports for table in report.tables)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "rounds"), [(7, 8), (8, 20)])
def test_writers_backfills_compaction_and_expiry_at_once(
    pipeline: Pipeline,
    lake_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    rounds: int,
) -> None:
    print(f"seed {seed}")
    writers, is_long = ConcurrentWriters(pipeline, seed, rounds), rounds > 8
    log = lake_home / "logs" / "spark.log"
    before = log.stat().st_size
    count_conflicts(monkeypatch, writers.met)
    ManagedTable(pipeline.session, "lake.bronze.none").exists()  # the catalog's own tables are made
    in_threads(
        writers.bronze,
        writers.silver,
        writers.backfill,
        writers.maintenance(
            "compact", MaintenanceRunOptions(actions=(COMPACT,), compact_tables=TABLES, min_files=2)
        ),
        writers.maintenance("expire", EXPIRE_AT_ONCE),
        *([writers.maintenance_elsewhere] if is_long else []),
    )
    with log.open("rb") as file:
        file.seek(before)
        logged = file.read().decode(errors="replace")
    writers.met += CONFLICT.findall(logged)
    told(writers)
    assert "silver was run again" in writers.met, "no silver step ever lost"
    assert writers.backfills > 0
    assert writers.total("snapshots_expired") > 0
    assert writers.total("parts_compacted") > 0
    assert any("Report of" in out for out in writers.elsewhere) or not is_long
    for schema in ("bronze", "silver"):
        table = f"{schema}.{pipeline.name}"
        # Iceberg's jdbc catalog leaves the metadata file of a commit that came too late, whether it
        # tries again by itself (its log says so) or we do; vacuum removes these files.
        late_commits = len(re.findall(LATE_COMMIT.format(table=table), logged))
        late_commits += sum(word.endswith("was run again") for word in writers.met)
        metadata = IcebergTable(pipeline.session, f"lake.{table}").refresh().metadata()
        files = MaintainedTable(pipeline.session, f"lake.{table}").metadata_files()
        print(f"{table}: {late_commits} commits came too late, {files} metadata files")
        assert len(metadata["metadata-log"]) < METADATA_FILES
        assert files <= METADATA_FILES + late_commits
    records = pipeline.records()
    assert pipeline.bronze() == expected_bronze([r for r in records if r.value != BAD], TYPES)
    assert pipeline.outcomes() == {"accepted": 40 * rounds, "refused": rounds}
    assert len(pipeline.dead_letters()) == rounds
    assert_consistent(pipeline)


def told(writers: ConcurrentWriters) -> None:
    print(*writers.met, sep="\n")
    expired, parts = writers.total("snapshots_expired"), writers.total("parts_compacted")
    print(
        f"{len(writers.met)} conflicts, {writers.backfills} backfills, {expired} snapshots expired,"
    )
    print(f"{parts} parts compacted, {len(writers.elsewhere)} times by another process too")


def later(number: int) -> int:
    return MORNING + number * 60 * SECOND


def count_conflicts(monkeypatch: pytest.MonkeyPatch, met: list[str]) -> None:
    """What a staged batch met: a table that had moved under it, and published or run again."""
    publish, write = ManagedTable.publish, SilverWork._write  # one try

    def noted_publish(table: ManagedTable, staged: Snapshot) -> Snapshot:
        published = publish(table, staged)
        if published.id != staged.id:
            schema = table.name.split(".")[1]
            met.append(f"{schema} was published after another commit")
        return published

    def noted_write(work: SilverWork, intent: Intent) -> Result:
        try:
            return write(work, intent)
        except TableMovedError:
            met.append(f"{intent.job.partition('-')[0]} was run again")
            raise

    monkeypatch.setattr(ManagedTable, "publish", noted_publish)
    monkeypatch.setattr(SilverWork, "_write", noted_write)


def maintained(pipeline: Pipeline, name: str, options: MaintenanceRunOptions) -> Report:
    """A maintenance run under a job name of its own, so that two can be under way."""
    declared = keep(pipeline.store, declared_revision(pipeline.settings, pipeline.name))
    spec = JobSpec(f"{name}-{pipeline.name}", "maintain", pipeline.name, "batch", declared, options)
    asked = pipeline.store.submit(spec)
    run = pipeline.store.claim(asked.job, asked.number, "this test")
    try:
        pipeline.carry_out(run)
    except Exception:
        pipeline.store.move(run.job, run.number, RunState.FAILED)
        raise
    pipeline.store.move(run.job, run.number, RunState.FINISHED)
    report = maintain.read_report(pipeline.store, run.job, run.number)
    assert report is not None
    return report
