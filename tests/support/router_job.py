"""Filters, events and the router of a pipeline's topic."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.oracle import Record, read_topic
from tests.support.pipeline import LETTER_COLUMNS, DeadLetter, Pipeline, ProducerRecord

from headgate.core.engine.batch import Faults
from headgate.core.engine.submit import AS_DECLARED
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.model import LedgerRow, Run, RunOptions, RunState, canonical
from headgate.filters.loader import parse_filter
from headgate.filters.preview import KafkaRecent
from headgate.filters.router.plan import ReplayRequests
from headgate.filters.spec import content, revision_of
from headgate.filters.store.model import Seen, TopicEnd, Wanted
from headgate.filters.store.routing import RoutingStore

DEALERS = ("DEALER-001", "DEALER-002", "DEALER-003")


def event(
    number: int,
    dealer: str = "DEALER-001",
    kind: str = "CarServiceDone",
    op: str = "c",
    partition: int | None = None,
    **more: object,
) -> ProducerRecord:
    """One change of the events' table, as the connector writes it."""
    header = {"dealerId": dealer, "carId": f"CAR-{number}", "amountPaid": 450.5, **more}
    value = {
        "id": f"event-{number}",
        "event_name": "Car Service Done",
        "event_type": kind,
        "created_date": "2025-01-15T10:00:00Z",
        "saved_date": "2025-01-15T10:00:01Z",
        "header_data": json.dumps(header),
        "__op": op,
        "__table": "event_headers",
        "__ts_ms": 1736935200000 + number,
    }
    where = number % 2 if partition is None else partition
    return ProducerRecord(json.dumps(value).encode(), f"event-{number}".encode(), partition=where)


@dataclass(frozen=True)
class RoutedRecord:
    """A record of an output topic."""

    key: bytes | None
    value: bytes | None
    headers: Mapping[str, str]

    @property
    def id(self) -> str:
        return (self.key or b"").decode()

    @property
    def origin(self) -> tuple[str, ...]:
        return tuple(self.headers[f"headgate.{name}"] for name in ("source_id", "origin", "filter"))


@dataclass
class Router:
    """The router of a pipeline's topic; filters become wanted as the control plane would have them."""

    pipeline: Pipeline
    _deployments: int = 0
    _documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    _of: dict[str, str] = field(default_factory=dict)
    _since: dict[str, TopicEnd] = field(default_factory=dict)

    @property
    def job(self) -> str:
        return f"router-{self.pipeline.topic}"

    @property
    def topics(self) -> Topics:
        return Topics(str(self.pipeline.settings.bootstrap_servers))

    def topic(self, filter: str) -> str:
        return f"{self.pipeline.name}-{filter}"

    def dealer(self, number: int, **more: Any) -> str:
        """Deploy the filter of a dealer, and return its name."""
        name = f"dealer-{number:03d}"
        conditions = [
            {"field": "event_type", "operator": "equals", "value": "CarServiceDone"},
            {
                "field": "header_data.dealerId",
                "operator": "equals",
                "value": f"DEALER-{number:03d}",
            },
        ]
        return self.deploy(name, conditions, **more)

    def want_dealer(self, number: int, **more: Any) -> Wanted:
        """Deploy the filter of a dealer, and return the wanted row."""
        wanted = self.pipeline.store.part(RoutingStore).wanted_filter(self.dealer(number, **more))
        assert wanted is not None
        return wanted

    def deploy(self, name: str, conditions: Sequence[Mapping[str, Any]], **more: Any) -> str:
        document = {
            "id": name,
            "name": name,
            "consumerId": f"{name}-consumer",
            "outputTopic": self.topic(name),
            "source": self.pipeline.topic,
            "enabled": True,
            "conditions": list(conditions),
            **more,
        }
        return self.declare(document)

    def declare(self, document: dict[str, Any]) -> str:
        """Deploy this document, and return its name."""
        name = str(document["id"])
        self._documents[name] = document
        self.want(name)
        return name

    def want(self, name: str, *, paused: bool = False, again: bool = True) -> Wanted:
        """Make the document wanted; without `again` under the deployment that it has."""
        self._deployments += again
        if again or name not in self._of:
            self._of[name] = f"d{self._deployments}"
        declared = parse_filter(self._documents[name])
        end = KafkaRecent(str(self.pipeline.settings.bootstrap_servers)).end(declared.source)
        since = self._since.setdefault(name, end)
        wanted = Wanted(
            filter=name,
            source=declared.source,
            revision=revision_of(declared),
            content=canonical(content(declared)),
            topic=declared.output_topic,
            deployment=self._of[name],
            paused=paused,
            backfill=declared.backfill,
            since=since,
        )
        self.pipeline.store.part(RoutingStore).want(wanted)
        return wanted

    def route(self, faults: Faults | None = None, request: RunOptions = AS_DECLARED) -> Run:
        return self.pipeline.process("router", faults, request)

    def replay(self) -> list[Run]:
        """Run all replays that are due, as the router requests them."""
        done: list[Run] = []
        while True:
            ReplayRequests(self.pipeline.store, self.pipeline.topic).look()
            asked = self.pipeline.store.runs(states=(RunState.SUBMITTED,))
            found = [run for run in asked if run.kind == "replay"]
            if not found:
                return done
            done += [self._execute(run) for run in found]

    def _execute(self, run: Run) -> Run:
        store = self.pipeline.store
        self.pipeline.carry_out(store.claim(run.job, run.number, "this test"))
        return store.move(run.job, run.number, RunState.FINISHED)

    def seen(self, filter: str) -> Seen:
        found = self.pipeline.store.part(RoutingStore).seen_filter(filter)
        assert found is not None
        return found

    def output(self, filter: str) -> list[RoutedRecord]:
        """Everything on the filter's topic, by offset."""
        return self.output_of(self.topic(filter))

    def output_of(self, topic: str) -> list[RoutedRecord]:
        records = read_topic(str(self.pipeline.settings.bootstrap_servers), topic)
        return [_parse_routed(record) for record in records]

    def dead_letters(self) -> list[DeadLetter]:
        """The dead letters of the router and of replays, by where they stood."""
        where = f"kafka_topic = '{self.pipeline.topic}' AND job NOT LIKE 'bronze-%'"
        rows = self.pipeline.select(LETTER_COLUMNS, "headgate.dead_letters", where)
        return sorted((DeadLetter(*row) for row in rows), key=lambda letter: letter.origin)

    def ids(self, filter: str) -> list[str]:
        return sorted(one.id for one in self.output(filter))

    def ledger(self) -> tuple[LedgerRow, ...]:
        return self.pipeline.ledger("router")

    def outcomes(self) -> dict[str, int]:
        return self.pipeline.outcomes("router")


def _parse_routed(record: Record) -> RoutedRecord:
    return RoutedRecord(
        record.key, record.value, {name: (value or b"").decode() for name, value in record.headers}
    )


def deduplicate(records: Iterable[RoutedRecord]) -> Counter[tuple[str, bytes | None]]:
    """The records as a consumer sees them that deduplicates by origin."""
    by_origin = {one.origin: (one.id, one.value) for one in records}
    return Counter(by_origin.values())
