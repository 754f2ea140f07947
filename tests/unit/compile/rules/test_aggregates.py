"""What an aggregate measures is written beside what it measured, and only like is added to like."""

from __future__ import annotations

from pathlib import Path

from tests.support.rule_tables import compile_script, load_rule_table

from headgate.compile.rules.judge import load_judged
from headgate.compile.rules.model import JudgedTable


def aggregated(folder: Path, aggregate: str) -> JudgedTable:
    """The table with one aggregate of this form."""
    load_rule_table(folder, '{name: negative, when: "amount < 0"}')
    path = folder / "rules.yml"
    path.write_text(f"{path.read_text()}    aggregates: [{{name: one, {aggregate}}}]\n")
    return load_judged(path, {}).tables[0]


def measured(folder: Path, aggregate: str) -> str:
    """What the partials say, which is what the verdicts ask for."""
    found = compile_script(aggregated(folder, aggregate))
    (partials,) = [
        sql for sql in found.named("view") if "VIEW dq_aggregate_partials_things AS" in sql
    ]
    (verdicts,) = [sql for sql in found.named("reading") if ".dq_aggregates_things AS" in sql]
    said = partials.partition("'metric', '")[2].partition("'")[0]
    assert said
    assert f"('one', '{said}'," in verdicts
    assert "limits.name = partial.name AND limits.measured = partial.metric" in verdicts
    return said


def test_another_measure_field_or_grouping_is_another_measurement(tmp_path: Path) -> None:
    forms = [
        "measure: sum, field: amount, max: 9",
        "measure: sum, field: amount, group_by: [id], max: 9",
        "measure: distinct_count, field: amount, max: 9",
        "measure: distinct_count, field: id, max: 9",
        "measure: quantile, field: amount, quantile: 0.5, max: 9",
        "measure: row_count, min: 3",
        "measure: null_rate, field: amount, max: 0.5",
        "measure: freshness, max: 9",
    ]
    assert [measured(tmp_path, form) for form in forms] == [
        "sum(amount)",
        "sum(amount) by id",
        "distinct_count(amount DOUBLE)",
        "distinct_count(id STRING)",
        "quantile(amount)",
        "row_count()",
        "null_rate(amount)",
        "freshness(`at`)",
    ]


def test_limits_rank_and_severity_are_no_part_of_what_is_measured(tmp_path: Path) -> None:
    first = "measure: quantile, field: amount, quantile: 0.5, max: 9"
    other = "measure: quantile, field: amount, quantile: 0.9, max: 5, severity: WARN"
    assert measured(tmp_path, first) == measured(tmp_path, other)
