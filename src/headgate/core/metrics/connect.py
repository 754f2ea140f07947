"""Counters of our Kafka Connect plugins, scraped from the worker's Prometheus endpoint and renamed to our metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

from headgate.core.metrics import names
from headgate.core.metrics.names import Family, Metric, Sample
from headgate.core.metrics.prometheus import parse_samples
from headgate.core.runtime.http import read_text

LOOK_SECONDS = 10.0
LABELS = ("connector",)
# What the worker's exporter calls an attribute of a bean, and what it is here.
PASSED_ON: dict[str, Metric] = {
    "headgate_connect_hashrow_errors": names.SMT_ERRORS,
    "headgate_connect_hashrow_missing_fields": names.SMT_MISSING_FIELDS,
    "headgate_connect_hashrow_schema_drift": names.SCHEMA_DRIFT,
    "headgate_connect_hashrow_column_removed": names.COLUMNS_REMOVED,
    "headgate_connect_hashrow_dead_letters": names.DEAD_LETTERS,
    "headgate_connect_cassandrapoll_timeouts": names.CASSANDRA_TIMEOUTS,
    "headgate_connect_cassandrapoll_dead_letters": names.DEAD_LETTERS,
}


def passed_on(text: str) -> tuple[Family, ...]:
    """The families in an exposition of Connect's; what two beans count is added.

    Their only label is `connector`, also where others count the same by job or by table: a sum by
    table would mix tables and connectors.
    """
    found: dict[Metric, dict[tuple[str, ...], float]] = {}
    for name, labels, value in parse_samples(text):
        metric, connector = PASSED_ON.get(name.removesuffix(names.TOTAL)), labels.get("connector")
        if metric is not None and connector is not None:
            values = found.setdefault(metric, {})
            values[connector,] = values.get((connector,), 0.0) + value
    return tuple(
        Family(replace(metric, labels=LABELS), _sorted(values.items()))
        for metric, values in found.items()
    )


def together(*readings: tuple[Family, ...]) -> tuple[Family, ...]:
    """The families of several readings, those of one name beside each other."""
    found: dict[str, list[Family]] = {}
    for family in (one for reading in readings for one in reading):
        found.setdefault(family.metric.name, []).append(family)
    return tuple(family for families in found.values() for family in families)


def _sorted(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    return tuple(sorted(samples))


class ConnectWatch:
    """Reads the worker's endpoint now and then, so that no scrape waits for it."""

    def __init__(
        self, url: str | None, timeout: float, read: Callable[[str, float], str] = read_text
    ) -> None:
        self._url, self._timeout, self._read = url, timeout, read
        self.families: tuple[Family, ...] = ()

    def run(self, stop: threading.Event) -> None:
        while self._url and not stop.is_set():
            self.look()
            stop.wait(LOOK_SECONDS)

    def look(self) -> None:
        """While the worker is away its counters are not told: they are its own, and start anew with it."""
        if self._url is None:
            return
        try:
            self.families = passed_on(self._read(self._url, self._timeout))
        except (OSError, ValueError):
            self.families = ()
