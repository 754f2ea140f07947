"""Write records into topics: idempotent, acknowledged by all replicas, with a bounded queue.

A record that could not be delivered raises at the next call; topics are never created by writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headgate.core.kafka.topics import Topics, advise_when_away, is_away, kafka_error
from headgate.errors import OperationError, UnavailableError

Setting = str | int | float | bool | Callable[[KafkaError], None]
# As the library takes them, a list of pairs.
RecordHeaders = list[tuple[str, str | bytes | None]]
# The library's own value for the time of sending.
NOW = 0


def open_producer(
    bootstrap: str,
    seconds_to_deliver: float,
    linger_ms: int,
    more: dict[str, Setting] | None = None,
) -> Producer:
    settings: dict[str, Setting] = {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": "lz4",
        "linger.ms": linger_ms,
        "partitioner": "murmur2_random",  # as Java clients: a key has one partition for all
        "message.timeout.ms": int(seconds_to_deliver * 1000),
        "reconnect.backoff.max.ms": 1000,
        "log_level": 0,  # it would write refused connections to stderr
        **(more or {}),
    }
    return Producer(settings)


def enqueue(
    producer: Producer,
    topic: str,
    value: bytes | None,
    key: bytes | None,
    on_delivery: Callable[[KafkaError | None, Message], None],
    *,
    headers: RecordHeaders | None = None,
    timestamp: int = NOW,
    on_full: Callable[[], None] = lambda: None,
) -> None:
    """Queue a record; while the queue is full, wait for deliveries and call `on_full`, which may raise."""
    while True:
        try:
            producer.produce(
                topic, value, key, on_delivery=on_delivery, timestamp=timestamp, headers=headers
            )
            return
        except BufferError:
            producer.poll(0.05)
            on_full()


LINGER_MS = 50
QUEUE: dict[str, Setting] = {
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 131_072,
    "delivery.report.only.error": True,
}
SECONDS_TO_DELIVER = 60.0


class TopicWriter:
    """One producer. A record that could not be delivered is fatal at the next call."""

    def __init__(self, bootstrap: str, seconds_to_deliver: float = SECONDS_TO_DELIVER) -> None:
        self._bootstrap, self._seconds = bootstrap, seconds_to_deliver
        self._producer = open_producer(bootstrap, seconds_to_deliver, LINGER_MS, QUEUE)
        self._queued = self._failed = 0
        self._first_failure: KafkaError | None = None

    @property
    def acknowledged(self) -> int:
        """Records that the broker has confirmed."""
        return self._queued - self._failed - len(self._producer)

    def require(self, topics: Iterable[str]) -> None:
        """Refuse to start when one of the topics does not exist."""
        known = Topics(self._bootstrap).names()
        for topic in topics:
            if topic not in known:
                raise UnavailableError(
                    f"there is no topic {topic} at {self._bootstrap}",
                    why="topics are not created by writing to them",
                    fix="run `headgate topics create`",
                )

    def send(
        self, topic: str, values: Sequence[bytes | None], keys: Iterable[bytes | None]
    ) -> None:
        """Queue the records in order, None as a tombstone; waits while the queue is full."""
        for value, key in zip(values, keys, strict=True):
            self._queue(topic, value, key)
        self._producer.poll(0)
        self._raise_failure()

    def flush(self) -> None:
        """Wait until everything queued is acknowledged."""
        if self._producer.flush(self._seconds + 1):
            self._raise_away("it did not acknowledge all records in time")
        self._raise_failure()

    def _queue(self, topic: str, value: bytes | None, key: bytes | None) -> None:
        try:
            enqueue(self._producer, topic, value, key, self._note, on_full=self._raise_failure)
        except KafkaException as error:
            raise self._not_queued(kafka_error(error), value) from error
        self._queued += 1

    def _note(self, error: KafkaError | None, _message: Message) -> None:
        """Only failures are reported: delivery.report.only.error."""
        if error is not None:
            self._failed += 1
            self._first_failure = self._first_failure or error

    def _raise_failure(self) -> None:
        if self._first_failure is None:
            return
        if is_away(self._first_failure):
            self._raise_away(self._first_failure.str())
        raise self._refused(self._first_failure, self._failed)

    def _raise_away(self, why: str) -> None:
        raise UnavailableError(
            f"the broker at {self._bootstrap} is away; it acknowledged "
            f"{self.acknowledged:,} of {self._queued:,} records",
            why=why,
            fix=advise_when_away(self._bootstrap),
        )

    def _refused(self, error: KafkaError, records: int) -> OperationError:
        return OperationError(
            f"the broker at {self._bootstrap} refused {records:,} records",
            why=error.str(),
            fix="check the topic's settings and the broker's log",
        )

    def _not_queued(self, error: KafkaError, value: bytes | None) -> OperationError:
        if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
            return self._refused(error, 1)
        return OperationError(
            f"record {self._queued + 1:,} cannot be sent: it has {len(value or b''):,} bytes",
            why=error.str(),
            fix="leave out the file's largest column",
        )
