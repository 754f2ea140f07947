"""Checks of rules and aggregates: which keys each rule type takes, and names that must be unique or free.

Yields one `(pointer, what, fix)` for each fault. Conditions and column types are checked when the rule set is
resolved (`quality.compile.resolve`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from headgate.declarations.errors import suggestion
from headgate.declarations.names import TAKEN_METRICS
from headgate.quality.spec.reconcile_checks import reconcile_faults
from headgate.quality.spec.rule_set import (
    Aggregate,
    Emit,
    Measure,
    NullHandling,
    Rule,
    RuleSet,
    RuleTable,
    RuleType,
)
from headgate.quality.spec.source_checks import LOWER, LOWER_FIX, PREFIX, Found, source_faults

_Found: TypeAlias = Iterator[tuple[str, str, str]]
_ALL_NULLS: tuple[NullHandling, ...] = ("default", "fail", "skip")


@dataclass(frozen=True)
class Form:
    """`needs` lists alternatives; `nulls` are the ways with NULL that change anything."""

    needs: tuple[tuple[str, ...], ...]
    may: tuple[str, ...] = ()
    nulls: tuple[NullHandling, ...] = _ALL_NULLS

    @property
    def keys(self) -> tuple[str, ...]:
        return (*(key for keys in self.needs for key in keys), *self.may)


_LIMITS = Form((("field",), ("min", "max")))
_LOOKUP = Form((("field",), ("values", "values_file")))
FORMS: dict[RuleType, Form] = {
    "required": Form((("fields", "field"),), nulls=("default", "fail")),
    "range": _LIMITS,
    "threshold": _LIMITS,
    "regex": Form((("field",), ("pattern",))),
    "timestamp_freshness": Form((("field",),), ("max_age_seconds",)),
    "cross_field": Form((("left",), ("op",), ("right",))),
    "lookup_in": _LOOKUP,
    "lookup_not_in": _LOOKUP,
    "unique": Form((("fields", "field"),), ("horizon",), nulls=("default", "skip")),
    "custom_sql": Form((("sql",),), nulls=("default", "skip")),
    "schema": Form((), ("allow_unknown",), nulls=("default", "skip")),
}
PARAMETERS = tuple(dict.fromkeys(key for form in FORMS.values() for key in form.keys))
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_SAME_OPERATORS = {"==": "=", "!=": "<>"}
_WITH_FIELD: tuple[Measure, ...] = ("null_rate", "distinct_count", "sum", "quantile")
_TOGETHER = {"min", "max"}


def operator(text: str) -> str:
    """The operator that `text` spells, in the spelling of the language."""
    return _SAME_OPERATORS.get(text, text)


def form_faults(place: str, parts: Sequence[Rule | Aggregate]) -> _Found:
    """The keys that a rule lacks or has too many; for aggregates `place` is their list."""
    for at, part in enumerate(parts):
        if isinstance(part, Rule):
            yield from _rule_form(place, part)
        else:
            yield from _aggregate(f"{place}[{at}]", part)


def given_keys(rule: Rule) -> tuple[str, ...]:
    """The parameters that were written, not those left at their defaults."""
    return tuple(key for key in PARAMETERS if not _is_default(getattr(rule, key)))


def _is_default(value: object) -> bool:
    """Nothing, no items or false; the number 0 is a value."""
    return value is None or value is False or value == ()


def _rule_form(place: str, rule: Rule) -> _Found:
    if (rule.when is None) == (rule.type is None):
        both = "both `when` and `type`" if rule.when else "neither `when` nor `type`"
        yield place, f"the rule has {both}", "Write a condition, or a type with its keys."
        return
    form = FORMS[rule.type] if rule.type else Form((), nulls=("default", "skip"))
    named = f"`type: {rule.type}`" if rule.type else "a rule with `when`"
    given = given_keys(rule)
    for key in given:
        if key not in form.keys:
            yield f"{place}.{key}", f"{named} has no key `{key}`", _takes(key, form)
    for keys in form.needs:
        yield from _needed(place, named, keys, [key for key in keys if key in given])
    if rule.null_handling not in form.nulls:
        yield f"{place}.null_handling", *_null_words(rule)
    yield from _values(place, rule)


def _takes(key: str, form: Form) -> str:
    return suggestion(key, form.keys, "keys of this form") if form.keys else "Leave it out."


def _needed(place: str, named: str, keys: tuple[str, ...], given: list[str]) -> _Found:
    if not given:
        yield place, f"{named} lacks {_either(keys)}", "Add it."
    elif len(given) > 1 and not _TOGETHER.issuperset(keys):
        yield f"{place}.{given[1]}", f"{named} has {' and '.join(given)}", "Keep one of them."


def _either(keys: tuple[str, ...]) -> str:
    return " or ".join(f"`{key}`" for key in keys)


def _null_words(rule: Rule) -> tuple[str, str]:
    if rule.type == "required":
        return "it could never match: `required` asks for NULL alone", "Leave null_handling out."
    return "it changes nothing here", "Leave it out, and say IS NULL where you mean it."


def _values(place: str, rule: Rule) -> _Found:
    if rule.op is not None and operator(rule.op) not in OPERATORS:
        fix = f"Write one of {', '.join(OPERATORS)}."
        yield f"{place}.op", f"`{rule.op}` is not an operator", fix
    yield from _finite(place, rule)
    yield from _ordered(place, rule.min, rule.max)
    if len(set(rule.fields)) < len(rule.fields):
        yield f"{place}.fields", "a field is listed twice", "Keep one."


def _finite(place: str, part: Rule | Aggregate) -> _Found:
    for key in ("min", "max"):
        value = getattr(part, key)
        if isinstance(value, float) and not isfinite(value):
            yield f"{place}.{key}", "the number is too large", "Write a smaller one, or none."


def _ordered(place: str, low: object, high: object) -> _Found:
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        yield f"{place}.max", f"max {high} is below min {low}", "Swap them."


def _aggregate(place: str, aggregate: Aggregate) -> _Found:
    measure = aggregate.measure
    if aggregate.min is None and aggregate.max is None:
        yield place, "it has neither `min` nor `max`", "Say which values are good."
    yield from _finite(place, aggregate)
    yield from _ordered(place, aggregate.min, aggregate.max)
    if measure in _WITH_FIELD and aggregate.field is None:
        yield place, f"{measure} lacks `field`", "Name the column that is measured."
    if measure == "row_count" and aggregate.field is not None:
        yield f"{place}.field", "row_count counts all rows", "Leave it out, or use null_rate."
    if (measure == "quantile") != (aggregate.quantile is not None):
        wrong = f"{place}.quantile" if aggregate.quantile is not None else place
        yield wrong, "`quantile` goes with the measure quantile", "Write both, as quantile: 0.95."
    if aggregate.quantile is not None and not 0 < aggregate.quantile < 1:
        what = f"{aggregate.quantile:g} is not between 0 and 1"
        yield f"{place}.quantile", what, "Write for example 0.95."
    if measure == "null_rate":
        for key in ("min", "max"):
            value = getattr(aggregate, key)
            if value is not None and not 0 <= value <= 1:
                yield f"{place}.{key}", f"{value:g} is no share of rows", "Write 0 to 1."


_STATUS = re.compile(r"[A-Z][A-Z0-9_]{0,62}")
_NAMESPACE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
# The views of a source end so.
_ENDINGS = ("source", "read")
# The names of verdicts, where they are counted as rules are.
VERDICT_PREFIX = "verdict_"
_SINK = "sink_"


def faults_of(rule_set: RuleSet) -> Found:
    """Where, what, and what to write instead; the conditions are judged elsewhere."""
    yield from _metric_settings(rule_set)
    yield from _unique("tables", [table.name for table in rule_set.tables])
    yield from _source_tables(rule_set)
    yield from _all_rules("rules", rule_set.rules)
    yield from _all_aggregates("aggregates", rule_set.aggregates)
    for at, table in enumerate(rule_set.tables):
        yield from _table(f"tables[{at}]", table)
        yield from _shared_names(f"tables[{at}]", rule_set, table)
        yield from _clean_statuses(f"tables[{at}]", rule_set, table)
    yield from reconcile_faults(rule_set)


def _metric_settings(rule_set: RuleSet) -> Found:
    if not _NAMESPACE.fullmatch(rule_set.metrics.namespace):
        what = f"`{rule_set.metrics.namespace}` is not a namespace"
        yield "metrics.namespace", what, "Write lower-case names joined by dots: dq.cassandra."


def _all_rules(place: str, rules: Iterable[Rule]) -> Found:
    for at, rule in enumerate(rules):
        yield from _rule(f"{place}[{at}]", rule)


def _rule(place: str, rule: Rule) -> Found:
    if not LOWER.fullmatch(rule.name):
        yield f"{place}.name", f"`{rule.name}` is not a name for a rule", LOWER_FIX
    elif rule.name.startswith(VERDICT_PREFIX):
        what = f"names that begin with `{VERDICT_PREFIX}` are those of verdicts"
        yield f"{place}.name", what, "Use another."
    elif rule.emit is None or rule.emit.metric is None:
        yield from _metric(f"{place}.name", rule.name)
    if rule.emit is not None:
        yield from _emit(f"{place}.emit", rule.emit)
        if rule.severity is not None:
            fix = "Keep the one in `emit`."
            yield f"{place}.severity", "the severity is given here and in `emit`", fix
    yield from form_faults(place, (rule,))


def _emit(place: str, emit: Emit) -> Found:
    if not _STATUS.fullmatch(emit.dq_status):
        upper = re.sub(r"\W+", "_", emit.dq_status).upper()
        fix = f"Write {upper}." if _STATUS.fullmatch(upper) else "Use capitals and underscores."
        yield f"{place}.dq_status", f"`{emit.dq_status}` is not a status", fix
    if emit.metric is not None:
        yield from _metric(f"{place}.metric", emit.metric)


def _metric(pointer: str, metric: str) -> Found:
    """A rule's metric, be it the rule's name; also the name of an aggregate, which is one too."""
    if metric.startswith(PREFIX):
        fix = f"Write {metric.removeprefix(PREFIX)}."
        yield pointer, f"`{PREFIX}` is put before every metric's name", fix
    elif not LOWER.fullmatch(metric):
        yield pointer, f"`{metric}` is not a name for a metric", LOWER_FIX
    elif metric in TAKEN_METRICS:
        what = f"`{metric}` is a metric that Headgate counts itself"
        yield pointer, what, "Use another name."


def _all_aggregates(place: str, aggregates: tuple[Aggregate, ...]) -> Found:
    for at, aggregate in enumerate(aggregates):
        yield from _metric(f"{place}[{at}].name", aggregate.name)
    yield from form_faults(place, aggregates)


def _table(place: str, table: RuleTable) -> Found:
    if not LOWER.fullmatch(table.name):
        yield f"{place}.name", f"`{table.name}` cannot be part of a view's name", LOWER_FIX
    elif table.name.startswith(_SINK):
        what = f"dq_metrics_{table.name} would be the view of another table's sink"
        yield f"{place}.name", what, "Use another name."
    for name in table.sources:
        if not LOWER.fullmatch(name):
            yield f"{place}.sources.{name}", f"`{name}` is not a name for a source", LOWER_FIX
    yield from source_faults(place, table)
    yield from _all_rules(f"{place}.rules", table.rules)
    yield from _all_aggregates(f"{place}.aggregates", table.aggregates)


def _unique(place: str, names: list[str]) -> Found:
    for at, name in enumerate(names):
        if name.lower() in [other.lower() for other in names[:at]]:
            yield f"{place}[{at}].name", f"`{name}` is declared twice", "Keep one."


def _source_tables(rule_set: RuleSet) -> Found:
    """All tables of a file are compiled into one script, so views need names of their own."""
    sources = [
        (f"tables[{at}].sources.{side}.table", source.table)
        for at, table in enumerate(rule_set.tables)
        for side, source in table.sources.items()
    ]
    taken: set[str] = set()
    for pointer, name in sources:
        if name.lower() in taken:
            yield pointer, f"`{name}` is the view of another source", "Name another."
        taken |= {name.lower(), *(f"{name.lower()}_{ending}" for ending in _ENDINGS)}


def _clean_statuses(place: str, rule_set: RuleSet, table: RuleTable) -> Found:
    """A row that a rule finds bad must not look like one that no rule matches."""
    clean = "MATCH" if table.is_pair else "VALID"
    for pointer, rules in (("rules", rule_set.rules), (f"{place}.rules", table.rules)):
        for at, rule in enumerate(rules):
            emit = rule.emit
            if emit is not None and emit.dq_status == clean and emit.severity != "INFO":
                what = f"{clean} is the status of rows that no rule matches"
                fix = "Use another, or severity: INFO."
                yield f"{pointer}[{at}].emit.dq_status", what, fix


def _shared_names(place: str, rule_set: RuleSet, table: RuleTable) -> Found:
    """Rules, metrics and aggregates of one table share its metric names and its report."""
    seen: dict[str, str] = {}
    lists = (
        ("rules", rule_set.rules),
        ("aggregates", rule_set.aggregates),
        (f"{place}.rules", table.rules),
        (f"{place}.aggregates", table.aggregates),
    )
    for pointer, parts in lists:
        for at, part in enumerate(parts):
            if part.name in seen:
                where = f"{pointer}[{at}].name"
                yield where, f"`{part.name}` is already the name of {seen[part.name]}", "Rename it."
            seen.setdefault(part.name, f"{pointer}[{at}]")
    yield from _counted_and_measured(lists)


def _counted_and_measured(lists: Iterable[tuple[str, tuple[Rule | Aggregate, ...]]]) -> Found:
    """A sink has one value under a name: rules may share a metric, an aggregate has its own."""
    measured = {part.name for _, parts in lists for part in parts if isinstance(part, Aggregate)}
    for pointer, parts in lists:
        for at, part in enumerate(parts):
            metric = part.emit.metric if isinstance(part, Rule) and part.emit else None
            if metric in measured:
                what = f"`{metric}` is the name of an aggregate"
                yield f"{pointer}[{at}].emit.metric", what, "Use another name."
