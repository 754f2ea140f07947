"""What the engine knows of itself: executors, cores, heap; and how far its jobs are behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from headgate.core.kafka.engine_topics import Topics, TopicState
from headgate.core.kafka.followed import topic_ranges
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import TOPIC_SOURCE, Range, Run
from headgate.core.metrics.metrics_readings import EngineReading, JobLag
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAG_SECONDS = 10.0
# Kinds of jobs that follow topics, and how their runs name those among their options: `topic`, or
# of a pair `topic_<side>`.
FOLLOWING = frozenset({"bronze", "quality", "reconcile", "router"})
TOPIC, TOPIC_OF = "topic", "topic_"


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


class Asked(Protocol):
    """What is asked of a broker."""

    def need(self) -> None: ...

    def describe(self, name: str) -> TopicState | None: ...


class LagWatch:
    """Asks the broker now and then how far each job is behind, so that no scrape waits.

    A job that was stopped, has failed, or is stuck in its first batch is behind as well.
    """

    def __init__(
        self,
        store: OpsStore,
        bootstrap: str | None,
        timeout: float,
        topics: Callable[[str, float], Asked] = Topics,
    ) -> None:
        self._store, self._bootstrap, self._timeout = store, bootstrap, timeout
        self._topics = topics
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
        newest = {run.job: run for run in reversed(self._store.runs()) if run.kind in FOLLOWING}
        if not newest or not self._bootstrap:
            return
        topics = self._topics(self._bootstrap, self._timeout)
        topics.need()
        for _, run in sorted(newest.items()):
            settled = self._settled(run)
            for name in named_topics(run) or settled:
                topic = topics.describe(name)
                if topic is not None:
                    yield JobLag(run.job, name, left(topic, settled.get(name)))

    def _settled(self, run: Run) -> dict[str, Range]:
        """By topic, how far the job is settled; a table has no lag."""
        found = self._store.settled_range(run.job)
        own = {} if found is None or found.is_table else topic_ranges(found)
        return {range_.source.removeprefix(TOPIC_SOURCE): range_ for range_ in own.values()}


def named_topics(run: Run) -> tuple[str, ...]:
    """The topics that a run was asked to read."""
    names = sorted(name for name in run.options if name == TOPIC or name.startswith(TOPIC_OF))
    return tuple(run.options[name] for name in names)


def left(topic: TopicState, settled: Range | None) -> int:
    """Offsets that are not settled; of a topic made again, or not settled at all, all there are."""
    same = settled is not None and settled.source_id == topic.topic_id
    done = settled.end if settled is not None and same else dict[str, int]()
    return sum(
        max(0, end - max(done.get(str(partition), 0), topic.begin[partition]))
        for partition, end in topic.end.items()
    )
