"""What a hasher counts, as metrics: the Prometheus endpoint, and counters to a DogStatsD agent."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from headgate.core.metrics import names
from headgate.core.metrics.delivery import in_background
from headgate.core.metrics.prometheus import MetricsServer
from headgate.core.metrics.readings import Family
from headgate.core.metrics.sinks import DogStatsd, named, tag
from headgate.errors import HeadgateError
from headgate.reconcile.hasher.lookups import Lookups
from headgate.reconcile.hasher.readings import Rereads

# What became of a record that was read; each has one.
PUBLISHED, SKIPPED, DEAD_LETTER = "published", "skipped", "dead_letter"
# A request for a second look, whether or not it found another reading.
LOOKED = "second_look"


@dataclass
class Counts:
    """Counters since the start; `records` by outcome, the others as the metrics name them."""

    records: Counter[str] = field(default_factory=Counter[str])
    skipped: Counter[str] = field(default_factory=Counter[str])
    readings: int = 0
    not_found: int = 0
    tombstones: int = 0
    partial: int = 0
    timeouts: int = 0
    new_columns: int = 0
    removed_columns: int = 0
    rereads: int = 0
    changed: int = 0
    pauses: int = 0

    @property
    def read(self) -> int:
        return sum(self.records.values())


@dataclass(frozen=True)
class HasherMetrics:
    """The families of the endpoint, read from the running hasher."""

    table: str
    job: str
    counts: Counts
    lookups: Lookups
    rereads: Rereads
    lags: Callable[[], Mapping[str, int]] = dict

    def families(self) -> tuple[Family, ...]:
        return tuple(self._counters()) + tuple(self._gauges())

    def counters(self) -> dict[str, int]:
        """The counters that go to an agent, by their flat names."""
        count = self.counts
        return {
            names.CASSANDRA_TIMEOUTS.name: count.timeouts,
            names.PARTIAL_ROWS.name: count.partial,
            names.SCHEMA_DRIFT.name: count.new_columns,
            names.COLUMNS_REMOVED.name: count.removed_columns,
        }

    def _counters(self) -> Iterator[Family]:
        for name, value in self.counters().items():
            yield Family(names.BY_NAME[name], (((self.table,), value),))
        outcomes = sorted(self.counts.records.items())
        samples = tuple(((self.table, outcome), float(n)) for outcome, n in outcomes)
        yield Family(names.HASHER_RECORDS, samples)
        yield Family(names.HASHER_READINGS, (((self.table,), self.counts.readings),))
        dead = self.counts.records[DEAD_LETTER]
        yield Family(names.DEAD_LETTERS, (((self.job,), dead),))
        left_out = self.rereads.left_out
        yield Family(names.HASHER_REREADS_LEFT_OUT, (((self.table,), left_out),))
        timing = self.lookups.timing
        yield Family(names.HASHER_LOOKUPS, (((self.table,), timing.lookups),))
        yield Family(names.HASHER_LOOKUP_SECONDS, (((self.table,), timing.seconds),))

    def _gauges(self) -> Iterator[Family]:
        lags = tuple(((self.job, topic), float(n)) for topic, n in sorted(self.lags().items()))
        yield Family(names.LAG, lags)
        yield self._gauge(names.HASHER_IN_FLIGHT, self.lookups.in_flight)
        yield self._gauge(names.HASHER_PAUSED, int(self.lookups.paused))
        yield self._gauge(names.HASHER_REREADS, len(self.rereads))

    def _gauge(self, metric: names.Metric, value: float) -> Family:
        return Family(metric, (((self.table,), value),))


SEND_SECONDS = 10.0


class _Port(Protocol):
    @property
    def metrics_port(self) -> int: ...


class _Sayer(Protocol):
    def say(self, words: str) -> None: ...


@contextmanager
def metering(
    metrics: HasherMetrics, given: _Port, dogstatsd: str | None, watcher: _Sayer
) -> Generator[int]:
    """Serve and send meanwhile; the port that it listens on."""
    server = MetricsServer(given.metrics_port, metrics)
    server.start()
    watcher.say(f"metrics at http://127.0.0.1:{server.port}/metrics")
    with ExitStack() as stack:
        stack.callback(server.close)
        if dogstatsd:
            sender = _Sender(metrics, dogstatsd)
            stack.enter_context(in_background(sender.run, "dogstatsd", SEND_SECONDS))
        yield server.port


class _Sender:
    """What each counter grew by, every few seconds and at the end."""

    def __init__(self, metrics: HasherMetrics, address: str) -> None:
        self._metrics, self._agent = metrics, DogStatsd(address)
        self._before: dict[str, int] = {}

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(SEND_SECONDS):
            self._send()
        self._send()
        self._agent.close()

    def _send(self) -> None:
        now = self._metrics.counters()
        tags = tag("table", self._metrics.table)
        grown = {name: n - self._before.get(name, 0) for name, n in now.items()}
        lines = [
            f"{named(name.removesuffix('_total'))}:{n}|c|#{tags}" for name, n in grown.items() if n
        ]
        with suppress(HeadgateError):  # an agent that is away is asked again next time
            self._agent.ready()
            self._agent.send_lines(iter(lines))
            self._before = now
