"""Verdicts in SQL: of the rules that match a row, and of the hashes of a pair that no rule matches."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace

from headgate.compile.fragments import comment, fits, lines, split_literals
from headgate.compile.reconcile.decisions import statuses
from headgate.compile.rules.model import JudgedRule, JudgedTable
from headgate.compile.rules.statement import case
from headgate.compile.rules.unique import repeated_column
from headgate.expr.literals import spark_literal
from headgate.expr.spark import to_clauses, to_spark

HASH = r"\\A[0-9a-f]{64}\\z"
# Judged whole, a row on-prem without a hash counts as none, and nothing else counts deletes.
_REASONS = {"MISSING_ONPREM": "on-prem has no row, or no hash, for the key"}
_METRICS = {"DELETE_EVENT": "delete_count"}
_CONDITIONS = {
    "DELETE_EVENT": "_action = 'DELETE'",
    "INVALID_HASH": f"NOT _hash_onprem RLIKE '{HASH}' OR NOT _hash_cloud RLIKE '{HASH}'",
    "MISSING_CLOUD": "_hash_cloud IS NULL",
    "MISSING_ONPREM": "_hash_onprem IS NULL",
    "MISMATCH": "_hash_onprem <> _hash_cloud",
}
PREFIX = "verdict_"
_ARGUMENTS = comment("name, status, severity, reason, and the condition on which the rule matches")


def all_rules(judged: JudgedTable) -> tuple[JudgedRule, ...]:
    """The rules in their order, and behind them the verdicts where there are two sources."""
    if judged.table.reconcile is not None:
        return (*judged.rules, *settled_rules())
    verdicts = verdict_rules() if judged.table.is_pair else ()
    return (*judged.rules, *verdicts)


def rule_verdict(rules: Sequence[JudgedRule]) -> str:
    """The verdict on a row: of the first rule that matches, with the names of all that match; else NULL.

    Only a call that is evaluated for every row stays in whole-stage code, whatever the number of rules: so
    it must not stand in a branch of an IF or a CASE.
    """
    if not rules:
        return "rule_verdict()"
    arguments = lines(_render_rule(rule, at) for at, rule in enumerate(rules))
    return f"rule_verdict(\n  {_ARGUMENTS}\n{textwrap.indent(arguments, '  ')}\n)"


def _render_rule(rule: JudgedRule, at: int) -> str:
    texts = map(spark_literal, (rule.name, rule.status, rule.severity, rule.reason))
    if rule.condition is None:
        condition = repeated_column(at)
    else:
        whole = to_spark(rule.condition)
        condition = whole if fits(whole) else "\n  ".join(to_clauses(rule.condition))
    return split_literals(f"{', '.join(texts)},\n  {condition}")


def verdict_rules() -> tuple[JudgedRule, ...]:
    """The verdicts other than MATCH, as if they were rules; they hold only where no rule does."""
    return tuple(
        replace(
            rule,
            reason=_REASONS.get(rule.status, rule.reason),
            metric=_METRICS.get(rule.status, rule.metric),
        )
        for rule in map(_rule, _CONDITIONS)
    )


def verdict_case() -> str:
    """The verdict of a pair's hashes, as `rule_verdict` gives that of rules; NULL for MATCH."""
    return case([(_CONDITIONS[rule.status], _struct(rule)) for rule in verdict_rules()])


def _struct(rule: JudgedRule) -> str:
    return "named_struct(\n  'status', {}, 'reason', {},\n  'severity', {}, 'rules', array({})\n)".format(
        *map(spark_literal, (rule.status, rule.reason, rule.severity, rule.name))
    )


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
