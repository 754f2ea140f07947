"""Aggregate rules: what each batch adds to a window, and the verdict over all that was added.

Counts and sums add up. Distinct values and quantiles are kept as sketches that merge: the theta
sketch is exact up to 4,096 values and then within some 3 %, the KLL sketch up to some 800 and then
within half a per cent of the rank.

A partial says what it measured (`metric`): a revision may measure something else under the same name,
and what was measured otherwise is never merged with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.compile.fragments import call, lines
from headgate.compile.rules.metrics import dimensions
from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.names import Names
from headgate.compile.rules.source import Source, window_start
from headgate.compile.rules.statement import case, nested, select, view
from headgate.compile.rules.unique import TIME_OPTIONS
from headgate.expr.literals import spark_identifier, spark_literal
from headgate.spec.ruleset import Aggregate

QUANTILE_SIZE = 800
DISTINCT_SIZE = 12  # the logarithm of 4,096
PARTIALS = (
    "window_start", "env", "dc", "table_name", "topic_name", "kind", "name", "metric", "severity",
    "grp", "n", "held", "total", "nulls", "sketch", "newest", "late", "revision", "range",
    "batch_time",
)  # fmt: skip
_NO = {"total": "DOUBLE", "nulls": "BIGINT", "sketch": "BINARY"}


def partials_tail(judged: JudgedTable) -> list[str]:
    """The columns that every partial ends with."""
    seconds = int(judged.rule_set.metrics.window.total_seconds())
    end = f"timestamp_seconds(unix_seconds(window_start) + {seconds})"
    return [
        f"coalesce({end} <= session.closed_before, FALSE) AS late",
        "session.batch_revision AS revision",
        "session.batch_range AS range",
        "session.batch_time AS batch_time",
    ]


def aggregate_statements(judged: JudgedTable, source: Source) -> list[str]:
    """The partials of this batch, and the verdicts over them."""
    if not judged.aggregates:
        return []
    names = Names(judged.table.name)
    groups = dict.fromkeys(aggregate.group_by for aggregate in judged.aggregates)
    queries = [
        _partials(judged, source, group, [a for a in judged.aggregates if a.group_by == group])
        for group in groups
    ]
    words = (
        "What these rows add to the measures of each window; one row for each measure and group."
    )
    verdicts = verdict_query(judged, source, names.aggregate_partials)
    said = "The measures held against their limits, one row for each verdict."
    return [
        view(names.aggregate_partials, words, "\nUNION ALL\n".join(queries)),
        view(names.aggregates, said, verdicts),
    ]


def _partials(
    judged: JudgedTable, source: Source, group: tuple[str, ...], found: Sequence[Aggregate]
) -> str:
    columns = [spark_identifier(name) for name in group]
    window = window_start("_at", judged.rule_set.metrics.window)
    started = select(
        ["*", f"{source.at()} AS _at", f"{window} AS window_start"],
        f"FROM {source.names.rows}",
    )
    measured = select(
        ["window_start", f"{_group_text(group)} AS grp", "count(*) AS n",
         f"max({'window_start' if source.hides_time else '_at'}) AS newest",
         f"{call('array', [_measured(a, source) for a in found])} AS _measures"],
        f"FROM {nested(started)}",
        f"GROUP BY {', '.join(['window_start', *columns])}",
    )  # fmt: skip
    told = [f"{literal} AS {name}" for name, literal in dimensions(judged).items()]
    return select(
        ["window_start", *told, "'aggregate' AS kind", "name", "metric", "severity", "grp", "n",
         "CAST(NULL AS BIGINT) AS held", *_NO, "newest", *partials_tail(judged)],
        f"FROM {nested(measured)}",
        f"LATERAL VIEW inline(_measures) measure AS name, metric, severity, {', '.join(_NO)}",
    )  # fmt: skip


def _group_text(group: tuple[str, ...]) -> str:
    if not group:
        return "CAST(NULL AS STRING)"
    pairs = [f"{spark_literal(name)}, {spark_identifier(name)}" for name in group]
    given = TIME_OPTIONS.replace("map(", "map('ignoreNullFields', 'false', ")
    return call("to_json", [call("named_struct", pairs), given])


def _measured(aggregate: Aggregate, source: Source) -> str:
    values = {name: f"CAST(NULL AS {kind})" for name, kind in _NO.items()}
    values |= _own_values(aggregate, source)
    pairs = [
        f"'name', {spark_literal(aggregate.name)}",
        f"'metric', {spark_literal(measurement(aggregate, source))}",
        f"'severity', {spark_literal(aggregate.severity)}",
        *(f"'{name}', {value}" for name, value in values.items()),
    ]
    return call("named_struct", pairs)


def measurement(aggregate: Aggregate, source: Source) -> str:
    """What is measured: partials are merged where this is the same. Limits and rank may change."""
    name = aggregate.field
    if name is None and aggregate.measure == "freshness":
        name = source.declared.event_time
    of = spark_identifier(name) if name else ""
    if name and aggregate.measure == "distinct_count":
        of = f"{of} {source.types[name]}"  # equal values of two types have different hashes
    group = ", ".join(spark_identifier(column) for column in aggregate.group_by)
    return f"{aggregate.measure}({of})" + (f" by {group}" if group else "")


def _own_values(aggregate: Aggregate, source: Source) -> dict[str, str]:
    field = spark_identifier(aggregate.field) if aggregate.field else source.at()
    match aggregate.measure:
        case "row_count":
            return {}
        case "freshness":
            # Seconds since the epoch: `newest` is the event time's, whatever the field.
            return {"total": f"CAST(max(unix_micros({field})) AS DOUBLE) / 1000000"}
        case "null_rate":
            return {"nulls": f"count_if({field} IS NULL)"}
        case "sum":
            return {"total": f"sum(CAST({field} AS DOUBLE))"}
        case "distinct_count":
            value = f"IF({field} IS NULL, NULL, xxhash64({field}))"
            return {"sketch": f"theta_sketch_agg({value}, {DISTINCT_SIZE})"}
        case "quantile":
            return {"sketch": f"kll_sketch_agg_double(CAST({field} AS DOUBLE), {QUANTILE_SIZE})"}


def verdict_query(judged: JudgedTable, source: Source, start: str) -> str:
    """Partials merged and held against the limits."""
    rows = _limits(judged, source)
    limits = nested(f"SELECT *\nFROM VALUES\n  {rows}\nAS limits ({_LIMITS})", "limits")
    dims = ", ".join(dimensions(judged))
    place = f"window_start, {dims}, name, measure, grp"
    merged = select(
        [*place.split(", "), "severity", "min", "max", f"{_value(judged)} AS value",
         "bool_or(late) AS late"],
        f"FROM {nested(_joined(start, limits, dims))}",
        f"GROUP BY {place}, severity, min, max",
    )  # fmt: skip
    failed = "coalesce(value < min, FALSE) OR coalesce(value > max, FALSE)"
    judged_ = select(["*", f"{failed} AS failed"], f"FROM {nested(merged)}")
    status = "CASE WHEN value IS NULL THEN 'UNKNOWN' WHEN failed THEN 'INVALID' ELSE 'VALID' END"
    return select(
        [*place.split(", "), "value", "min", "max", f"{status} AS status", "severity", "failed",
         "late"],
        f"FROM {nested(judged_)}",
    )  # fmt: skip


_LIMITS = "name, measured, measure, severity, min, max"


def _joined(start: str, limits: str, dims: str) -> str:
    """Of an aggregate that is no longer declared, or was another, nothing is said."""
    return select(
        ["window_start", dims.replace(", ", ",\n  "), "limits.*", "grp", "n", *_NO, "late",
         "batch_time"],
        f"FROM {start} AS partial",
        f"JOIN {limits} ON limits.name = partial.name AND limits.measured = partial.metric",
        "WHERE kind = 'aggregate'",
    )  # fmt: skip


def _limits(judged: JudgedTable, source: Source) -> str:
    rows = [
        f"({spark_literal(a.name)}, {spark_literal(measurement(a, source))},"
        f" {spark_literal(a.measure)}, {spark_literal(a.severity)}, {_limit(a.min)}, {_limit(a.max)})"
        for a in judged.aggregates
    ]
    return lines(rows).replace("\n", "\n  ")


def _limit(value: float | None) -> str:
    return "CAST(NULL AS DOUBLE)" if value is None else spark_literal(float(value))


def _value(judged: JudgedTable) -> str:
    used = dict.fromkeys(a.measure for a in judged.aggregates if a.measure != "quantile")
    branches = [(f"measure = '{measure}'", _MERGED[measure]) for measure in used]
    quantiles = (a for a in judged.aggregates if a.measure == "quantile")
    branches += [(f"name = {spark_literal(a.name)}", _quantile(a)) for a in quantiles]
    return case(branches)


_DISTINCT = f"theta_union_agg(sketch, {DISTINCT_SIZE}) FILTER (WHERE measure = 'distinct_count')"
_MERGED = {
    "row_count": "CAST(sum(n) AS DOUBLE)",
    "freshness": "CAST(max(unix_micros(batch_time)) AS DOUBLE) / 1000000 - max(total)",
    "null_rate": "sum(nulls) / CAST(sum(n) AS DOUBLE)",
    "sum": "coalesce(sum(total), 0D)",
    "distinct_count": f"CAST(theta_sketch_estimate({_DISTINCT}) AS DOUBLE)",
}


def _quantile(aggregate: Aggregate) -> str:
    mine = f"FILTER (WHERE name = {spark_literal(aggregate.name)})"
    merged = f"kll_merge_agg_double(sketch, {QUANTILE_SIZE}) {mine}"
    rank = spark_literal(float(aggregate.quantile or 0))
    value = f"kll_sketch_get_quantile_double({merged}, {rank})"
    return f"IF(kll_sketch_get_n_double({merged}) > 0, {value}, NULL)"
