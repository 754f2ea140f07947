"""DogStatsD: the counts of windows and batches as datagrams, a late window as what came to it."""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from headgate.core.metrics.batches import BatchRecord
from headgate.core.metrics.metrics_names import DIMENSIONS, namespaced
from headgate.core.metrics.metrics_sinks import Change
from headgate.core.metrics.metrics_windows import AggregateVerdict, WindowRecord
from headgate.core.metrics.records import Record
from headgate.errors import UnavailableError

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
