"""What is said of a pair on which no rule holds: the verdict, in the order in which it is tried."""

from __future__ import annotations

from dataclasses import replace

from headgate.compile.reconcile.decisions import statuses
from headgate.compile.rules.model import JudgedRule
from headgate.compile.rules.statement import case
from headgate.expr.literals import spark_literal

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
    return "named_struct('status', {}, 'reason', {}, 'severity', {}, 'rules', array({}))".format(
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
