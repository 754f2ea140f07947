"""A hasher's metrics while it runs: the Prometheus endpoint, and counters to a DogStatsD agent."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Protocol

from headgate.core.metrics.background import in_background
from headgate.core.metrics.dogstatsd import DogStatsd, named, tag
from headgate.core.metrics.server import MetricsServer
from headgate.errors import HeadgateError
from headgate.reconcile.hasher.counts import HasherMetrics

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
