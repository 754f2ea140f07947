"""A hasher's metrics while it runs: the Prometheus endpoint, and counters to a DogStatsD agent."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Protocol, cast

from headgate.errors import HeadgateError
from headgate.feeds.hasher.counts import HasherMetrics
from headgate.metrics.dogstatsd import DogStatsd, named, packed, tag
from headgate.metrics.readings import Readings
from headgate.metrics.server import MetricsServer

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
    server = MetricsServer(given.metrics_port, cast("Readings", metrics))
    server.start()
    watcher.say(f"metrics at http://127.0.0.1:{server.port}/metrics")
    sender = _Sender(metrics, dogstatsd) if dogstatsd else None
    try:
        yield server.port
    finally:
        if sender is not None:
            sender.close()
        server.close()


class _Sender:
    """What each counter grew by, every few seconds and at the end."""

    def __init__(self, metrics: HasherMetrics, address: str) -> None:
        self._metrics, self._agent = metrics, DogStatsd(address)
        self._before: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dogstatsd", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(SEND_SECONDS)
        self._agent.close()

    def _run(self) -> None:
        while not self._stop.wait(SEND_SECONDS):
            self._send()
        self._send()

    def _send(self) -> None:
        now = self._metrics.counters()
        tags = tag("table", self._metrics.table)
        grown = {name: n - self._before.get(name, 0) for name, n in now.items()}
        lines = [
            f"{named(name.removesuffix('_total'))}:{n}|c|#{tags}" for name, n in grown.items() if n
        ]
        with suppress(HeadgateError):  # an agent that is away is asked again next time
            self._agent.ready()
            for datagram in packed(iter(lines)):
                self._agent._send(datagram)  # pyright: ignore[reportPrivateUsage]  # until it has a name
            self._before = now
