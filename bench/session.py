"""One Spark session for a benchmark, and the jobs of the engine run in it."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bench.sample import DATASET, ROOT, create_topics, send_sample, write_taxi_sample
from bench.timing import report_progress
from headgate.config.settings import Settings, load_settings
from headgate.core.engine.job_kind import JOBS
from headgate.core.engine.run import RunContext
from headgate.core.engine.session import start_session
from headgate.core.engine.submit import ask_for, job_name
from headgate.core.ledger.model import LedgerRow, Run
from headgate.core.ledger.ops_store import OpsStore

NO_BROKER = "127.0.0.1:1"
MAX_STREAM_SECONDS = 600.0


@dataclass
class BenchSession:
    """A Spark session with a folder of its own, which is removed in the end, and maybe a broker."""

    folder: Path
    bootstrap: str
    settings: Settings
    spark: SparkSession
    runs: int = 0

    def fill_topic(self, topic: str, rows: int, bad_share: float | None = None) -> int:
        """Create a topic and send it a sample of so many rows; how many of them are bad."""
        report_progress(f"sending {rows:,} records")
        create_topics(self.bootstrap, topic)
        file = self.folder / f"{topic}.parquet"
        bad = write_taxi_sample(file, rows, bad_share)
        send_sample(file, self.bootstrap, topic)
        return bad

    def drop_tables(self) -> None:
        """Drop every table, so that the next run begins anew."""
        for namespace in ("bronze", "silver", "headgate", "plain"):
            self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{namespace}")
            for row in self.spark.sql(f"SHOW TABLES IN lake.{namespace}").collect():
                self.spark.sql(f"DROP TABLE lake.{namespace}.{row['tableName']} PURGE")

    def new_folder(self) -> Path:
        """A folder for the checkpoint and the ops store of one run."""
        self.runs += 1
        return self.folder / f"run-{self.runs}"

    @contextmanager
    def open_jobs(self, topic: str) -> Iterator[DatasetJobs]:
        """The jobs of the taxi dataset over a topic, with a new ops store and checkpoint."""
        home = self.new_folder()
        update = {"home": home, "topic": topic, "dlq_topic": f"{topic}.dlq"}
        settings = self.settings.model_copy(update=update)
        with OpsStore.open(f"sqlite:///{home}/ops.db") as store:
            yield DatasetJobs(self.spark, settings, store)

    def claim_job(
        self, settings: Settings, store: OpsStore, job: str, mode: str = "batch"
    ) -> RunContext:
        """A run of any declared job, claimed as an engine claims it."""
        run = ask_for(settings, store, job, mode)
        return claim_run(settings, store, self.spark, run)


@dataclass(frozen=True)
class DatasetJobs:
    """Runs the jobs of the taxi dataset as the engine runs them."""

    spark: SparkSession
    settings: Settings
    store: OpsStore

    def run_batch(self, kind: str) -> None:
        """Run the job to the end of the topic."""
        JOBS[kind](self._claim(kind, "batch"))

    def run_stream(self, kind: str, records: int) -> None:
        """Run the job as a stream until it has read so many records."""
        context = self._claim(kind, "streaming")

        def stop_when_done() -> None:
            end = time.monotonic() + MAX_STREAM_SECONDS
            while time.monotonic() < end and not context.stop.wait(0.1):
                if self.count_read(kind) >= records:
                    context.stop.set()
            context.stop.set()

        watch = threading.Thread(target=stop_when_done, daemon=True)
        watch.start()
        JOBS[kind](context)
        context.stop.set()
        watch.join()
        if self.count_read(kind) < records:
            raise SystemExit(f"{kind} did not read {records} records in {MAX_STREAM_SECONDS:g} s")

    def count_read(self, kind: str) -> int:
        """How many records the job has read, by its ledger."""
        return sum(row.read for row in self._ledger(kind))

    def count_accepted(self, kind: str) -> int:
        """How many records the job has accepted, by its ledger."""
        return sum(row.outcomes.get("accepted", 0) for row in self._ledger(kind))

    def _ledger(self, kind: str) -> tuple[LedgerRow, ...]:
        return self.store.ledger(job_name(kind, DATASET))

    def _claim(self, kind: str, mode: str) -> RunContext:
        run = ask_for(self.settings, self.store, job_name(kind, DATASET), mode)
        return claim_run(self.settings, self.store, self.spark, run)


def claim_run(settings: Settings, store: OpsStore, spark: SparkSession, run: Run) -> RunContext:
    """Claim a submitted run."""
    claimed = store.claim(run.job, run.number, "bench")
    return RunContext(claimed, settings, spark, store, lambda: None)


@contextmanager
def open_session(bootstrap: str = NO_BROKER) -> Iterator[BenchSession]:
    """Start Spark as the engine starts it; after an error it is left to end with this process.

    A call to a JVM that is in the middle of another one would only raise a second error.
    """
    with tempfile.TemporaryDirectory(prefix="headgate-bench-", ignore_cleanup_errors=True) as name:
        own = {"HEADGATE_HOME": name, "BOOTSTRAP_SERVERS": bootstrap, "DATASET": DATASET}
        settings = load_settings(ROOT, {**os.environ, **own})
        spark = start_session(settings)
        report_progress("Spark has started")
        yield BenchSession(Path(name), bootstrap, settings, spark)
        spark.stop()
