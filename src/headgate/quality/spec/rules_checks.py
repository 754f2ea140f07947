"""What must hold between the parts of a rule set: names, sources, keys and times."""

from __future__ import annotations

import re
from collections.abc import Iterable

from headgate.declarations.metric_names import TAKEN_METRICS
from headgate.quality.spec.rule_set import Aggregate, Emit, Rule, RuleSet, RuleTable
from headgate.quality.spec.rules_forms import form_faults
from headgate.quality.spec.rules_reconcile import reconcile_faults
from headgate.quality.spec.source_checks import LOWER, LOWER_FIX, PREFIX, Found, source_faults

_STATUS = re.compile(r"[A-Z][A-Z0-9_]{0,62}")
_NAMESPACE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
# The views of a source end so.
_ENDINGS = ("source", "read")
_VERDICTS = "verdict_"
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
    elif rule.name.startswith(_VERDICTS):
        what = f"names that begin with `{_VERDICTS}` are those of verdicts"
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
