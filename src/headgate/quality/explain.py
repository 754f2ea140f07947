"""Explains the rules of a table: each in words, with its SQL, what it emits, its limits and its last counts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from headgate.conditions.spark_sql import to_spark
from headgate.core.ledger.model import RuleCount
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.windows import AggregateVerdict
from headgate.declarations.types import in_words
from headgate.quality.compile.resolve import JudgedRule, JudgedTable, rule_words
from headgate.quality.compile.results import all_rules
from headgate.quality.compile.tables import names_of
from headgate.quality.report.build import moment
from headgate.quality.report.model import MASK, VerdictLine
from headgate.quality.report.rows import is_hidden
from headgate.quality.spec.rule_set import Aggregate, RuleTable

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


@dataclass(frozen=True)
class Counted:
    """Rows whose status a rule gave, and rows that it matched at all."""

    n: int = 0
    matched: int = 0


@dataclass(frozen=True)
class Counts:
    """What the rules of a job counted in its last batch, settled `at`, and in all of them."""

    at: str = ""
    last: Mapping[str, Counted] = field(default_factory=dict[str, Counted])
    total: Mapping[str, Counted] = field(default_factory=dict[str, Counted])


@dataclass(frozen=True)
class ExplainedRule:
    """One rule; `counted_at` is empty while its job has judged nothing."""

    table: str
    rule: str
    order: int
    words: str
    sql: str
    reason: str
    severity: str
    status: str
    metric: str
    on_fail: str
    counted_at: str
    last: Counted
    total: Counted


@dataclass(frozen=True)
class ExplainedAggregate:
    table: str
    aggregate: str
    words: str
    limits: str
    severity: str


@dataclass(frozen=True)
class Explained:
    """A table's rules in the order that decides, then its aggregates."""

    table: str
    file: str
    clean_status: str
    rules: tuple[ExplainedRule, ...]
    aggregates: tuple[ExplainedAggregate, ...]


def read_counts(store: OpsStore, table: RuleTable) -> Counts:
    """What the ops store has of the table's job."""
    job = names_of(table).job
    batches = store.newest_batches(job, 1)
    if not batches:
        return Counts()
    newest = store.newest_rule_counts(job, 1).get(batches[-1].id or 0, ())
    return Counts(
        moment(batches[-1].committed_at), _by_rule(newest), _by_rule(store.rule_counts(job))
    )


def _by_rule(counts: Iterable[RuleCount]) -> dict[str, Counted]:
    """A rule that once had another metric or severity stands there twice."""
    found: dict[str, Counted] = {}
    for count in counts:
        before = found.get(count.rule, Counted())
        found[count.rule] = Counted(before.n + count.n, before.matched + count.matched)
    return found


def explained(judged: JudgedTable, file: str, counts: Counts) -> Explained:
    name = judged.table.name
    return Explained(
        table=name,
        file=file,
        clean_status=judged.clean_status,
        rules=tuple(_rule(name, at, r, counts) for at, r in enumerate(all_rules(judged), 1)),
        aggregates=tuple(_aggregate(name, aggregate) for aggregate in judged.aggregates),
    )


def _rule(table: str, order: int, rule: JudgedRule, counts: Counts) -> ExplainedRule:
    return ExplainedRule(
        table=table,
        rule=rule.name,
        order=order,
        words=rule_words(rule),
        sql=rule_sql(rule),
        reason=rule.reason,
        severity=rule.severity,
        status=rule.status,
        metric=rule.metric,
        on_fail=rule.on_fail,
        counted_at=counts.at,
        last=counts.last.get(rule.name, Counted()),
        total=counts.total.get(rule.name, Counted()),
    )


def rule_sql(rule: JudgedRule) -> str:
    """The condition as it runs; a look into the table of keys and a verdict are none of a row's own."""
    if rule.condition is not None:
        return to_spark(rule.condition)
    if rule.unique is None:
        return "-- the verdict of a pair that no rule matches"
    fields = ", ".join(rule.unique.fields)
    return f"-- ({fields}) is among the keys of the last {in_words(rule.unique.horizon)}"


def _aggregate(table: str, aggregate: Aggregate) -> ExplainedAggregate:
    limits = limit_words(aggregate.min, aggregate.max)
    return ExplainedAggregate(
        table, aggregate.name, aggregate_words(aggregate), limits, aggregate.severity
    )


def explained_text(found: Explained) -> str:
    """For a terminal: one paragraph a rule."""
    count = f"{len(found.rules)} rule{'' if len(found.rules) == 1 else 's'}"
    decides = f"the first that matches decides, else {found.clean_status}"
    head = f"{found.table} ({found.file}): {count}; {decides}"
    parts = [head, *("\n".join(_rule_text(rule)) for rule in found.rules)]
    parts += [
        f"{a.aggregate}  {a.severity}\n  each window: {a.words} must be {a.limits}"
        for a in found.aggregates
    ]
    return "\n\n".join(parts)


def _rule_text(rule: ExplainedRule) -> Iterator[str]:
    yield f"{rule.order}. {rule.rule}  {rule.severity} → {rule.status}, metric {rule.metric}, on_fail {rule.on_fail}"
    yield f"  matches when {rule.words}"
    if rule.reason not in (rule.rule, rule.words):
        yield f"  reason: {rule.reason}"
    yield f"  SQL: {rule.sql}"
    if rule.counted_at:
        yield f"  last batch ({rule.counted_at}): {_counted(rule.last)}; in all: {_counted(rule.total)}"
    else:
        yield "  nothing counted yet"


def _counted(counted: Counted) -> str:
    return f"status of {counted.n:,} rows, matched {counted.matched:,}"
