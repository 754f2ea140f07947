"""A rule set's table made ready: every rule as one condition, in the order that decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headgate.conditions.ast import Expr
from headgate.declarations.spec_types import SqlType
from headgate.quality.spec.rule_set import Aggregate, OnFail, RuleSet, RuleTable, Severity

CLEAN = "VALID"
MATCH = "MATCH"


@dataclass(frozen=True)
class Unique:
    """A row is bad when its key was seen before within the horizon."""

    fields: tuple[str, ...]
    horizon: timedelta


@dataclass(frozen=True)
class JudgedRule:
    """One rule: the row is bad when `condition` holds, or `unique` finds its key again."""

    name: str
    reason: str
    status: str
    metric: str
    severity: Severity
    on_fail: OnFail
    condition: Expr | None = None
    unique: Unique | None = None


@dataclass(frozen=True)
class JudgedTable:
    """All that the compiler needs of one table; `types` of columns as rules see them.

    With two sources the names in `types` are qualified: `t1.action`.
    """

    rule_set: RuleSet
    table: RuleTable
    rules: tuple[JudgedRule, ...]
    aggregates: tuple[Aggregate, ...]
    types: dict[str, SqlType]

    @property
    def clean_status(self) -> str:
        return MATCH if self.table.is_pair else CLEAN
