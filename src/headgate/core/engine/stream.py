"""Kafka as a source and sink of Spark: one query over a topic or a pair, ranges read again, rows sent.

Batch and streaming differ in the trigger alone. `TopicQuery` hands each micro-batch with its offset
range to a function, and stops only between batches. Spark's clients wait for a broker in silence, so
`BrokerWatch` reports when it is away. `explain` turns Spark's failures into errors of ours.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JNetworkError  # pyright: ignore[reportMissingTypeStubs]  # it has none
from sqlalchemy.exc import OperationalError as SQLAlchemyOperationalError

from headgate.core.engine.checkpoint import Checkpoint
from headgate.core.kafka.offsets import Followed
from headgate.core.kafka.topics import Topics, TopicState
from headgate.core.lake.spark import observed
from headgate.core.ledger.ranges import OffsetRange, TopicRange, side_offsets, topic_ranges
from headgate.errors import (
    BatchRefusedError,
    DriverLostError,
    HeadgateError,
    OperationError,
    UnavailableError,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


SECONDS_BETWEEN_LOOKS = 2.0


class BrokerWatch:
    """Tells when the broker goes away under a running query, and when the query goes on."""

    def __init__(
        self,
        topics: Topics,
        waits: Callable[[HeadgateError], None],
        goes_on: Callable[[], None],
    ) -> None:
        self._topics, self._waits, self._goes_on = topics, waits, goes_on
        self._looked = time.monotonic()
        self._told_well = False

    def look(self, *, steady: bool) -> None:
        """Look now and then; `steady` says that the query has worked since it was started."""
        if time.monotonic() - self._looked < SECONDS_BETWEEN_LOOKS:
            return
        try:
            self._topics.need()
        except UnavailableError as away:
            self._told_well = False
            self._waits(away)
        else:
            if steady and not self._told_well:
                self._told_well = True
                self._goes_on()
        self._looked = time.monotonic()


# A broker that restarts is back within it; what then still fails is tried again with the whole batch.
DELIVER_MS, ANSWER_MS = 60_000, 15_000
# The producer's own limit must not be the one that is met: the topics have theirs.
LEAST_REQUEST = 1_048_576


def send_each(rows: DataFrame, bootstrap: str, largest: int) -> None:
    """Send rows with the columns topic, key, value and headers; returns once all are confirmed."""
    rows.select("topic", "key", "value", "headers").write.format("kafka").options(
        **{
            "kafka.bootstrap.servers": bootstrap,
            "kafka.max.block.ms": str(ANSWER_MS),
            "kafka.request.timeout.ms": str(ANSWER_MS),
            "kafka.delivery.timeout.ms": str(DELIVER_MS),
            "kafka.max.request.size": str(max(LEAST_REQUEST, largest)),
            "kafka.compression.type": "lz4",
        }
    ).save()


# What a broker that is away looks like in a JVM trace.
AWAY = (
    "org.apache.kafka.common.errors.TimeoutException",
    "org.apache.kafka.common.errors.DisconnectException",
    "org.apache.kafka.common.errors.NetworkException",
    "java.util.concurrent.TimeoutException: Cannot fetch record",
    "Bootstrap broker",
)
# What a catalog or an object storage that is away looks like there.
SERVICE_AWAY = (
    "java.net.ConnectException",
    "java.net.NoRouteToHostException",
    "java.net.SocketTimeoutException",
    "java.net.UnknownHostException",
    "org.apache.iceberg.exceptions.ServiceUnavailableException",
    "org.sqlite.SQLiteException: [SQLITE_BUSY",
)
DISK_FULL = ("No space left on device", "SQLITE_FULL", "database or disk is full")
# What Spark says when the state of a query is gone or spoilt.
LOST_STATE = ("CANNOT_LOAD_STATE_STORE", "FAILED_READ_DELTA_FILE", "CANNOT_READ_", "STATE_STORE_")
SHORT = 160
TICK_SECONDS = 1.0
STARTING_SECONDS = 30.0
Handle = Callable[["DataFrame", OffsetRange, int], None]
# What is handed on of the sources, which come by side: for one topic, its records.
Shape = Callable[[Mapping[str, "DataFrame"]], "DataFrame"]


@dataclass(frozen=True)
class Pace:
    """How often a stream looks for records, and how much of a backlog one batch may have."""

    trigger_seconds: float
    max_offsets: int


def only(sources: Mapping[str, DataFrame]) -> DataFrame:
    """The records of the only topic, as they are."""
    (frame,) = sources.values()
    return frame


class TopicQuery:
    """Hands each micro-batch with its offset range to `handle`, until the end or until stopped.

    A `shape` that keeps state must be carried out by `handle` exactly once for each batch.
    """

    def __init__(
        self,
        session: SparkSession,
        bootstrap: str,
        topic: Followed,
        checkpoint: Checkpoint,
        pace: Pace,
        shape: Shape = only,
    ) -> None:
        self._session, self._bootstrap, self._topic = session, bootstrap, topic
        self._checkpoint, self._pace, self._shape = checkpoint, pace, shape
        self._query: StreamingQuery | None = None
        self._started = threading.Event()
        self._topics = Topics(bootstrap)
        self._between_batches = threading.Lock()
        self._under_way = threading.Lock()
        self._next_tick = 0.0
        self._error: BaseException | None = None
        self._handled = 0

    def run(
        self,
        handle: Handle,
        mode: str,
        stop: threading.Event,
        waits: Callable[[HeadgateError], None],
        goes_on: Callable[[], None],
        tick: Callable[[], None] | None = None,
    ) -> None:
        """Block until all that was there is processed (batch), or until `stop` is set.

        `waits` hears why the query cannot go on for now, `goes_on` that it does; `tick` is called
        now and then while no batch is under way.
        """
        watch, began = BrokerWatch(self._topics, waits, goes_on), time.monotonic()
        query = self._query = self._start(handle, mode)
        self._started.set()
        try:
            while not _ended(query, 0.3):
                if stop.is_set():
                    self._stop(query)
                    return
                lasts = time.monotonic() - began > 2 * self._pace.trigger_seconds
                watch.look(steady=lasts or self._handled > 0)
                self._tick(tick)
        except Exception as error:
            if query.isActive:  # it is the tick that failed, or the look at the broker
                self._stop(query)
            raise self._error or error from error
        if self._error is not None:
            raise self._error

    def _tick(self, tick: Callable[[], None] | None) -> None:
        """Never beside a batch: both may look at the same tables."""
        now = time.monotonic()
        if tick is None or now < self._next_tick:
            return
        if self._under_way.acquire(blocking=False):
            try:
                tick()
            finally:
                self._under_way.release()
            self._next_tick = now + TICK_SECONDS

    def observed(self, name: str) -> tuple[int, ...] | None:
        """What the batch under way has counted so far; a task that was tried twice counts twice."""
        self._started.wait(STARTING_SECONDS)
        return observed(self._query, name) if self._query is not None else None

    def state(self) -> tuple[int, int] | None:
        """Rows and bytes of the state after the last batch that is done; None when there is none."""
        found = self._query.lastProgress if self._query is not None else None
        if found is None or not found.stateOperators:
            return None
        rows = sum(operator.numRowsTotal for operator in found.stateOperators)
        return rows, sum(operator.memoryUsedBytes for operator in found.stateOperators)

    def _start(self, handle: Handle, mode: str) -> StreamingQuery:
        writer = self._frame().writeStream.foreachBatch(self._callback(handle))
        writer = writer.outputMode("update")
        writer = writer.option("checkpointLocation", self._checkpoint.location)
        if mode == "batch":
            writer = writer.trigger(availableNow=True)
        else:
            milliseconds = round(self._pace.trigger_seconds * 1000)
            writer = writer.trigger(processingTime=f"{milliseconds} milliseconds")
        return writer.queryName(self._checkpoint.job).start()

    def _frame(self) -> DataFrame:
        start = self._checkpoint.start()
        if start is None:
            raise OperationError("the checkpoint does not say where it starts")
        first = {**self._topic.begin, **start.offsets}
        return self._shape(
            {
                side: self._source(topic, side_offsets(first, side))
                for side, topic in self._topic.topics.items()
            }
        )

    def _source(self, topic: TopicState, first: Mapping[str, int]) -> DataFrame:
        most = max(1, self._pace.max_offsets // len(self._topic.topics))
        reader = self._session.readStream.format("kafka").options(**source_options(self._bootstrap))
        return reader.options(
            subscribe=topic.name,
            startingOffsets=json.dumps({topic.name: first}),
            maxOffsetsPerTrigger=str(most),
        ).load()

    def _callback(self, handle: Handle) -> Callable[[DataFrame, int], None]:
        def process(frame: DataFrame, batch_id: int) -> None:
            # The lock is taken only while the query is being stopped: then no batch begins.
            if not self._between_batches.acquire(blocking=False):
                raise OperationError("the query is being stopped")
            try:
                with self._under_way:
                    handle(frame, self._range(batch_id), batch_id)
                self._handled += 1
            except BaseException as error:
                # Spark would hand back only the words of it.
                self._error = error
                raise
            finally:
                self._between_batches.release()

        return process

    def _range(self, batch_id: int) -> OffsetRange:
        for topic in self._topic.topics.values():
            refuse_another_topic(self._topics, topic)
        return self._topic.range(*self._checkpoint.range_of(batch_id))

    def _stop(self, query: StreamingQuery) -> None:
        with self._between_batches:
            query.stop()


def refuse_another_topic(topics: Topics, topic: TopicState) -> None:
    """A topic that is deleted and made again keeps its name, not its id; its offsets begin anew."""
    now = topics.describe(topic.name)
    if now is None or now.topic_id != topic.topic_id:
        raise BatchRefusedError(
            f"topic {topic.name} was deleted" + (" and made again" if now else ""),
            why=f"its id was {topic.topic_id}, now it is {now.topic_id if now else 'gone'}",
            fix="headgate job repair: it starts at the new topic's first record",
        )


def source_options(bootstrap: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": bootstrap,
        "kafka.isolation.level": "read_committed",
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }


def read_ranges(session: SparkSession, bootstrap: str, range_: OffsetRange) -> dict[str, DataFrame]:
    """The records of a range of one topic or of a pair, read again, by side."""
    return {side: read_range(session, bootstrap, own) for side, own in topic_ranges(range_).items()}


def read_range(session: SparkSession, bootstrap: str, range_: TopicRange) -> DataFrame:
    """The records of a topic's range, read again."""
    start = {key: range_.start.get(key, 0) for key in range_.end}
    return (
        session.read.format("kafka")
        .options(**source_options(bootstrap))
        .options(
            # Not `subscribe`: a partition that was added since is not part of this range.
            assign=json.dumps({range_.topic: sorted(int(key) for key in range_.end)}),
            startingOffsets=json.dumps({range_.topic: start}),
            endingOffsets=json.dumps({range_.topic: dict(range_.end)}),
        )
        .load()
    )


