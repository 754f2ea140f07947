"""Rule tables for tests of the quality job, and the results they must have, computed in Python alone."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.support.oracle import Record
from tests.support.pipeline import MORNING, Pipeline, ProducerRecord

from headgate.core.ledger.model import RuleCount

START = datetime(2024, 1, 1, 10, tzinfo=UTC)
WINDOW = timedelta(seconds=10)
RULES = """
      - {name: deleted, when: "action = 'DELETE'", description: the row was deleted,
         emit: {dq_status: DELETE_EVENT, metric: delete_count, severity: INFO}}
      - {name: negative, when: "amount < 0", description: the amount is below nothing, on_fail: %(on_fail)s,
         emit: {dq_status: NEGATIVE, metric: negative, severity: ERROR}}
      - {name: no_amount, when: "amount IS NULL", description: there is no amount,
         emit: {dq_status: NO_AMOUNT, metric: no_amount, severity: WARN}}
"""
UNIQUE = """
      - {name: twice, type: unique, fields: [id], horizon: 1 HOUR, severity: ERROR}
"""
RULE_SET = """
version: 2
metadata: {env: test, pipeline: tests}
metrics: {namespace: dq.test, window: 10 SECONDS}
tables:
  - name: %(name)s
    pk: id
    sources:
      onprem: {%(source)s, table: %(name)s_events, dc: here, alias: t1,
               columns: {id: STRING, action: STRING, amount: DOUBLE, at: TIMESTAMP(3)},
               event_time: at, watermark: 5 SECONDS}
    rules:%(rules)s%(aggregates)s
"""


def declare_rules(
    pipeline: Pipeline,
    rules: str = RULES,
    on_fail: str = "keep",
    source: str = "",
    aggregates: str = "",
) -> None:
    """Write the pipeline's rule table; other rules are another revision."""
    shutil.rmtree(pipeline.settings.root / "rules", ignore_errors=True)
    folder = pipeline.settings.root / "rules"
    folder.mkdir()
    topic = f"topic: {pipeline.topic}, dlq_topic: {pipeline.topic}-dlq"
    text = RULE_SET % {
        "name": pipeline.name,
        "source": source or topic,
        "rules": rules % {"on_fail": on_fail} if "%(" in rules else rules,
        "aggregates": f"\n    aggregates:{aggregates}" if aggregates else "",
    }
    (folder / f"{pipeline.name}.yml").write_text(text)


def row(
    number: int,
    action: str = "UPSERT",
    amount: float | None = 1.0,
    second: float = 0,
    partition: int | None = None,
    key: str | None = None,
) -> ProducerRecord:
    """A record whose event time is so many seconds after the start."""
    at = START + timedelta(seconds=second)
    value = {"id": key or f"k{number}", "action": action, "amount": amount, "at": _time(at)}
    return ProducerRecord(json.dumps(value).encode(), str(number).encode(), partition=partition)


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def rows(count: int, seed: int, first: int = 0, seconds: float = 60) -> list[ProducerRecord]:
    """Rows with some of every defect, over so many seconds of event time."""
    rng = Random(seed)
    made: list[ProducerRecord] = []
    for number in range(first, first + count):
        action = "DELETE" if rng.random() < 0.05 else "UPSERT"
        amount = rng.choice([None, -1.0, *[rng.uniform(0, 100)] * 18])
        second, partition = rng.uniform(0, seconds), number % 2
        made.append(row(number, action, amount, round(second, 3), partition))
    return made


@dataclass(frozen=True)
class ExpectedVerdict:
    """The verdict that a record must get; without a status it cannot be judged."""

    outcome: str
    status: str | None = None
    rules: tuple[str, ...] = ()
    window: datetime | None = None


HOLDS = {
    "deleted": lambda value: value["action"] == "DELETE",
    "negative": lambda value: value["amount"] is not None and value["amount"] < 0,
    "no_amount": lambda value: value["amount"] is None,
}
STATUS = {"deleted": "DELETE_EVENT", "negative": "NEGATIVE", "no_amount": "NO_AMOUNT"}
METRIC = {"deleted": "delete_count", "negative": "negative", "no_amount": "no_amount"}
SEVERITY = {"deleted": "INFO", "negative": "ERROR", "no_amount": "WARN"}


