"""The sinks: a Kafka topic and HTTP POSTs, both JSON and at least once; DogStatsD datagrams, at most once.

JSON records bear an id, in Kafka also as headers. A datagram of a late window has what was added since.
"""

# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import math
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headgate import __version__
from headgate.config.reference import without_secrets
from headgate.core.kafka.producer import RecordHeaders, enqueue, open_producer
from headgate.core.kafka.topics import kafka_error
from headgate.core.metrics.delivery import BatchRecord, Change, Record, said
from headgate.core.metrics.names import DIMENSIONS, namespaced
from headgate.core.metrics.windows import AggregateVerdict, WindowRecord
from headgate.core.runtime.http import NoAnswerError, open_response
from headgate.errors import HeadgateError, OperationError, UnavailableError

# The library's documented names are re-exported without being marked so.


SECONDS_TO_DELIVER, LINGER_MS = 15.0, 5
HEADERS = ("id", "job", "window_start", "sequence", "revision")


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
        self._producer: Producer | None = None
        self._failure: KafkaError | None = None

    def ready(self) -> None:
        if self._producer is None:
            self._make_topic()
            self._producer = open_producer(self._bootstrap, self._seconds, LINGER_MS)

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
    def _made(self) -> Producer:
        assert self._producer is not None
        return self._producer

    def _queue(self, message: Mapping[str, Any]) -> None:
        value, key = orjson.dumps(message), str(message["table_name"]).encode()
        try:
            enqueue(self._made, self._topic, value, key, self._note, headers=headers(message))
        except KafkaException as error:
            raise self._explained(kafka_error(error)) from error

    def _note(self, error: KafkaError | None, _message: Message) -> None:
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


def headers(message: Mapping[str, Any]) -> RecordHeaders:
    """The id and its parts, for a consumer that wants each record once without reading values."""
    return [(f"headgate.{name}", str(message[name]).encode()) for name in HEADERS]


TOO_LARGE = 413


class HttpPush:
    """POSTs to one URL, with `Authorization: Bearer <token>` where there is a token."""

    name = "http"
    at_most_once = False

    def __init__(self, url: str, token: str | None = None, timeout: float = 5.0) -> None:
        self._url, self._token, self._timeout = url, token, timeout

    def ready(self) -> None:
        """Nothing can be known before it is tried."""

    def send(self, changes: Sequence[Change]) -> None:
        """All of them in one request; a receiver that finds it too large gets halves."""
        if not changes:
            return
        try:
            self._post(body(changes))
        except _TooLargeError:
            if len(changes) == 1:
                raise
            middle = len(changes) // 2
            self.send(changes[:middle])
            self.send(changes[middle:])

    def close(self) -> None:
        """Nothing is held open between requests."""

    def _post(self, content: bytes) -> None:
        """A redirect is not followed: it would carry the token to whoever is named there."""
        headers = self._headers()
        try:
            with open_response("POST", self._url, self._timeout, headers, content) as answer:
                next(answer.iter_raw(1024), b"")
        except NoAnswerError as error:
            raise self._away(without_secrets(str(error))) from None
        if not answer.is_success:
            raise self._refused(answer.status_code)

    def _headers(self) -> dict[str, str]:
        token = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        about = {"Content-Type": "application/json", "User-Agent": f"headgate/{__version__}"}
        return {**about, **token}

    def _refused(self, status: int) -> HeadgateError:
        where = without_secrets(self._url)
        if status == TOO_LARGE:
            return _TooLargeError(f"{where} finds the metrics too large")
        if status in (401, 403):
            fix = "check METRICS_PUSH_TOKEN"
        else:
            fix = "check METRICS_PUSH_URL and the receiver's log; it is tried again"
        return OperationError(f"{where} did not take the metrics", why=f"HTTP {status}", fix=fix)

    def _away(self, why: str) -> UnavailableError:
        where = without_secrets(self._url)
        fix = "check METRICS_PUSH_URL; what waits is kept and sent later"
        return UnavailableError(f"{where} is away", why=why, fix=fix)


class _TooLargeError(OperationError):
    """The receiver takes less in one request."""


def body(changes: Iterable[Change]) -> bytes:
    """One JSON array of all messages."""
    return orjson.dumps([message for change in changes for message in said(change.record)])


