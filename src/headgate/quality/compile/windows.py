"""SQL of windows: metrics of each window, the partials that a batch adds to them, and aggregates with limits.

A batch appends partials and never updates a sum: the sum of a window is that of its partials, so a replayed
batch changes nothing and no state is kept between batches.
"""

from __future__ import annotations

import textwrap

from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.core.sql.fragments import filled, hanging
from headgate.core.sql.script import Section, indented, nested, select, statement, view
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.compile.results import all_rules
from headgate.quality.compile.source import Source, topic_literal, window_start
from headgate.quality.compile.tables import VIEWS, Names
from headgate.quality.compile.unique import TIME_OPTIONS
from headgate.quality.spec.rule_set import SEVERITIES, Aggregate

TOTALS = {severity: f"dq_{severity.lower()}_total" for severity in SEVERITIES}


def dimensions(judged: JudgedTable) -> dict[str, str]:
    """What every metric row carries, as literals; they are those of the first source."""
    table = judged.table
    side, source = next(iter(table.sources.items()))
    return {
        "env": spark_literal(judged.rule_set.metadata.env),
        "dc": spark_literal(source.dc),
        "table_name": spark_literal(f"{table.name}_{side}"),
        "topic_name": topic_literal(source.topic or source.iceberg or ""),
    }


def metric_names(judged: JudgedTable) -> tuple[str, ...]:
    """The metrics in the order of the rules, each once."""
    return tuple(dict.fromkeys(rule.metric for rule in all_rules(judged)))


def metric_columns(judged: JudgedTable) -> list[str]:
    """Sums over counts with `name`, `severity` and `n`: of the rules of a metric, and of a severity."""
    namespace = judged.rule_set.metrics.namespace
    rules = {
        name: [r.name for r in all_rules(judged) if r.metric == name]
        for name in metric_names(judged)
    }
    metrics = [
        f"{_sum('name', names)} AS {spark_identifier(f'{namespace}.{name}')}"
        for name, names in rules.items()
    ]
    return [*metrics, *(f"{_sum('severity', [s])} AS {name}" for s, name in TOTALS.items())]


def _sum(column: str, values: list[str]) -> str:
    listed = ", ".join(map(spark_literal, values))
    test = f"= {listed}" if len(values) == 1 else f"IN ({listed})"
    return f"sum(IF({column} {test}, n, 0L))"


def metrics_sections(judged: JudgedTable, names: Names) -> list[Section]:
    counted = select(
        ["window_start", "get(dq_rules, 0) AS name", "dq_severity AS severity", "count(*) AS n"],
        f"FROM {names.results}",
        *(["WHERE settled"] if judged.table.is_pair else []),
        "GROUP BY ALL",
    )
    query = select(
        [
            "window_start",
            *(f"{literal} AS {name}" for name, literal in dimensions(judged).items()),
            *metric_columns(judged),
        ],
        f"FROM {names.counts}",
        "GROUP BY window_start",
    )
    words = (
        "Each settled key counts once, under the first rule that matches it or else under its verdict."
        if judged.table.is_pair
        else "Each row counts once, under the first rule that matches it; a clean row has no name."
    )
    return [
        Section("how many rows each rule decided", [view(names.counts, words, counted)]),
        Section(
            f"{names.metrics}: metrics of each window",
            [view(names.metrics, "The metrics of each window.", query)],
        ),
    ]


# One row stands for all rules and for each that matched; the first place is the row itself.
_MATCHED = "posexplode(concat(array(string(NULL)), coalesce(dq_rules, array())))"


def partials_statements(judged: JudgedTable, names: Names, more: str = "") -> list[str]:
    """What the committed results add to their windows, and `more` partials beside them."""
    seconds = int(judged.rule_set.metrics.window.total_seconds())
    words = (
        "What the committed results add to each window: its rows, and for each rule the rows whose status it"
        " gave (n) and those that it matched (matched)."
    )
    query = " UNION ALL ".join(f"SELECT * FROM {name}" for name in (names.partials, more) if name)
    closed = f"timestamp_seconds(unix_seconds(window_start) + {seconds}) <= session.closed_before"
    columns = [
        "*",
        *(f"{literal} AS {name}" for name, literal in dimensions(judged).items()),
        f"coalesce({closed}, FALSE) AS late",
        "session.batch_revision AS revision",
        "session.batch_range AS range",
        "session.batch_time AS batch_time",
    ]
    insert = f"""INSERT INTO {names.partials_table} BY NAME
SELECT
{textwrap.indent(filled(columns), "  ")}
FROM ({query})"""
    return [
        view(names.partials, words, _partials(judged, names), step="partial view"),
        statement("partials", "The sums of a window are those of its partials.", insert),
    ]


