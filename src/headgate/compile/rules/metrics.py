"""Windowed metrics: one column for each metric, and the totals of the three severities."""

from __future__ import annotations

from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.names import Names
from headgate.compile.rules.source import topic_literal
from headgate.compile.rules.statement import nested, select, view
from headgate.compile.rules.verdicts import all_rules
from headgate.expr.literals import spark_identifier, spark_literal
from headgate.spec.ruleset import SEVERITIES

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
    """Sums over rows with `metric`, `severity` and `n`."""
    namespace = judged.rule_set.metrics.namespace
    metrics = [
        f"{_sum('metric', name)} AS {spark_identifier(f'{namespace}.{name}')}"
        for name in metric_names(judged)
    ]
    return [*metrics, *(f"{_sum('severity', s)} AS {name}" for s, name in TOTALS.items())]


def _sum(column: str, value: str) -> str:
    return f"sum(IF({column} = {spark_literal(value)}, n, 0L))"


def metrics_statements(judged: JudgedTable) -> list[str]:
    names = Names(judged.table.name)
    counted = select(
        ["window_start", "get(dq_rules, 0) AS name", "count(*) AS n"],
        f"FROM {names.results}",
        *(["WHERE settled"] if judged.table.reconcile else []),
        "GROUP BY window_start, get(dq_rules, 0)",
    )
    told = [f"{literal} AS {name}" for name, literal in dimensions(judged).items()]
    query = select(
        ["window_start", *told, *metric_columns(judged)],
        f"FROM {nested(counted, 'counted')}",
        f"LEFT JOIN {names.rules} ON {names.rules}.name = counted.name",
        "GROUP BY window_start",
    )
    words = (
        "Metrics of each window: a row counts for the rule that gave its status, once, so that"
        " clean rows and metrics add up to all rows."
    )
    return [view(names.metrics, words, query), _sink(names)]


def _sink(names: Names) -> str:
    words = (
        "Each window as the JSON record that goes to the topic of metrics; no column is left out."
    )
    return view(
        names.metrics_sink, words, f"SELECT to_json(struct(*)) AS value\nFROM {names.metrics}"
    )
