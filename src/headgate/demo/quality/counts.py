"""Collects what every place counted of a rule table: result tables, views, ledger, and each sink of metrics.

A UDP and an HTTP receiver stand for the metrics agent and the web hook; counts are summed under the planted names.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import orjson

from headgate.conditions.literals import spark_identifier
from headgate.config.settings import Settings
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.names import (
    COUNTED,
    MATCHES,
    ROWS,
    SEVERITY_TOTALS,
    namespaced,
    prometheus,
)
from headgate.core.metrics.prometheus import parse_samples
from headgate.core.runtime.http import read_text
from headgate.core.sql.fragments import job_name
from headgate.demo.quality.comparison import ALL_WINDOWS, Comparison, Counts, Found, compared
from headgate.demo.quality.planting import DUPLICATES, Planted
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.compile.results import all_rules
from headgate.quality.compile.tables import names_of

HOST = "127.0.0.1"
LARGEST = 65_535
WAIT_SECONDS = 0.2


class Datagrams:
    """Every datagram that came to a UDP port, as text."""

    def __init__(self, receiving: socket.socket) -> None:
        self._socket = receiving
        self.port = int(cast("tuple[str, int]", receiving.getsockname())[1])
        self.texts: list[str] = []
        self._done = threading.Event()

    def listen(self) -> None:
        self._socket.settimeout(WAIT_SECONDS)
        while not self._done.is_set():
            with suppress(TimeoutError):
                self.texts.append(self._socket.recv(LARGEST).decode())

    def close(self) -> None:
        self._done.set()


class Posts:
    """The body of every request that came to an HTTP port."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.port = int(server.server_port)
        self.bodies: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/metrics"


@contextmanager
def datagrams() -> Generator[Datagrams]:
    """A UDP listener."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiving:
        receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        receiving.bind((HOST, 0))
        found = Datagrams(receiving)
        thread = threading.Thread(target=found.listen, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            found.close()
            thread.join()


@contextmanager
def posts() -> Generator[Posts]:
    """An HTTP server that takes every POST."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            found.bodies.append(self.rfile.read(length))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    found = Posts(server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


Message = Mapping[str, Any]  # JSON has no closed shape


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
    for name, labels, value in parse_samples(text):
        if labels.get("table") != named.table_name or labels.get("rule", "").startswith(COUNTED):
            continue
        n = round(value)
        total[names.get(name, name)] += n
        if name == MATCHES.name:
            matched[labels["rule"]] += n
    return (*named.found(place, total), Found(place, "rule", matched))


SECONDS = 30.0
SWEEP = "sweep"
# Runs a query on the engine; its rows by column.
Ask = Callable[[str], Sequence[Mapping[str, object]]]


@dataclass(frozen=True)
class Sinks:
    """What the receivers got, and where the topic and the page of metrics are."""

    datagrams: Sequence[str]
    bodies: Sequence[bytes]


class Gathering:
    """One look at all places; the sinks are read once for all tables."""

    def __init__(self, settings: Settings, store: OpsStore, ask: Ask, sinks: Sinks) -> None:
        self._store, self._ask, self._sinks = store, ask, sinks
        self._records = list(_topic_records(settings))
        self._posted = [
            message
            for body in sinks.bodies
            for message in cast("list[Message]", orjson.loads(body))
        ]
        self._page = _page(settings)

    def compared(self, table: JudgedTable, planted: Sequence[Planted]) -> Comparison:
        """The counts of one table in every place."""
        return compared(table.table.name, planted, self._found(table))

    def _found(self, table: JudgedTable) -> Iterator[Found]:
        results, named = f"dq_results_{table.table.name}", named_of(table)
        statuses = f"SELECT dq_status AS name, count(*) AS n FROM {results} GROUP BY dq_status"
        matched = f"SELECT explode(dq_rules) AS name FROM {results}"
        rules = f"SELECT name, count(*) AS n FROM ({matched}) GROUP BY name"
        yield Found("results", "status", self._counted(statuses))
        yield Found("results", "rule", self._counted(rules))
        yield from named.found("metrics view", self._view(table.table.name, named))
        yield from self._ledger(table, named)
        yield from of_messages("dq.metrics", named, self._records)
        yield from of_messages("HTTP", named, self._posted)
        yield from of_datagrams("DogStatsD", named, self._sinks.datagrams)
        yield from of_exposition("Prometheus", named, self._page)

    def _counted(self, query: str) -> dict[str, int]:
        return {str(row["name"]): int(str(row["n"])) for row in self._ask(query)}

    def _view(self, name: str, named: Named) -> dict[str, int]:
        """The sum of every metric over all windows."""
        metrics = (namespaced(named.namespace, metric) for metric in named.metrics)
        columns = (*metrics, *(metric.name for metric in SEVERITY_TOTALS.values()))
        sums = ", ".join(f"sum({spark_identifier(c)}) AS {spark_identifier(c)}" for c in columns)
        (row,) = self._ask(f"SELECT {sums} FROM dq_metrics_{name}")
        return {column: int(str(row[column] or 0)) for column in columns}

    def _ledger(self, table: JudgedTable, named: Named) -> Iterator[Found]:
        """What its batches have settled; of a pair its sweeps settle verdicts too."""
        outcomes: Counter[str] = Counter()
        for row in self._store.ledger(named.job):
            outcomes.update(row.outcomes)
        yield Found("ledger", "outcome", outcomes)
        jobs = [named.job, *([job_name(SWEEP, table.table.name)] if named.is_pair else [])]
        settled = [count for job in jobs for count in self._store.rule_counts(job)]
        counts = [count for count in settled if not count.rule.startswith(COUNTED)]
        matched: Counter[str] = Counter()
        for count in counts:
            matched[count.rule] += count.matched
        yield Found("ledger", "rule", matched)
        if named.is_pair:
            again = sum(count.n for count in settled if count.rule == f"{COUNTED}{DUPLICATES}")
            yield Found("ledger", "counter", {DUPLICATES: again})
        summed = {f"{named.namespace}.{metric}": 0 for metric in named.metrics}
        severities = dict.fromkeys((metric.name for metric in SEVERITY_TOTALS.values()), 0)
        for count in counts:
            summed[f"{named.namespace}.{count.metric}"] += count.n
            severities[SEVERITY_TOTALS[count.severity].name] += count.n
        yield from named.found("ledger", {**summed, **severities})


def named_of(table: JudgedTable) -> Named:
    side = next(iter(table.table.sources))
    return Named(
        job=names_of(table.table).job,
        table_name=f"{table.table.name}_{side}",
        namespace=table.rule_set.metrics.namespace,
        metrics=tuple(dict.fromkeys(rule.metric for rule in all_rules(table))),
        is_pair=table.table.is_pair,
    )


def _topic_records(settings: Settings) -> Iterator[Message]:
    bootstrap = settings.need("bootstrap_servers")
    topic = Topics(bootstrap).found(settings.metrics_topic)
    for found in committed_records(bootstrap, Stretch.whole(topic), SECONDS):
        if found.value is not None:
            yield cast("Message", orjson.loads(found.value))


def _page(settings: Settings) -> str:
    return read_text(settings.need("metrics_url"), SECONDS)
