"""What is said of a pair on which no rule holds: the verdict, in the order in which it is tried."""

from __future__ import annotations

from headgate.compile.rules.model import MATCH, JudgedRule
from headgate.spec.ruleset import HashFields, Severity

HASH = r"\\A[0-9a-f]{64}\\z"
_REASONS = {
    "DELETE_EVENT": "the row was deleted on-prem",
    "INVALID_HASH": "a hash is not 64 lower-case hexadecimal digits",
    "MISSING_CLOUD": "the cloud has no row, or no hash, for the key",
    "MISSING_ONPREM": "on-prem has no row, or no hash, for the key",
    "MISMATCH": "both sides have the row, and their hashes differ",
}
_METRICS = {"DELETE_EVENT": "delete_count", "MISMATCH": "hash_mismatch"}
_CONDITIONS = {
    "DELETE_EVENT": "_action = 'DELETE'",
    "INVALID_HASH": f"NOT _hash_onprem RLIKE '{HASH}' OR NOT _hash_cloud RLIKE '{HASH}'",
    "MISSING_CLOUD": "_hash_cloud IS NULL",
    "MISSING_ONPREM": "_hash_onprem IS NULL",
    "MISMATCH": "_hash_onprem <> _hash_cloud",
}
PREFIX = "verdict_"


def verdict_rules(hashes: HashFields | None) -> tuple[JudgedRule, ...]:
    """The verdicts other than MATCH, as if they were rules; they hold only where no rule does."""
    if hashes is None:
        return ()
    return tuple(_rule(status) for status in _CONDITIONS if status != MATCH)


def _rule(status: str) -> JudgedRule:
    severity: Severity = "INFO" if status == "DELETE_EVENT" else "ERROR"
    metric = _METRICS.get(status, status.lower())
    return JudgedRule(PREFIX + status.lower(), _REASONS[status], status, metric, severity, "keep")


def verdict_branches(first: int) -> list[tuple[str, str]]:
    """Conditions of the verdicts, each with its place behind the rules."""
    return [(condition, str(first + at)) for at, condition in enumerate(_CONDITIONS.values())]
