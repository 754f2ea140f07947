"""What the measurements on Spark share: a session, a topic full of records, a meter of CPU time."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.engine.context import RunContext
from headgate.engine.session import start_session
from headgate.engine.topics import Topics, TopicSpec
from headgate.feeds.generator import Plan, generate
from headgate.feeds.sample_file import write_sample
from headgate.jobs import declaration
from headgate.jobs.registry import JOBS
from headgate.jobs.requests import job_name
from headgate.local.memory import family, processes
from headgate.settings import Settings, load_settings
from headgate.spec.dataset import Dataset
from headgate.spec.declared import Declared
from headgate.spec.loader import load_dataset
from headgate.spec.sample_loader import load_sample
from headgate.store.model import JobSpec, LedgerRow
from headgate.store.ops import OpsStore

ROOT = Path(__file__).resolve().parents[1]
DATASET = "taxi"
TICKS = os.sysconf("SC_CLK_TCK")
LONGEST_STREAM = 600.0


@dataclass(frozen=True)
class Cost:
    """What one piece of work took: CPU of this process and the JVM below it, and wall time."""

    cpu_seconds: float
    wall_seconds: float


class Nobody:
    def begin(self, total: int) -> None: ...

    def advance(self, rows: int) -> None: ...


@dataclass
class Rig:
    """One Spark session and one broker; every run gets a home of its own."""

    folder: Path
    bootstrap: str
    settings: Settings
    session: SparkSession
    runs: int = 0

    @property
    def dataset(self) -> Dataset:
        return declared("topic", "topic.dlq").value

    def fill(self, topic: str, rows: int, *, bad: bool = True) -> None:
        """A new topic with a sample of so many rows; `bad` says whether some cannot be parsed."""
        Topics(self.bootstrap).create([TopicSpec(topic, 3, 1), TopicSpec(f"{topic}.dlq", 1, 1)])
        file = self.folder / f"{topic}.parquet"
        sample = load_sample(ROOT / f"datasets/{DATASET}/sample.yml").value
        write_sample(sample if bad else replace(sample, bad=()), file, rows)
        plan = Plan(
            file=file,
            said="the benchmark",
            dataset=declared(topic, f"{topic}.dlq"),
            bootstrap=self.bootstrap,
            broker="bench",
            mode="burst",
            rate=1,
            max_events=0,
            schema_file=None,
            metrics_file=self.folder / "metrics.json",
        )
        generate(plan, Nobody())

    def drop(self) -> None:
        """Every table of ours, so that the next run begins anew."""
        for namespace in ("bronze", "silver", "headgate", "plain"):
            self.session.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{namespace}")
            for row in self.session.sql(f"SHOW TABLES IN lake.{namespace}").collect():
                self.session.sql(f"DROP TABLE lake.{namespace}.{row['tableName']} PURGE")

    @contextmanager
    def home(self, topic: str) -> Iterator[Home]:
        """A fresh ops store and checkpoint for runs over this topic."""
        self.runs += 1
        settings = self.settings.model_copy(
            update={
                "home": self.folder / f"run-{self.runs}",
                "topic": topic,
                "dlq_topic": f"{topic}.dlq",
            }
        )
        with OpsStore.open(f"sqlite:///{settings.home}/ops.db") as store:
            yield Home(self.session, settings, store)


@dataclass(frozen=True)
class Home:
    """Where jobs are run as the engine runs them, less its waiting."""

    session: SparkSession
    settings: Settings
    store: OpsStore

    def run(self, kind: str) -> tuple[LedgerRow, ...]:
        context = self._context(kind, "batch")
        JOBS[kind](context)
        return self.store.ledger(context.run.job)

    def stream(self, kind: str, records: int) -> tuple[LedgerRow, ...]:
        """The job as a stream, stopped as soon as so many records are accounted for."""
        context = self._context(kind, "streaming")

        def stop_when_done() -> None:
            end = time.monotonic() + LONGEST_STREAM
            while time.monotonic() < end and not context.stop.wait(0.1):
                if sum(row.read for row in self.store.ledger(context.run.job)) >= records:
                    context.stop.set()
            context.stop.set()

        watch = threading.Thread(target=stop_when_done, daemon=True)
        watch.start()
        JOBS[kind](context)
        context.stop.set()
        watch.join()
        return self.store.ledger(context.run.job)

    def ledger(self, kind: str) -> tuple[LedgerRow, ...]:
        return self.store.ledger(job_name(kind, DATASET))

    def _context(self, kind: str, mode: str) -> RunContext:
        revision = declaration.keep(
            self.store, declaration.declared_revision(self.settings, DATASET)
        )
        job = job_name(kind, DATASET)
        run = self.store.submit(JobSpec(job, kind, DATASET, mode, revision))
        claimed = self.store.claim(job, run.number, "bench")
        return RunContext(claimed, self.settings, self.session, self.store, lambda: None)


def declared(topic: str, dlq_topic: str) -> Declared[Dataset]:
    variables = {"TOPIC": topic, "DLQ_TOPIC": dlq_topic}
    return load_dataset(ROOT / f"datasets/{DATASET}/dataset.yml", variables)


@contextmanager
def rig(bootstrap: str) -> Iterator[Rig]:
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        environ = {"HEADGATE_HOME": name, "BOOTSTRAP_SERVERS": bootstrap, "DATASET": DATASET}
        settings = load_settings(ROOT, environ)
        session = start_session(settings)
        try:
            yield Rig(folder, bootstrap, settings, session)
        finally:
            session.stop()


def measured(work: Callable[[], object]) -> Cost:
    wall, cpu = time.perf_counter(), cpu_seconds()
    work()
    return Cost(round(cpu_seconds() - cpu, 2), round(time.perf_counter() - wall, 2))


def cpu_seconds() -> float:
    """User and system time of this process and of all that live below it."""
    pids = family(os.getpid(), processes().values())
    return sum(_ticks(pid) for pid in pids) / TICKS


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])
