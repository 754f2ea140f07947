"""Metrics of a running engine: what it measures of itself, the lag of its jobs, the sinks that it feeds.

A thread asks the broker now and then how far each job is behind, so that no scrape waits. Closed
windows go to Kafka, DogStatsD and HTTP as the settings say; Prometheus reads an endpoint.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from headgate.config.settings import Settings
from headgate.core.engine.job_kind import find_kafka_options, find_trigger
from headgate.core.kafka.topics import Topics, TopicSpec, TopicState
from headgate.core.ledger.model import Run
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import TopicRange, topic_ranges
from headgate.core.metrics.connect import ConnectWatch, together
from headgate.core.metrics.delivery import Deliverer, Sink, in_background
from headgate.core.metrics.prometheus import MetricsServer
from headgate.core.metrics.readings import EngineReading, Family, JobLag, Readings
from headgate.core.metrics.sinks import DogStatsd, HttpPush, KafkaSink
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# One partition: the windows of all tables in one order.
PARTITIONS, RETENTION_DAYS = 1, 7


def sinks_of(settings: Settings) -> tuple[Sink, ...]:
    """Kafka wherever there is a broker; DogStatsD and HTTP where an address is given."""
    found: list[Sink] = []
    if settings.bootstrap_servers:
        found.append(_kafka(settings.bootstrap_servers, settings.metrics_topic))
    if settings.dogstatsd_address:
        found.append(DogStatsd(settings.dogstatsd_address))
    if settings.metrics_push_url:
        url, token = settings.metrics_push_url, settings.metrics_push_token
        found.append(HttpPush(url, token, settings.http_timeout))
    return tuple(found)


def _kafka(bootstrap: str, topic: str) -> KafkaSink:
    spec = TopicSpec(topic, PARTITIONS, RETENTION_DAYS)

    def make() -> None:
        topics = Topics(bootstrap)
        topics.need()
        topics.create([spec])

    return KafkaSink(bootstrap, topic, make)


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
        newest = {run.job: run for run in reversed(self._store.runs())}
        following = [
            (run, options)
            for _, run in sorted(newest.items())
            if (options := find_kafka_options(run)) is not None
        ]
        if not following or not self._bootstrap:
            return
        topics = self._topics(self._bootstrap, self._timeout)
        topics.need()
        for run, options in following:
            settled = self._settled(run)
            for _, name in sorted(options.topics.items()):
                topic = topics.describe(name)
                if topic is not None:
                    yield JobLag(run.job, name, left(topic, settled.get(name)))

    def _settled(self, run: Run) -> dict[str, TopicRange]:
        """By topic, how far the job is settled; a table has no lag."""
        ranges = topic_ranges(self._store.settled_range(run.job))
        return {range_.topic: range_ for range_ in ranges.values()}


def left(topic: TopicState, settled: TopicRange | None) -> int:
    """Offsets that are not settled; of a topic made again, or not settled at all, all there are."""
    same = settled is not None and settled.source_id == topic.topic_id
    done = settled.end if settled is not None and same else dict[str, int]()
    return sum(
        max(0, end - max(done.get(str(partition), 0), topic.begin[partition]))
        for partition, end in topic.end.items()
    )


@contextmanager
def delivering(
    settings: Settings, store: OpsStore, say: Callable[[str], None] = lambda _: None
) -> Generator[None]:
    """Send closed windows meanwhile, and those that are left at the end."""
    deliverer = Deliverer(store, sinks_of(settings), say=say)
    with in_background(deliverer.run, "sinks"):
        yield
    deliverer.close()


@contextmanager
def serving(settings: Settings, store: OpsStore, session: SparkSession) -> Generator[int]:
    """Serve the Prometheus endpoint meanwhile; the port it listens on."""
    lag = LagWatch(store, settings.bootstrap_servers, settings.http_timeout)
    connect = ConnectWatch(settings.kafka_connect_metrics_url, settings.http_timeout)
    engine = partial(engine_reading, session)
    readings = Readings(store, engine, lambda: lag.lags, find_trigger)
    server = MetricsServer(settings.metrics_port, _WithConnect(readings, connect))
    server.start()
    try:
        with in_background(lag.run, "lag"), in_background(connect.run, "connect"):
            yield server.port
    finally:
        server.close()


@dataclass(frozen=True)
class _WithConnect:
    """The engine's readings, and what a Connect worker counts."""

    readings: Readings
    connect: ConnectWatch

    def families(self) -> tuple[Family, ...]:
        return together(self.readings.families(), self.connect.families)
