"""Aggregates in words: what is measured, its limits, and what was found in one window."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from headgate.core.metrics.metrics_windows import AggregateVerdict
from headgate.quality.report.model import MASK, VerdictLine
from headgate.quality.report.rows import is_hidden
from headgate.quality.spec.rule_set import Aggregate

# Measures whose value is, or can be, a value of one row.
_TELLING = frozenset({"sum", "quantile", "freshness"})


def verdict_line(
    verdict: AggregateVerdict, declared: Aggregate | None, window: str, hidden: frozenset[str]
) -> VerdictLine:
    field = declared.field if declared else None
    masked = verdict.measure in _TELLING and field is not None and is_hidden(field, hidden)
    return VerdictLine(
        aggregate=verdict.name,
        words=aggregate_words(declared) if declared else verdict.measure,
        window=window,
        group=_group(verdict.group, hidden),
        value=MASK if masked else _number(verdict.value),
        limits=limit_words(verdict.min, verdict.max),
        severity=verdict.severity,
        holds=not verdict.failed,
    )


def _group(group: Mapping[str, object] | None, hidden: frozenset[str]) -> str:
    told = {k: MASK if is_hidden(k, hidden) else v for k, v in (group or {}).items()}
    return ", ".join(f"{name} {_is(value)}" for name, value in told.items())


def _is(value: object) -> str:
    if value is None:
        return "is missing"
    return f"= {value if isinstance(value, str) else json.dumps(value)}"


def aggregate_words(aggregate: Aggregate) -> str:
    """What is measured, in words; freshness without a field is that of the event time."""
    words = {
        "row_count": "the number of rows",
        "freshness": f"seconds since the newest {aggregate.field or 'event'}",
        "null_rate": f"the share of rows without {aggregate.field}",
        "distinct_count": f"how many different {aggregate.field} there are",
        "sum": f"the sum of {aggregate.field}",
        "quantile": f"the {aggregate.quantile or 0.5:g} quantile of {aggregate.field}",
    }[aggregate.measure]
    return f"{words} per {' and '.join(aggregate.group_by)}" if aggregate.group_by else words


def limit_words(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"{_number(least)} to {_number(most)}"
    return f"at least {_number(least)}" if least is not None else f"at most {_number(most)}"


def _number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "–" if value is None else str(value)
    whole = abs(value) >= 100_000 or value == int(value)
    return f"{value:,.0f}" if whole and abs(value) < 1e15 else f"{value:,.6g}"