def _partials(judged: JudgedTable, names: Names) -> str:
    rules = [
        f"({', '.join(map(spark_literal, (rule.name, rule.metric, rule.severity)))})"
        for rule in all_rules(judged)
    ]
    known = f"VALUES\n{textwrap.indent(filled(rules), '  ')}\nAS known (name, metric, severity) ON known.name = rule"
    if not rules:
        known = "(SELECT '' AS name, '' AS metric, '' AS severity) AS known ON known.name = rule"
    counted = f"""SELECT window_start, rule, count_if(place <= 1) AS n, count(*) AS matched, max(event_time) AS newest
FROM {names.committed}
LATERAL VIEW {_MATCHED} found AS place, rule
{"WHERE settled" + chr(10) if judged.table.is_pair else ""}GROUP BY window_start, rule"""
    return f"""SELECT
  window_start, IF(rule IS NULL, 'rows', 'rule') AS kind, coalesce(rule, 'rows') AS name, metric, severity,
  string(NULL) AS grp, n, matched, double(NULL) AS total, bigint(NULL) AS nulls, binary(NULL) AS sketch, newest
FROM {nested(counted, "counted")}
LEFT JOIN {known}"""


QUANTILE_SIZE = 800
DISTINCT_SIZE = 12  # the logarithm of 4,096
_MEASURED = {"total": "double", "nulls": "bigint", "sketch": "binary"}
# A measure that is no longer than this has one line.
_ONE_LINE = 133
_LIMITS = "name, measured, measure, severity, min, max"
# An aggregate function is computed for every row, whichever branch it stands in, and sketches of another
# kind would fail it: so each takes its own by FILTER.
_DISTINCT = f"theta_union_agg(sketch, {DISTINCT_SIZE}) FILTER (WHERE measure = 'distinct_count')"
_MERGED = {
    "row_count": "sum(n)",
    "freshness": "double(max(unix_micros(batch_time))) / 1000000 - max(total)",
    "null_rate": "sum(nulls) / double(sum(n))",
    "sum": "coalesce(sum(total), 0D)",
    "distinct_count": f"theta_sketch_estimate({_DISTINCT})",
}


def aggregate_statements(judged: JudgedTable, source: Source) -> list[str]:
    """The partials of this batch, and the verdicts over them."""
    if not judged.aggregates:
        return []
    names = Names(judged.table.name)
    words = "What these rows add to the measures of each window: a row for each measure and group."
    verdicts = (
        f"CREATE OR REPLACE VIEW {VIEWS}.{names.aggregates} AS\n{_verdicts(judged, source, names)}"
    )
    limits = "The measures of all windows and groups against their limits."
    return [
        view(names.aggregate_partials, words, _aggregate_partials(judged, source), step="view"),
        statement("reading", limits, verdicts),
    ]


def _aggregate_partials(judged: JudgedTable, source: Source) -> str:
    """One row for each window, group and measure, in the order of the columns of other partials."""
    values = ", ".join(_MEASURED)
    groups = dict.fromkeys(aggregate.group_by for aggregate in judged.aggregates)
    measured = "\nUNION ALL\n".join(_measured(judged, source, group) for group in groups)
    return f"""WITH measured AS {nested(measured)}
SELECT window_start, 'aggregate' AS kind, name, metric, severity, grp, n, bigint(NULL) AS matched, {values}, newest
FROM measured LATERAL VIEW inline(measures) measure AS name, metric, severity, {values}"""


def _measured(judged: JudgedTable, source: Source, group: tuple[str, ...]) -> str:
    """The measures of one grouping, as one array for each window and group."""
    aggregates = [a for a in judged.aggregates if a.group_by == group]
    measures = [_measure(aggregate, source) for aggregate in aggregates]
    array = f"array(\n{indented(measures)}\n)" if len(measures) > 1 else f"array({measures[0]})"
    window = window_start("_at", judged.rule_set.metrics.window)
    newest = window if source.hides_time else "_at"
    keys = ", ".join(["1", *(spark_identifier(name) for name in group)])
    return f"""SELECT
  {window} AS window_start,
  count(*) AS n, max({newest}) AS newest,
  {_group_text(group)} AS grp,
  {hanging(array)} AS measures
FROM (SELECT *, {source.at()} AS _at FROM {source.names.rows})
GROUP BY {keys}"""


