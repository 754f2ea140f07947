"""A judged table in Python: what its rules say of a row, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from headgate.conditions.evaluator.evaluate import evaluate
from headgate.conditions.evaluator.twin_values import Value
from headgate.quality.compile.model import CLEAN, JudgedRule, JudgedTable
from headgate.quality.compile.rules_results import OK
from headgate.quality.spec.rule_set import OnFail, Severity
from headgate.reconcile.pair import pair_verdict_when_due, said_row


@dataclass(frozen=True)
class RowVerdict:
    """What is said of a row; `rules` are the names of all that match, in order."""

    status: str
    reason: str
    rules: tuple[str, ...] = ()
    metric: str | None = None
    severity: Severity | None = None
    on_fail: OnFail = "keep"


@dataclass
class Seen:
    """The keys that `unique` rules have met, with the event times of the rows that had them."""

    times: dict[tuple[str, tuple[Value, ...]], list[datetime]] = field(
        default_factory=dict[tuple[str, tuple[Value, ...]], list[datetime]]
    )

    def again(self, rule: JudgedRule, row: Mapping[str, Value], time: datetime) -> bool:
        """Whether the row's key came before within the horizon; it is kept for later ones."""
        if rule.unique is None:
            return False
        key = tuple(row.get(name) for name in rule.unique.fields)
        if None in key:
            return False
        before = self.times.setdefault((rule.name, key), [])
        found = any(abs(time - other) <= rule.unique.horizon for other in before)
        before.append(time)
        return found


def judge_row(
    judged: JudgedTable,
    row: Mapping[str, Value],
    batch_time: datetime,
    seen: Seen | None = None,
) -> RowVerdict:
    """What the table's rules say of a row, whose values stand under the keys of `judged.types`.

    Of two sources the row is the pair; a side without a row has no values. `unique` rules match
    only where `seen` remembers the rows before.
    """
    if judged.table.is_pair:
        row = said_row(judged.table, row)
    matching = [rule for rule in judged.rules if _matches(judged, rule, row, batch_time, seen)]
    if matching:
        first = matching[0]
        return RowVerdict(
            first.status,
            first.reason,
            tuple(rule.name for rule in matching),
            first.metric,
            first.severity,
            first.on_fail,
        )
    return _unruled(judged, row, batch_time)


def _unruled(judged: JudgedTable, row: Mapping[str, Value], batch_time: datetime) -> RowVerdict:
    """What is said of a row that no rule matches; of a pair, once it is due."""
    if not judged.table.is_pair:
        return RowVerdict(CLEAN, OK)
    found = pair_verdict_when_due(judged.table, row, batch_time)
    return RowVerdict(found.status, found.reason, (), found.metric, found.severity)


def judge_rows(
    judged: JudgedTable, rows: Sequence[Mapping[str, Value]], batch_time: datetime
) -> tuple[RowVerdict, ...]:
    """What is said of rows that come one after another; those of a table in the order of time."""
    seen, places = Seen(), list(range(len(rows)))
    if judged.table.first.topic is None:
        places.sort(key=lambda place: _time(judged, rows[place], batch_time))
    found = {place: judge_row(judged, rows[place], batch_time, seen) for place in places}
    return tuple(found[place] for place in range(len(rows)))


def _time(judged: JudgedTable, row: Mapping[str, Value], batch_time: datetime) -> datetime:
    time = row.get(judged.table.first.event_time or "")
    return time if isinstance(time, datetime) else batch_time


def _matches(
    judged: JudgedTable,
    rule: JudgedRule,
    row: Mapping[str, Value],
    batch_time: datetime,
    seen: Seen | None,
) -> bool:
    if rule.condition is not None:
        return evaluate(rule.condition, row, batch_time) is True
    if seen is None:
        return False
    return seen.again(rule, row, _time(judged, row, batch_time))
