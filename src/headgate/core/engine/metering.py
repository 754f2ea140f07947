"""Metrics of a running engine: the Prometheus endpoint, and closed windows on their way to sinks."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.engine.engine_reading import LagWatch, engine_reading
from headgate.core.engine.metrics_sinks import sinks_of
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.background import in_background
from headgate.core.metrics.connect import ConnectWatch, together
from headgate.core.metrics.metrics_readings import Family, Readings
from headgate.core.metrics.metrics_sinks import Deliverer
from headgate.core.metrics.server import MetricsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    readings = Readings(store, partial(engine_reading, session), lambda: lag.lags)
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
