"""Asks every place that counts judged rows: tables, views, ledger, and the sinks of metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.request import urlopen

import orjson

from headgate.conditions.expr_literals import spark_identifier
from headgate.config.settings import Settings
from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.metrics_names import COUNTED, SEVERITY_TOTALS, namespaced
from headgate.core.sql.compile_fragments import job_name
from headgate.demo.quality.comparison import Comparison, Found, compared
from headgate.demo.quality.planted import DUPLICATES, Planted
from headgate.demo.quality.quality_found import (
    Message,
    Named,
    of_datagrams,
    of_exposition,
    of_messages,
)
from headgate.quality.compile.model import JudgedTable
from headgate.quality.compile.names import names_of
from headgate.quality.compile.verdicts import all_rules

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
    with urlopen(settings.need("metrics_url"), timeout=SECONDS) as answer:
        return cast("bytes", answer.read()).decode()
