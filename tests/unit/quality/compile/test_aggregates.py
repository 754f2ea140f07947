"""What an aggregate measures is written beside what it measured, and only like is added to like."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.rule_tables import compile_script, load_rule_table

from headgate.quality.compile.resolve import JudgedTable, load_judged


def aggregated(folder: Path, aggregate: str) -> JudgedTable:
    """The table with one aggregate of this form."""
    load_rule_table(folder, '{name: negative, when: "amount < 0"}')
    path = folder / "rules.yml"
    path.write_text(f"{path.read_text()}    aggregates: [{{name: one, {aggregate}}}]\n")
    return load_judged(path, {}).tables[0]


def measured(folder: Path, aggregate: str) -> str:
    """What the partials say, which is what the verdicts ask for."""
    found = compile_script(aggregated(folder, aggregate))
    (verdicts,) = [sql for sql in found.named("reading") if ".dq_aggregates_things AS" in sql]
    said = (
        found.view("dq_aggregate_partials_things").partition("struct('one', '")[2].partition("'")[0]
    )
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


def test_a_verdict_has_its_name_from_the_limits(tmp_path: Path) -> None:
    """The partials have a name, a metric and a severity as well: without its table, a name is ambiguous."""
    aggregate = "measure: quantile, field: amount, quantile: 0.5, max: 9"
    (verdicts,) = compile_script(aggregated(tmp_path, aggregate)).named("reading")
    merged = verdicts[verdicts.rindex("SELECT") :]
    for column in ("name", "severity"):
        assert re.findall(rf"(?<!limits\.)(?<!partial\.)\b{column}\b", merged) == [column]
        assert "AS limits (name, measured, measure, severity, min, max)" in merged


def test_sketches_of_another_measure_are_left_out_of_a_merge(tmp_path: Path) -> None:
    for aggregate, own in (
        ("measure: quantile, field: amount, quantile: 0.5, max: 9", "limits.name = 'one'"),
        ("measure: distinct_count, field: amount, max: 9", "measure = 'distinct_count'"),
    ):
        (verdicts,) = compile_script(aggregated(tmp_path, aggregate)).named("reading")
        merges = re.findall(
            r"(?:kll_merge_agg_double|theta_union_agg)\(sketch, \d+\) (.+?\))", verdicts
        )
        assert set(merges) == {f"FILTER (WHERE {own})"}
