"""The decision table, read from `decisions.yml`: which verdict a key gets, in the order that decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as checked

from headgate.conditions.ast import Expr
from headgate.conditions.evaluator.evaluate import evaluate
from headgate.conditions.evaluator.twin_values import Value
from headgate.conditions.parser import parse_condition
from headgate.declarations.spec_document import read_document
from headgate.quality.spec.rule_set import Severity
from headgate.reconcile.facts import TYPES

FILE = "decisions.yml"
Rollup = Literal["valid", "invalid", "missing", "pending"]
ROLLUPS: tuple[Rollup, ...] = ("valid", "invalid", "missing", "pending")
WAITING: Rollup = "pending"
_STRICT = ConfigDict(extra="forbid")


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