def _ended(query: StreamingQuery, seconds: float) -> bool:
    return bool(query.awaitTermination(seconds))  # pyright: ignore[reportArgumentType]  # py4j takes a float


def is_lost_state(error: BaseException) -> bool:
    """Whether the query failed because it cannot read the state that it kept."""
    return any(sign in str(error) for sign in LOST_STATE)


def explain(error: BaseException) -> HeadgateError:
    """A Spark failure as an error of ours, with its first line as the reason."""
    if isinstance(error, HeadgateError):
        return error
    text = str(error)
    if isinstance(error, (Py4JNetworkError, ConnectionError)):
        return DriverLostError("the engine's JVM did not answer", why=_cause(text) or repr(error))
    if any(sign in text for sign in AWAY):
        return UnavailableError("the broker did not answer", why=_cause(text), fix="make health")
    if any(sign in text for sign in DISK_FULL):
        return UnavailableError("the disk is full", why=_cause(text), fix="make room on it")
    if isinstance(error, SQLAlchemyOperationalError):
        return UnavailableError("the ops store did not answer", why=_cause(text), fix="make health")
    if any(sign in text for sign in SERVICE_AWAY):
        what = "the catalog or the storage did not answer"
        return UnavailableError(what, why=_cause(text), fix="make health")
    cause = _cause(text) or repr(error)
    return OperationError(
        f"the job failed on Spark: {_short(cause)}",
        why=cause if len(cause) > SHORT else f"Spark raised it as {type(error).__name__}",
        fix="logs/failures.log in HEADGATE_HOME has the whole trace",
    )


def _short(cause: str) -> str:
    """As much of it as a list of runs can show; the bar is what parts the store's lines."""
    told = cause.replace(" | ", " ")
    return told if len(told) <= SHORT else f"{told[:SHORT]}…"


def _cause(text: str) -> str:
    """The innermost cause that a JVM trace names, else the first line."""
    told = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in told if line.startswith("Caused by: ")]
    head = [
        line.removeprefix(": ") for line in told if not line.startswith(("An error occ", "at "))
    ]
    return (causes[-1:] or head[:1] or [""])[0][:500]
