"""What must hold between the parts of a rule set: names, sources, keys and times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from headgate.spec.checks import is_odd_name
from headgate.spec.dataset import RESERVED_COLUMNS
from headgate.spec.refusal import suggestion
from headgate.spec.rules_forms import form_faults
from headgate.spec.ruleset import Emit, Rule, RuleSet, RuleSource, RuleTable

Found: TypeAlias = Iterator[tuple[str, str, str]]

_LOWER = re.compile(r"[a-z][a-z0-9_]{0,62}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_STATUS = re.compile(r"[A-Z][A-Z0-9_]{0,62}")
_NAMESPACE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
# A placeholder stays one where the rule set is kept: it is filled when it runs.
_TOPIC = re.compile(r"(?:[A-Za-z0-9._-]|\$\{[A-Z_]+\}){1,249}")
_LAKE_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*")
_PATH_STEP = r"[A-Za-z_][A-Za-z0-9_]*(?:\[(?:\d+|[A-Za-z_][A-Za-z0-9_]*='[^'\[\]]*')\])?"
_PATH = re.compile(rf"{_PATH_STEP}(?:\.{_PATH_STEP})*")
_LOWER_FIX = "Use lower-case letters, digits and underscores, beginning with a letter."
_TAKEN_METRICS = ("error_total", "warn_total", "info_total")
_OWN_ALIASES = {"onprem": "t1", "cloud": "t2"}
_PLACEHOLDERS = ("pk", "hash_onprem", "hash_cloud", "batch_time", "session")
_PREFIX = "dq_"
# The views of a source end so; the compiled SQL says session.batch_time, which a column would hide.
_ENDINGS = ("source", "parsed", "read", "newest", "refused")
_TAKEN_COLUMNS = (*RESERVED_COLUMNS, "session")
_TAKEN_BEGINNINGS = (_PREFIX, "_", "kafka_")
_VERDICTS = "verdict_"
_SINK = "sink_"


def faults_of(rule_set: RuleSet) -> Found:
    """Where, what, and what to write instead; the conditions are judged elsewhere."""
    yield from _metric_settings(rule_set)
    yield from _unique("tables", [table.name for table in rule_set.tables])
    yield from _source_tables(rule_set)
    yield from _all_rules("rules", rule_set.rules)
    yield from form_faults("aggregates", rule_set.aggregates)
    for at, table in enumerate(rule_set.tables):
        yield from _table(f"tables[{at}]", table)
        yield from _shared_names(f"tables[{at}]", rule_set, table)
        yield from _clean_statuses(f"tables[{at}]", rule_set, table)


def _metric_settings(rule_set: RuleSet) -> Found:
    if not _NAMESPACE.fullmatch(rule_set.metrics.namespace):
        what = f"`{rule_set.metrics.namespace}` is not a namespace"
        yield "metrics.namespace", what, "Write lower-case names joined by dots: dq.cassandra."


def _all_rules(place: str, rules: Iterable[Rule]) -> Found:
    for at, rule in enumerate(rules):
        yield from _rule(f"{place}[{at}]", rule)


def _rule(place: str, rule: Rule) -> Found:
    if not _LOWER.fullmatch(rule.name):
        yield f"{place}.name", f"`{rule.name}` is not a name for a rule", _LOWER_FIX
    elif rule.name.startswith(_VERDICTS):
        what = f"names that begin with `{_VERDICTS}` are those of verdicts"
        yield f"{place}.name", what, "Use another."
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
    metric = emit.metric
    if metric is None:
        return
    if metric.startswith(_PREFIX):
        fix = f"Write {metric.removeprefix(_PREFIX)}."
        yield f"{place}.metric", f"`{_PREFIX}` is put before every metric's name", fix
    elif not _LOWER.fullmatch(metric):
        yield f"{place}.metric", f"`{metric}` is not a name for a metric", _LOWER_FIX
    elif metric in _TAKEN_METRICS:
        yield f"{place}.metric", f"`{metric}` is the sum of a severity", "Use another name."


def _table(place: str, table: RuleTable) -> Found:
    if not _LOWER.fullmatch(table.name):
        yield f"{place}.name", f"`{table.name}` cannot be part of a view's name", _LOWER_FIX
    elif table.name.startswith(_SINK):
        what = f"dq_metrics_{table.name} would be the view of another table's sink"
        yield f"{place}.name", what, "Use another name."
    if "onprem" not in table.sources:
        yield f"{place}.sources", "the source `onprem` is missing", "A single source is `onprem`."
    for side, source in table.sources.items():
        yield from _source(f"{place}.sources.{side}", side, source)
        yield from _key(f"{place}.sources.{side}", place, table, source)
    yield from _pair(place, table)
    yield from _hash(place, table)
    yield from _all_rules(f"{place}.rules", table.rules)
    yield from form_faults(f"{place}.aggregates", table.aggregates)


def _source(place: str, side: str, source: RuleSource) -> Found:
    if not _IDENTIFIER.fullmatch(source.table):
        fix = "Use letters, digits and underscores, not beginning with a digit."
        yield f"{place}.table", f"`{source.table}` is not a name for a view", fix
    elif source.table.lower().startswith(_PREFIX):
        what = f"names that begin with `{_PREFIX}` are those of compiled views"
        yield f"{place}.table", what, "Use another."
    yield from _origin(place, source)
    yield from _alias(place, side, source.alias)
    yield from _columns(place, source)
    if source.event_time is not None:
        yield from _event_time(f"{place}.event_time", source, source.event_time)
    if source.pk_path is not None and not _PATH.fullmatch(source.pk_path):
        what = f"`{source.pk_path}` is not a path"
        yield f"{place}.pk_path", what, "Write for example partitionColumns[type='PK'].value."


def _origin(place: str, source: RuleSource) -> Found:
    if (source.topic is None) == (source.iceberg is None):
        both = "both a topic and a table of the lake" if source.topic else "no topic and no table"
        yield place, f"the source has {both}", "Write `topic` or `iceberg`, one of them."
    for key, topic in (("topic", source.topic), ("dlq_topic", source.dlq_topic)):
        if topic is not None and (not _TOPIC.fullmatch(topic) or topic in {".", ".."}):
            fix = "Use up to 249 letters, digits, dots, underscores and hyphens."
            yield f"{place}.{key}", f"`{topic}` is not a topic name", fix
    if source.topic is not None and source.topic == source.dlq_topic:
        yield f"{place}.dlq_topic", "dead letters would go back to the topic", "Use another topic."
    if source.iceberg is not None and not _LAKE_TABLE.fullmatch(source.iceberg):
        what = f"`{source.iceberg}` is not of the form schema.table"
        yield f"{place}.iceberg", what, "Write for example silver.orders."


def _alias(place: str, side: str, alias: str) -> Found:
    if not _LOWER.fullmatch(alias):
        yield f"{place}.alias", f"`{alias}` is not an alias", _LOWER_FIX
    taken = {*_OWN_ALIASES.values(), *_PLACEHOLDERS} - {_OWN_ALIASES[side]}
    if alias in taken:
        what = f"`{alias}` stands for something else in conditions"
        yield f"{place}.alias", what, f"Write {_OWN_ALIASES[side]}, or another name."


def _columns(place: str, source: RuleSource) -> Found:
    seen: set[str] = set()
    for name in source.columns:
        pointer, folded = f"{place}.columns.{name}", name.lower()
        if folded in _TAKEN_COLUMNS or folded.startswith(_TAKEN_BEGINNINGS):
            what = f"`{name}` is a name that Headgate uses itself"
            yield pointer, what, "Rename the field where the event is made."
        elif is_odd_name(name):
            what = f"{name!r} has a dot, a quote, `${{` or a control character"
            yield pointer, what, "Rename the field where the event is made."
        elif folded in seen:
            # Spark compares names of columns without regard to case.
            yield pointer, f"`{name}` differs from another column in case only", "Keep one."
        seen.add(folded)


def _event_time(pointer: str, source: RuleSource, name: str) -> Found:
    kind = source.types.get(name)
    if kind is None:
        yield pointer, f"there is no column `{name}`", suggestion(name, source.columns, "columns")
    elif not kind.is_time:
        yield pointer, f"`{name}` is {kind}, not a time", "Declare the column as TIMESTAMP(3)."


def _key(source_place: str, place: str, table: RuleTable, source: RuleSource) -> Found:
    kind = source.types.get(table.pk)
    if kind is None and source.pk_path is None:
        side = source_place.rpartition(".")[2]
        near = suggestion(table.pk, source.columns, "columns")
        what = f"there is no column `{table.pk}` in the source `{side}`"
        yield f"{place}.pk", what, f"{near} Where the key is inside a field, write `pk_path`."
    elif kind is not None and kind.name in {"FLOAT", "DOUBLE"}:
        fix = "Declare it as STRING or DECIMAL."
        yield f"{source_place}.columns.{table.pk}", f"{kind} is not exact enough for a key", fix
    elif kind is not None and source.pk_path is not None and kind.name != "STRING":
        fix = "Declare it as STRING, or leave it out of the columns."
        yield f"{source_place}.columns.{table.pk}", "a key from a path is text", fix


def _pair(place: str, table: RuleTable) -> Found:
    if not table.is_pair:
        return
    first, second = table.sources["onprem"], table.sources["cloud"]
    for key in ("alias", "topic", "iceberg"):
        given = getattr(second, key)
        if given is not None and given == getattr(first, key):
            pointer = f"{place}.sources.cloud.{key}"
            yield pointer, f"both sources have the {key} `{given}`", "Name another."
    kinds = [source.types.get(table.pk) for source in (first, second)]
    if None not in kinds and len({kind.name for kind in kinds if kind}) > 1:
        what = f"the key is {kinds[0]} on-prem and {kinds[1]} in the cloud"
        yield f"{place}.sources.cloud.columns.{table.pk}", what, "Declare both alike."


def _hash(place: str, table: RuleTable) -> Found:
    if table.hash is None:
        if table.is_pair:
            fix = "Add `hash: {onprem_field: …, cloud_field: …}`."
            yield place, "two sources are compared by a hash, and `hash` is missing", fix
        return
    wanted = {"onprem_field": table.hash.onprem_field, "cloud_field": table.hash.cloud_field}
    for key, name in wanted.items():
        side = "cloud" if table.is_pair and key == "cloud_field" else "onprem"
        source = table.sources.get(side, table.first)
        kind, pointer = source.types.get(name), f"{place}.hash.{key}"
        if kind is None:
            what = f"there is no column `{name}` in the source `{side}`"
            yield pointer, what, suggestion(name, source.columns, "columns")
        elif kind.name != "STRING":
            yield pointer, f"`{name}` is {kind}, and a hash is text", "Declare it as STRING."


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
    """A row that a rule finds bad must not look like one on which none holds."""
    clean = "MATCH" if table.is_pair else "VALID"
    for pointer, rules in (("rules", rule_set.rules), (f"{place}.rules", table.rules)):
        for at, rule in enumerate(rules):
            emit = rule.emit
            if emit is not None and emit.dq_status == clean and emit.severity != "INFO":
                what = f"{clean} is the status of rows on which no rule holds"
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
