"""Kafka: windows and batches as JSON records, keyed by table. At least once; ids are in headers."""

# pyright: reportPrivateImportUsage=false
# The library's documented names are re-exported without being marked so.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import orjson
from confluent_kafka import KafkaError, KafkaException

from headgate.core.kafka.producing import producer
from headgate.core.metrics.metrics_sinks import Change
from headgate.core.metrics.records import said
from headgate.errors import HeadgateError, OperationError, UnavailableError

SECONDS_TO_DELIVER, LINGER_MS = 15.0, 5
HEADERS = ("id", "job", "window_start", "sequence", "revision")


class _Producer(Protocol):
    """The calls used here; the library's own annotations leave their types open."""

    def produce(
        self,
        topic: str,
        value: bytes,
        key: bytes,
        *,
        headers: Sequence[tuple[str, bytes]],
        on_delivery: Callable[[KafkaError | None, object], None],
    ) -> None: ...

    def flush(self, timeout: float) -> int: ...

    def poll(self, timeout: float) -> int: ...

    def purge(self) -> None: ...


class KafkaSink:
    """Writes to one topic, which `make_topic` makes where it is absent."""

    name = "kafka"
    at_most_once = False

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        make_topic: Callable[[], object],
        seconds_to_deliver: float = SECONDS_TO_DELIVER,
    ) -> None:
        self._bootstrap, self._topic, self._make_topic = bootstrap, topic, make_topic
        self._seconds = seconds_to_deliver
        self._producer: _Producer | None = None
        self._failure: KafkaError | None = None

    def ready(self) -> None:
        if self._producer is None:
            self._make_topic()
            self._producer = cast("_Producer", producer(self._bootstrap, self._seconds, LINGER_MS))

    def send(self, changes: Sequence[Change]) -> None:
        """Returns once the broker has confirmed all of them."""
        self._failure = None
        for change in changes:
            for message in said(change.record):
                self._queue(message)
        left = self._made.flush(self._seconds + 1)
        if left or self._failure is not None:
            failure = self._failure
            self.close()  # what is still queued must not go out behind what is sent anew
            raise self._explained(failure)

    def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(1)
            self._producer = None

    @property
    def _made(self) -> _Producer:
        assert self._producer is not None
        return self._producer

    def _queue(self, message: Mapping[str, Any]) -> None:
        value, key = orjson.dumps(message), str(message["table_name"]).encode()
        while True:
            try:
                self._made.produce(
                    self._topic, value, key, headers=headers(message), on_delivery=self._note
                )
                return
            except BufferError:
                self._made.poll(0.05)
            except KafkaException as error:
                raise self._explained(cast("KafkaError", error.args[0])) from error

    def _note(self, error: KafkaError | None, _message: object) -> None:
        self._failure = self._failure or error

    def _explained(self, error: KafkaError | None) -> HeadgateError:
        why = error.str() if error else "it did not confirm them in time"
        if error is not None and error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return OperationError(f"a window's metrics are too large for {self._topic}", why=why)
        return UnavailableError(
            f"the broker did not take the metrics for {self._topic}",
            why=why,
            fix="headgate local health; what waits is kept and sent later",
        )


def headers(message: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """The id and its parts, for a consumer that wants each record once without reading values."""
    return [(f"headgate.{name}", str(message[name]).encode()) for name in HEADERS]
