"""One stateless query over a topic; batch and streaming differ in the trigger alone."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.engine.checkpoint import Checkpoint
from headgate.engine.topics import TopicState
from headgate.errors import HeadgateError, OperationError
from headgate.store.model import Range

STREAMING_TRIGGER = "10 seconds"
# A backlog is worked off in bites, so that it cannot exhaust memory.
MAX_OFFSETS_PER_BATCH = 1_000_000
Handle = Callable[[DataFrame, Range, int], None]


class TopicQuery:
    """Hands each micro-batch with its offset range to `handle`, until the end or until stopped."""

    def __init__(
        self, session: SparkSession, bootstrap: str, topic: TopicState, checkpoint: Checkpoint
    ) -> None:
        self._session = session
        self._bootstrap = bootstrap
        self._topic = topic
        self._checkpoint = checkpoint
        self._between_batches = threading.Lock()
        self._error: BaseException | None = None

    def run(self, handle: Handle, mode: str, stop: threading.Event) -> None:
        """Block until all that was there is processed (batch), or until `stop` is set."""
        query = self._start(handle, mode)
        try:
            while not _ended(query, 0.3):
                if stop.is_set():
                    self._stop(query)
                    return
        except Exception as error:
            raise self._error or error from error
        if self._error is not None:
            raise self._error

    def _start(self, handle: Handle, mode: str) -> StreamingQuery:
        writer = self._frame().writeStream.foreachBatch(self._callback(handle))
        writer = writer.option("checkpointLocation", self._checkpoint.location)
        if mode == "batch":
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=STREAMING_TRIGGER)
        return writer.queryName(self._checkpoint.location.rsplit("/", 1)[-1]).start()

    def _frame(self) -> DataFrame:
        start = self._checkpoint.start()
        if start is None:
            raise OperationError("the checkpoint does not say where it starts")
        offsets = json.dumps({self._topic.name: dict(start.offsets)})
        reader = self._session.readStream.format("kafka").options(
            **source_options(self._bootstrap, self._topic.name)
        )
        return reader.options(
            startingOffsets=offsets,
            failOnDataLoss="true",
            maxOffsetsPerTrigger=str(MAX_OFFSETS_PER_BATCH),
        ).load()

    def _callback(self, handle: Handle) -> Callable[[DataFrame, int], None]:
        def process(frame: DataFrame, batch_id: int) -> None:
            # The lock is taken only while the query is being stopped: then no batch begins.
            if not self._between_batches.acquire(blocking=False):
                raise OperationError("the query is being stopped")
            try:
                handle(frame, self._range(batch_id), batch_id)
            except BaseException as error:
                # Spark would hand back only the words of it.
                self._error = error
                raise
            finally:
                self._between_batches.release()

        return process

    def _range(self, batch_id: int) -> Range:
        start, end = self._checkpoint.range_of(batch_id)
        return Range(f"kafka:{self._topic.name}", self._topic.topic_id, start, end)

    def _stop(self, query: StreamingQuery) -> None:
        with self._between_batches:
            query.stop()


def source_options(bootstrap: str, topic: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": bootstrap,
        "kafka.isolation.level": "read_committed",
        "subscribe": topic,
        "includeHeaders": "true",
    }


def read_range(session: SparkSession, bootstrap: str, range_: Range) -> DataFrame:
    """The records of a range, read again."""
    topic = range_.source.removeprefix("kafka:")
    start = {key: range_.start.get(key, 0) for key in range_.end}
    return (
        session.read.format("kafka")
        .options(**source_options(bootstrap, topic))
        .options(
            startingOffsets=json.dumps({topic: start}),
            endingOffsets=json.dumps({topic: dict(range_.end)}),
            failOnDataLoss="true",
        )
        .load()
    )


def _ended(query: StreamingQuery, seconds: float) -> bool:
    return bool(query.awaitTermination(seconds))  # pyright: ignore[reportArgumentType]  # py4j takes a float


def explain(error: BaseException) -> HeadgateError:
    """A Spark failure as an error of ours, with its first line as the reason."""
    if isinstance(error, HeadgateError):
        return error
    return OperationError(
        "the job failed on Spark",
        why=_cause(str(error)) or repr(error),
        fix="logs/failures.log in HEADGATE_HOME has the whole trace",
    )


def _cause(text: str) -> str:
    """The innermost cause that a JVM trace names, else the first line."""
    told = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in told if line.startswith("Caused by: ")]
    head = [
        line.removeprefix(": ") for line in told if not line.startswith(("An error occ", "at "))
    ]
    return (causes[-1:] or head[:1] or [""])[0][:500]
