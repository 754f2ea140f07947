"""A judged table in Python: what its rules say of a row, without Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from headgate.compile.reconcile.pair import pair_verdict_when_due, said_row
from headgate.compile.rules.model import CLEAN, MATCH, JudgedRule, JudgedTable
from headgate.compile.rules.results import OK
from headgate.compile.rules.verdicts import verdict_rules
from headgate.expr.twin import Value, evaluate
from headgate.spec.ruleset import OnFail, Severity

HASH = re.compile(r"[0-9a-f]{64}")
DELETE = "DELETE"


@dataclass(frozen=True)
class RowVerdict:
    """What is said of a row; `rules` are the names of all that hold, in order."""

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

    Of two sources the row is the pair; a side without a row has no values. `unique` rules hold
    only where `seen` remembers the rows before.
    """
    if judged.table.reconcile is not None:
        row = said_row(judged.table, row)
    holding = [rule for rule in judged.rules if _holds(judged, rule, row, batch_time, seen)]
    if holding:
        first = holding[0]
        return RowVerdict(
            first.status,
            first.reason,
            tuple(rule.name for rule in holding),
            first.metric,
            first.severity,
            first.on_fail,
        )
    return _unruled(judged, row, batch_time)


def _unruled(judged: JudgedTable, row: Mapping[str, Value], batch_time: datetime) -> RowVerdict:
    """What is said of a row on which no rule holds; of a stream's pair, once it is due."""
    if judged.table.reconcile is not None:
        found = pair_verdict_when_due(judged.table, row, batch_time)
        return RowVerdict(found.status, found.reason, (), found.metric, found.severity)
    status = pair_verdict(judged, row) if judged.table.is_pair else CLEAN
    for verdict in verdict_rules():
        if verdict.status == status:
            return RowVerdict(status, verdict.reason, (), verdict.metric, verdict.severity)
    return RowVerdict(status, OK)


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


def pair_verdict(judged: JudgedTable, row: Mapping[str, Value]) -> str:
    """The verdict on a settled pair on which no rule holds."""
    table = judged.table
    onprem, cloud = table.sources["onprem"].alias, table.sources["cloud"].alias
    here, there = (row.get(f"{alias}.{table.pk}") is not None for alias in (onprem, cloud))
    ours = theirs = None
    if table.hash is not None:
        ours = row.get(f"{onprem}.{table.hash.onprem_field}")
        theirs = row.get(f"{cloud}.{table.hash.cloud_field}")
    if row.get(f"{onprem}.action") == DELETE:
        return "DELETE_EVENT"
    if any(value is not None and not HASH.fullmatch(str(value)) for value in (ours, theirs)):
        return "INVALID_HASH"
    if not there or theirs is None:
        return "MISSING_CLOUD"
    if not here or ours is None:
        return "MISSING_ONPREM"
    return MATCH if ours == theirs else "MISMATCH"


def _holds(
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
