"""What the engine knows of itself: executors, cores, heap; and how far its jobs are behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from headgate.engine.followed import topic_ranges
from headgate.engine.topics import Topics
from headgate.errors import HeadgateError
from headgate.metrics.readings import EngineReading, JobLag
from headgate.store.model import TOPIC_SOURCE, Range, Run, RunState
from headgate.store.ops import OpsStore

LAG_SECONDS = 10.0


def engine_reading(session: SparkSession) -> EngineReading:
    """Asks the JVM: a handful of calls, some milliseconds."""
    context: Any = session.sparkContext  # what is asked of it has no name in PySpark itself
    jvm, scala = context._jvm, context._jsc.sc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    known = int(scala.getExecutorMemoryStatus().size())
    cores = context.defaultParallelism
    return EngineReading(
        executors=known if scala.isLocal() else known - 1,
        cores=cores,
        cores_free=max(0, cores - _busy(context.statusTracker())),
        heap_used=runtime.totalMemory() - runtime.freeMemory(),
        heap_max=runtime.maxMemory(),
    )


def _busy(tracker: Any) -> int:
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return sum(stage.numActiveTasks for stage in stages if stage is not None)


class LagWatch:
    """Asks the broker now and then how far each running job is behind, so that no scrape waits."""

    def __init__(self, store: OpsStore, bootstrap: str | None, timeout: float) -> None:
        self._store, self._bootstrap, self._timeout = store, bootstrap, timeout
        self.lags: tuple[JobLag, ...] = ()

    def run(self, stop: threading.Event) -> None:
        while self._bootstrap and not stop.wait(LAG_SECONDS):
            self.look()

    def look(self) -> None:
        """Measure; while the broker is away there is no lag to tell."""
        try:
            self.lags = tuple(self._measured())
        except HeadgateError:
            self.lags = ()

    def _measured(self) -> Iterator[JobLag]:
        runs = self._store.runs(states=(RunState.RUNNING,))
        if not runs or not self._bootstrap:
            return
        topics = Topics(self._bootstrap, self._timeout)
        topics.need()
        for run in runs:
            settled = self._store.settled_range(run.job)
            if settled is None or settled.is_table:
                continue
            for own in topic_ranges(settled).values():
                lag = self._lag(topics, run, own)
                if lag is not None:
                    yield lag

    def _lag(self, topics: Topics, run: Run, settled: Range) -> JobLag | None:
        topic = topics.describe(settled.source.removeprefix(TOPIC_SOURCE))
        if topic is None:
            return None
        same = settled.source_id == topic.topic_id
        done = settled.end if same else dict[str, int]()
        left = (
            max(0, end - max(done.get(str(partition), 0), topic.begin[partition]))
            for partition, end in topic.end.items()
        )
        return JobLag(run.job, topic.name, sum(left))
