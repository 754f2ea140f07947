"""Windowed metrics: one column for each metric, and the totals of the three severities."""

from __future__ import annotations

from headgate.conditions.expr_literals import spark_identifier, spark_literal
from headgate.core.sql.statement import Section, select, view
from headgate.quality.compile.model import JudgedTable
from headgate.quality.compile.names import Names
from headgate.quality.compile.source import topic_literal
from headgate.quality.compile.verdicts import all_rules
from headgate.quality.spec.rule_set import SEVERITIES

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