def _group_text(group: tuple[str, ...]) -> str:
    if not group:
        return "string(NULL)"
    columns = ", ".join(map(spark_identifier, group))
    given = TIME_OPTIONS.replace("map(", "map('ignoreNullFields', 'false', ")
    return f"to_json(struct({columns}), {given})"


def _measure(aggregate: Aggregate, source: Source) -> str:
    """Name, what is measured, severity, then what was measured; NULL where the measure has no such thing."""
    own = _own_values(aggregate, source)
    values = ", ".join(own.get(name, f"{kind}(NULL)") for name, kind in _MEASURED.items())
    texts = (aggregate.name, measurement(aggregate, source), aggregate.severity)
    given = ", ".join(map(spark_literal, texts))
    whole = f"struct({given}, {values})"
    return whole if len(whole) <= _ONE_LINE else f"struct({given},\n  {values})"


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
            return {"total": f"double(max(unix_micros({field}))) / 1000000"}
        case "null_rate":
            return {"nulls": f"count_if({field} IS NULL)"}
        case "sum":
            return {"total": f"sum(double({field}))"}
        case "distinct_count":
            value = f"IF({field} IS NULL, NULL, xxhash64({field}))"
            return {"sketch": f"theta_sketch_agg({value}, {DISTINCT_SIZE})"}
        case "quantile":
            return {"sketch": f"kll_sketch_agg_double(double({field}), {QUANTILE_SIZE})"}


def _verdicts(judged: JudgedTable, source: Source, names: Names) -> str:
    """Partials merged and compared with the limits; of an aggregate no longer declared nothing is said."""
    place = ", ".join(["window_start", *dimensions(judged)])
    merged = f"""SELECT
  {place}, limits.name, measure, grp, limits.severity, min, max, bool_or(late) AS late,
{textwrap.indent(_value(judged), "  ")} AS value
FROM {names.partials_table} AS partial
JOIN VALUES
{indented(_limits(judged, source))}
AS limits ({_LIMITS}) ON limits.name = partial.name AND limits.measured = partial.metric
WHERE kind = 'aggregate'
GROUP BY {place}, limits.name, measure, grp, limits.severity, min, max"""
    failed = "coalesce(value < min, FALSE) OR coalesce(value > max, FALSE)"
    status = "CASE WHEN value IS NULL THEN 'UNKNOWN' WHEN failed THEN 'INVALID' ELSE 'VALID' END"
    return f"""SELECT
  {place}, name, measure, grp, value, min, max,
  {status} AS status, severity, failed, late
FROM (SELECT *, {failed} AS failed FROM {nested(merged)})"""


def _limits(judged: JudgedTable, source: Source) -> list[str]:
    return [
        f"({spark_literal(a.name)}, {spark_literal(measurement(a, source))},"
        f" {spark_literal(a.measure)}, {spark_literal(a.severity)}, {_limit(a.min)}, {_limit(a.max)})"
        for a in judged.aggregates
    ]


def _limit(value: float | None) -> str:
    return "double(NULL)" if value is None else spark_literal(float(value))


def _value(judged: JudgedTable) -> str:
    used = dict.fromkeys(a.measure for a in judged.aggregates if a.measure != "quantile")
    branches = [f"  WHEN measure = '{measure}' THEN {_MERGED[measure]}" for measure in used]
    for aggregate in judged.aggregates:
        if aggregate.measure == "quantile":
            branches.append(f"  WHEN {_is(aggregate)} THEN {_quantile(aggregate)}")
    return "\n".join(["double(CASE", *branches, "END)"])


def _is(aggregate: Aggregate) -> str:
    return f"limits.name = {spark_literal(aggregate.name)}"


def _quantile(aggregate: Aggregate) -> str:
    merged = f"kll_merge_agg_double(sketch, {QUANTILE_SIZE}) FILTER (WHERE {_is(aggregate)})"
    rank = spark_literal(float(aggregate.quantile or 0))
    value = f"kll_sketch_get_quantile_double({merged}, {rank})"
    return f"IF(\n    kll_sketch_get_n_double({merged}) > 0,\n    {value}, NULL)"