# What fits into one Ethernet frame: a larger datagram is cut up, and lost with any of its pieces.
DATAGRAM_BYTES = 1432
LONGEST_TAG = 200
UNIX = "unix://"
# A socket file holds some ten datagrams: without waiting, most of a backlog would be lost.
SECONDS_TO_WAIT = 1.0


class DogStatsd:
    """Sends to an agent's UDP port, or to its socket file (`unix:///path`). At most once."""

    name = "dogstatsd"
    at_most_once = True

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket: socket.socket | None = None

    def ready(self) -> None:
        if self._socket is not None:
            return
        try:
            self._socket = _connected(self._address)
        except OSError as error:
            raise UnavailableError(
                f"the DogStatsD agent at {self._address} cannot be reached",
                why=error.strerror or str(error),
                fix="check DOGSTATSD_ADDRESS: host:port or unix:///path",
            ) from error

    def send(self, changes: Sequence[Change]) -> None:
        self.send_lines(line for change in changes for line in encoded(change))

    def send_lines(self, lines: Iterator[str]) -> None:
        """Send lines of the agent's own form; `ready` must have been called."""
        assert self._socket is not None
        self._socket.settimeout(SECONDS_TO_WAIT)
        for datagram in packed(lines):
            self._send(datagram)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, datagram: bytes) -> None:
        """An agent that is away is no error here: nobody confirms a datagram."""
        assert self._socket is not None
        try:
            self._socket.send(datagram)
        except TimeoutError:
            # It does not read: the rest of what is sent now waits for it no more.
            self._socket.setblocking(False)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            self.ready()


def _connected(address: str) -> socket.socket:
    if address.startswith(UNIX):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        target: str | tuple[Any, ...] = address.removeprefix(UNIX)
    else:
        host, _, port = address.rpartition(":")
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
        made, target = socket.socket(found[0], found[1]), found[4]
    try:
        made.settimeout(SECONDS_TO_WAIT)
        made.connect(target)
    except OSError:
        made.close()
        raise
    return made


def encoded(change: Change) -> Iterator[str]:
    """The lines of one record: what a batch counted; of a window totals always, the metric of a rule
    where it counted something."""
    record = change.record
    tags = tags_of(record)
    if isinstance(record, BatchRecord):
        yield from (f"{named(name)}:{n}|c|#{tags}" for name, n in record.counts().items())
        return
    always = record.totals_by_name() if not change.before else {}
    for name, n in record.counts().items():
        added = n - change.before.get(name, 0)
        if added or name in always:
            yield f"{named(name)}:{added}|c|#{tags}"
    for name in change.before.keys() - record.counts().keys():
        yield f"{named(name)}:{-change.before[name]}|c|#{tags}"
    for verdict in record.verdicts:
        yield from _verdict_lines(record, verdict, tags)


def _verdict_lines(record: WindowRecord, verdict: AggregateVerdict, tags: str) -> Iterator[str]:
    group = "".join(f",{tag(str(k), v)}" for k, v in (verdict.group or {}).items())
    name = named(namespaced(record.namespace, verdict.name))
    if verdict.value is not None and math.isfinite(verdict.value):
        yield f"{name}:{verdict.value:.15g}|g|#{tags}{group}"
    # A gauge, not a count: a window that closes again may have mended, or failed only now.
    yield f"{name}.failed:{int(verdict.failed)}|g|#{tags}{group}"


def tags_of(record: Record) -> str:
    values = (record.env, record.dc, record.table_name, record.topic_name)
    return ",".join(tag(key, value) for key, value in zip(DIMENSIONS, values, strict=True))


def tag(key: str, value: object) -> str:
    words = re.sub(r"[,|#\s]", "_", str(value))[:LONGEST_TAG]
    return f"{re.sub(r'[^a-zA-Z0-9_.-]', '_', key)}:{words}"


def named(name: str) -> str:
    """A name in the letters that an agent takes."""
    return re.sub(r"[^a-zA-Z0-9_.]", "_", name)[:LONGEST_TAG]


def packed(lines: Iterator[str], size: int = DATAGRAM_BYTES) -> Iterator[bytes]:
    """The lines in as few datagrams as hold them; a line is never cut."""
    waiting = b""
    for line in lines:
        more = line.encode()
        if waiting and len(waiting) + 1 + len(more) > size:
            yield waiting
            waiting = b""
        waiting = waiting + b"\n" + more if waiting else more
    if waiting:
        yield waiting
