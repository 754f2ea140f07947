"""What each sink of metrics was told of a rule table, added up in the planted counts' own names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.core.metrics.metrics_names import (
    COUNTED,
    MATCHES,
    ROWS,
    SEVERITY_TOTALS,
    namespaced,
    prometheus,
)
from headgate.demo.quality.comparison import ALL_WINDOWS, Counts, Found

Message = Mapping[str, Any]  # JSON has no closed shape
_SAMPLE = re.compile(r"(?P<name>\w+)\{(?P<labels>[^}]*)\} (?P<value>[0-9.e+]+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Named:
    """A rule table as its metrics name it; the windows of a pair are those of arrival."""

    job: str
    table_name: str
    namespace: str
    metrics: tuple[str, ...]
    is_pair: bool = False

    def found(self, place: str, counts: Counts) -> tuple[Found, Found]:
        """Counts by namespaced name, as metrics and as totals by severity."""
        mine = (namespaced(self.namespace, metric) for metric in self.metrics)
        return (
            Found(place, "metric", {name: counts.get(name, 0) for name in mine}),
            Found(place, "total", {s: counts.get(m.name, 0) for s, m in SEVERITY_TOTALS.items()}),
        )


def of_messages(place: str, named: Named, messages: Iterable[Message]) -> tuple[Found, ...]:
    """JSON records: the last word on each window counts, however often it was said."""
    last: dict[str, Message] = {}
    for message in messages:
        if message.get("job") != named.job or message.get("record") != "window":
            continue
        known = last.get(str(message["window_start"]))
        if known is None or message["sequence"] >= known["sequence"]:
            last[str(message["window_start"])] = message
    total: Counter[str] = Counter()
    for message in last.values():
        total.update({k: v for k, v in message.items() if isinstance(v, int)})
    windows = {start: int(message[ROWS.name]) for start, message in last.items()}
    if named.is_pair:
        windows = {ALL_WINDOWS: sum(windows.values())}
    return (*named.found(place, total), Found(place, "window", windows))


def of_datagrams(place: str, named: Named, datagrams: Iterable[str]) -> tuple[Found, Found]:
    """DogStatsD counters of this table; what aggregates add to the totals is no row."""
    total: Counter[str] = Counter()
    for name, value, tags in _counters(datagrams):
        if f"table:{named.table_name}" in tags and not any(
            t.startswith("aggregate:") for t in tags
        ):
            total[name] += value
    return named.found(place, total)


def _counters(datagrams: Iterable[str]) -> Iterator[tuple[str, int, list[str]]]:
    for line in (line for datagram in datagrams for line in datagram.splitlines()):
        head, _, tags = line.partition("|#")
        told, _, kind = head.partition("|")
        name, _, value = told.partition(":")
        if kind == "c":
            yield name, int(value), tags.split(",")


def of_exposition(place: str, named: Named, text: str) -> tuple[Found, ...]:
    """The text that Prometheus scrapes; what counts records beside verdicts is left out."""
    names = {prometheus(metric): namespaced(named.namespace, metric) for metric in named.metrics}
    total: Counter[str] = Counter()
    matched: Counter[str] = Counter()
    for sample in _SAMPLE.finditer(text):
        labels = dict(_LABEL.findall(sample["labels"]))
        if labels.get("table") != named.table_name or labels.get("rule", "").startswith(COUNTED):
            continue
        n = round(float(sample["value"]))
        total[names.get(sample["name"], sample["name"])] += n
        if sample["name"] == MATCHES.name:
            matched[labels["rule"]] += n
    return (*named.found(place, total), Found(place, "rule", matched))
