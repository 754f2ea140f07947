"""The decision table (`decisions.yml`) and the verdict on a key: the first row whose condition holds.

A verdict is a pure function of the key's state, the time and the limits. `change_id` names a change of a verdict by
both versions and the status, so that a change has one id however often it is published.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as checked

from headgate.conditions.ast import Expr
from headgate.conditions.evaluator.evaluate import evaluate
from headgate.conditions.evaluator.values import Value
from headgate.conditions.parser import parse_condition
from headgate.declarations.document import read_document
from headgate.quality.compile.resolve import JudgedRule
from headgate.quality.spec.reconcile_checks import Limits
from headgate.quality.spec.rule_checks import VERDICT_PREFIX
from headgate.quality.spec.rule_set import Severity
from headgate.reconcile.state import TYPES, Known, SideState, State, facts_of

FILE = "decisions.yml"
Rollup = Literal["valid", "invalid", "missing", "pending"]
ROLLUPS: tuple[Rollup, ...] = ("valid", "invalid", "missing", "pending")
WAITING: Rollup = "pending"
_STRICT = ConfigDict(extra="forbid")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@checked(frozen=True, config=_STRICT)
class Status:
    """What is said of every key with one status; a status that waits is not counted."""

    rollup: Rollup
    reason: str
    metric: str | None = None
    severity: Severity | None = None


@checked(frozen=True, config=_STRICT)
class Row:
    """A row as it is written."""

    status: str
    when: str
    reason: str | None = None


@checked(frozen=True, config=_STRICT)
class _File:
    statuses: dict[str, Status]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Decision:
    """One row of the table: the first whose condition holds gives the verdict."""

    place: int
    status: str
    when: str
    condition: Expr
    rollup: Rollup
    reason: str
    metric: str | None
    severity: Severity | None

    @property
    def name(self) -> str:
        """As `rule_verdict` lists it."""
        return str(self.place)

    @property
    def settled(self) -> bool:
        return self.rollup != WAITING

    def holds(self, facts: Mapping[str, Value]) -> bool:
        return evaluate(self.condition, facts) is True


@cache
def _read() -> _File:
    text = (files("headgate.reconcile") / FILE).read_text("utf-8")
    return TypeAdapter(_File).validate_python(read_document(FILE, text, {}).data)


def statuses() -> dict[str, Status]:
    """Every status there is, with what is said of its keys."""
    return dict(_read().statuses)


def verdict_rules() -> tuple[JudgedRule, ...]:
    """Every verdict that a key can end with, as a rule: so verdicts are counted as rules are."""
    return tuple(
        JudgedRule(
            name=VERDICT_PREFIX + name.lower(),
            reason=status.reason,
            status=name,
            metric=status.metric,
            severity=status.severity or "INFO",
            on_fail="keep",
        )
        for name, status in statuses().items()
        if status.metric
    )


@cache
def decisions() -> tuple[Decision, ...]:
    """The rows in their order."""
    found = _read()
    return tuple(
        _decision(place, row, found.statuses[row.status]) for place, row in enumerate(found.rows, 1)
    )


def _decision(place: int, row: Row, status: Status) -> Decision:
    return Decision(
        place=place,
        status=row.status,
        when=row.when,
        condition=parse_condition(row.when, TYPES),
        rollup=status.rollup,
        reason=row.reason or status.reason,
        metric=status.metric,
        severity=status.severity,
    )


def decided(facts: Mapping[str, Value]) -> Decision:
    """The row that these facts get: every combination has one."""
    return next(row for row in decisions() if row.holds(facts))


def settled_decisions() -> tuple[Decision, ...]:
    """The rows that do not wait: among them alone the status is found that a pending key would get."""
    return tuple(row for row in decisions() if row.settled)


@dataclass(frozen=True)
class Verdict:
    """What is said of a key at a time; `provisional` is what it would be once it waits no more."""

    pk: str
    status: str
    provisional: str | None
    settled: bool
    rollup: Rollup
    reason: str
    metric: str | None
    severity: Severity | None
    deadline: datetime
    onprem_version: datetime | None
    cloud_version: datetime | None
    onprem_read_at: datetime | None
    cloud_read_at: datetime | None
    hash_onprem: str | None
    hash_cloud: str | None
    within_grace: bool | None
    late: bool
    stale: bool
    conflict: bool

    def id_in(self, table: str) -> str:
        """The name of this change, of a key of this pair."""
        return change_id(table, self.pk, self.onprem_version, self.cloud_version, self.status)


def judge(
    state: State, at: datetime, limits: Limits, whole: bool = True, ended: bool = False
) -> Verdict:
    """The verdict on a state at a time.

    A state that is not `whole` is one window's: what it lacks may stand in another, so that it is
    never due for anything. One whose input has `ended` waits for nothing more.
    """
    known = Known(state, at, limits, whole, ended)
    facts = facts_of(known)
    row = decided(facts)
    final = next(other for other in settled_decisions() if other.holds(facts))
    onprem, cloud = state.onprem, state.cloud
    return Verdict(
        pk=state.pk,
        status=row.status,
        provisional=None if row.settled else final.status,
        settled=row.settled,
        rollup=row.rollup,
        reason=row.reason,
        metric=row.metric,
        severity=row.severity,
        deadline=known.deadline,
        onprem_version=_version(onprem),
        cloud_version=_version(cloud),
        onprem_read_at=onprem.first.read_at if onprem else None,
        cloud_read_at=cloud.first.read_at if cloud else None,
        hash_onprem=onprem.newest.hash if onprem else None,
        hash_cloud=cloud.newest.hash if cloud else None,
        within_grace=facts["within_grace"] is True if row.settled else None,
        late=facts["late"] is True,
        stale=facts["stale"] is True,
        conflict=facts["conflict"] is True,
    )


def _version(side: SideState | None) -> datetime | None:
    return side.newest.version if side else None


def change_id(
    table: str, pk: str, onprem: datetime | None, cloud: datetime | None, status: str
) -> str:
    """The name of one change of a verdict, the same wherever and however often it is told.

    Pairs may share a topic and keys, so the table is part of it. The key stands last, so that no two
    different changes give one text.
    """
    text = "\n".join((status, _micros(onprem), _micros(cloud), table, pk))
    return hashlib.sha256(text.encode()).hexdigest()


def _micros(time: datetime | None) -> str:
    return "-" if time is None else str((time - _EPOCH) // timedelta(microseconds=1))
