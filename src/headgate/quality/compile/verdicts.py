"""Verdicts in SQL: of the rules that match a row, and those of a pair on which no rule speaks."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Protocol

from headgate.conditions.ast import Expr
from headgate.conditions.expr_literals import spark_literal
from headgate.conditions.spark import to_clauses, to_spark
from headgate.core.sql.compile_fragments import comment, fits, lines, split_literals
from headgate.quality.compile.model import JudgedRule, JudgedTable
from headgate.quality.compile.unique import repeated_column
from headgate.reconcile.decisions import statuses

PREFIX = "verdict_"
_ONE_LINE = 100


class VerdictRow(Protocol):
    """What `rule_verdict` has to know of a rule, or of a row of the decision table."""

    @property
    def name(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def severity(self) -> str | None: ...
    @property
    def reason(self) -> str: ...
    @property
    def condition(self) -> Expr | None: ...


def rule_verdict(rules: Sequence[VerdictRow], entry: str = "rule") -> str:
    """The verdict on a row: of the first rule that matches, with the names of all that match; else NULL.

    Only a call that is evaluated for every row stays in whole-stage code, whatever the number of rules: so
    it must not stand in a branch of an IF or a CASE.
    """
    if not rules:
        return "rule_verdict()"
    names = comment(
        f"name, status, severity, reason, and the condition on which the {entry} matches"
    )
    arguments = lines(_render_rule(rule, at) for at, rule in enumerate(rules))
    return f"rule_verdict(\n  {names}\n{textwrap.indent(arguments, '  ')}\n)"


def _render_rule(rule: VerdictRow, at: int) -> str:
    """On one line where it is short, else the condition on a line of its own."""
    texts = ", ".join(map(spark_literal, (rule.name, rule.status, rule.severity, rule.reason)))
    condition = repeated_column(at) if rule.condition is None else to_spark(rule.condition)
    if len(texts) + len(condition) <= _ONE_LINE and "\n" not in condition:
        return f"{texts}, {condition}"
    if rule.condition is not None and not fits(condition):
        condition = "\n  ".join(to_clauses(rule.condition))
    return split_literals(f"{texts},\n  {condition}")


def all_rules(judged: JudgedTable) -> tuple[JudgedRule, ...]:
    """The rules in their order, and behind them the verdicts where there are two sources."""
    return (*judged.rules, *(settled_rules() if judged.table.is_pair else ()))


def settled_rules() -> tuple[JudgedRule, ...]:
    """Every verdict that a key can end with, as if it were a rule: so they are counted as rules are."""
    return tuple(_rule(status) for status, said in statuses().items() if said.metric)


def _rule(status: str) -> JudgedRule:
    """As the decision table says it: status, reason, metric and severity stand there alone."""
    said = statuses()[status]
    return JudgedRule(
        name=PREFIX + status.lower(),
        reason=said.reason,
        status=status,
        metric=said.metric or status.lower(),
        severity=said.severity or "INFO",
        on_fail="keep",
    )