def judge(record: Record, on_fail: Mapping[str, str] = {}) -> ExpectedVerdict:
    """The verdict of the rules above on one record."""
    if record.value is None:
        return ExpectedVerdict("tombstone")
    try:
        value = json.loads(record.value)
        at = datetime.fromisoformat(value["at"])
        assert isinstance(value["id"], str)
    except (ValueError, KeyError, TypeError, AssertionError):
        return ExpectedVerdict("refused")
    held = tuple(name for name, holds in HOLDS.items() if holds(value))
    dead = any(on_fail.get(name) == "dead_letter" for name in held)
    status = STATUS[held[0]] if held else "VALID"
    return ExpectedVerdict("dead_letter" if dead else "accepted", status, held, window_of(at))


def window_of(at: datetime) -> datetime:
    return at - (at - datetime(1970, 1, 1, tzinfo=UTC)) % WINDOW


@dataclass(frozen=True)
class ExpectedResults:
    """Outcomes, statuses, rule counts and windows that a job must report of these records."""

    outcomes: Mapping[str, int]
    statuses: Mapping[str, int]
    counts: Sequence[RuleCount]
    windows: Mapping[tuple[datetime, str], int]

    @classmethod
    def of(cls, records: Iterable[Record], on_fail: Mapping[str, str] = {}) -> ExpectedResults:
        judged = [judge(record, on_fail) for record in records]
        seen = [j for j in judged if j.status is not None]
        given, held = Counter(j.rules[0] for j in seen if j.rules), Counter[str]()
        windows: Counter[tuple[datetime, str]] = Counter()
        for found in seen:
            held.update(found.rules)
            assert found.window is not None
            windows[found.window, "rows"] += 1
            if found.rules:
                windows[found.window, METRIC[found.rules[0]]] += 1
        return cls(
            {name: n for name, n in Counter(j.outcome for j in judged).items() if n},
            Counter(j.status for j in seen if j.status),
            [RuleCount(n, METRIC[n], SEVERITY[n], given[n], held[n]) for n in sorted(held)],
            windows,
        )


class QualityJob:
    """The job of a pipeline's rule table, with readers of its tables, views and ledger."""

    def __init__(self, pipeline: Pipeline, kind: str = "quality") -> None:
        self.pipeline = pipeline
        self.job = f"{kind}-{pipeline.name}"

    def sql(self, statement: str) -> list[Any]:
        return self.pipeline.session.sql(statement.replace("{t}", self.pipeline.name)).collect()

    def statuses(self) -> dict[str, int]:
        query = "SELECT dq_status, count(*) FROM dq_results_{t} GROUP BY 1"
        return {str(status): int(n) for status, n in self.sql(query)}

    def windows(self) -> dict[tuple[datetime, str], int]:
        """The sums of all partials."""
        query = (
            "SELECT unix_micros(window_start) AS at, if(kind = 'rows', 'rows', metric) AS name,"
            " sum(n) AS n FROM lake.dq.partials_{t} WHERE kind IN ('rows', 'rule') GROUP BY 1, 2"
        )
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        return {
            (epoch + timedelta(microseconds=r["at"]), r["name"]): int(r["n"])
            for r in self.sql(query)
            if r["n"]
        }

    def counts(self) -> list[RuleCount]:
        return [count for count in self.pipeline.store.rule_counts(self.job) if count.matched]

    def results(self) -> ExpectedResults:
        """The results that the job has left, in the form of the expected ones."""
        return ExpectedResults(
            self.pipeline.outcomes("quality"), self.statuses(), self.counts(), self.windows()
        )

    def dead_letters(self) -> Counter[tuple[str, int, int]]:
        found = self.pipeline.select(
            "reason_code, kafka_partition, kafka_offset",
            "headgate.dead_letters",
            f"job = '{self.job}'",
        )
        return Counter(found)


def timestamp(seconds: float) -> int:
    return MORNING + round(seconds * 1000)
