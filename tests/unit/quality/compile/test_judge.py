"""Rule sets judged: placeholders, defaults, faults with their places, and notes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.rule_files import (
    ONE,
    PAIR,
    load_condition,
    load_faults,
    load_rule,
    load_rule_file,
)

from headgate.errors import DeclarationError
from headgate.quality.compile.resolve import judged, judged_table
from headgate.quality.spec.loader import load_rules

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("{t1}.action = 'DELETE'", "t1.action = 'DELETE'"),
        ("{pk} IS NULL", "t1.customer_id IS NULL"),
        ("{hash_onprem} <> {hash_cloud}", "t1.h1 <> t2.h2"),
        ("{t2}.late AND t1.action = '{t1}'", "t2.late AND t1.action = '{t1}'"),
    ],
)
def test_placeholders_stand_for_names(tmp_path: Path, text: str, sql: str) -> None:
    assert load_condition(tmp_path, f'{{name: a, when: "{text}"}}', pair=True) == sql


def test_with_one_source_names_stand_alone(tmp_path: Path) -> None:
    text = '{name: a, when: "{t1}.total > 1 OR {pk} IS NULL OR {t1}.at > {batch_time}"}'
    found = load_condition(tmp_path, text).replace("`", "")
    assert found == "total > 1 OR order_id IS NULL OR at > session.batch_time"


def test_a_brace_in_a_text_is_a_brace(tmp_path: Path) -> None:
    found = load_condition(tmp_path, "{name: a, when: \"regexp_like(email, '^[a-z]{2}$')\"}")
    assert "{2}" in found


@pytest.mark.parametrize(
    ("text", "what", "fix", "column"),
    [
        ("{t1}.total > 1 AND {t3}.total > 1", "no placeholder {t3}", "{t1}", 20),
        ("{tabel} IS NULL", "no placeholder {tabel}", "Known placeholders", 1),
        ("{t1} IS NULL", "a source, not a value", "{t1}.column", 1),
        ("{hash_onprem} = 'a'", "no placeholder {hash_onprem}", "{batch_time}", 1),
        ("{t1}.total > 1 AND {t1}.totl > 2", "no column `totl`", "`total`", 25),
        ("total > 1 AND reflect('a', 'b') = 'c'", "reflect", "docs/conditions.md", 15),
        ("total > 1 AND java_method('a') = 'c'", "java_method", "", 15),
        ("my_udf(total) > 1", "my_udf", "", 1),
        ("lowr(email) = 'a'", "lowr", "`lower`", 1),
        ("total > (SELECT 1)", "subquery", "Join", None),
        ("total IN (SELECT 1)", "", "", None),
        ("at > now()", "now", "", 6),
        ("total", "not a condition", "Compare", 1),
        ("email > 5", "no type in common", "'5'", 1),
        ("total > 1; DROP TABLE x", "semicolon", "", 10),
        ("total = NULL", "never true", "IS NULL", None),
        ("email RLIKE '(?=a)b'", "", "", None),
        ("total >", "", "", None),
    ],
)
def test_a_fault_in_sql_text_has_its_column(
    tmp_path: Path, text: str, what: str, fix: str, column: int | None
) -> None:
    found = load_faults(tmp_path, f'{{name: a, when: "{text}"}}')
    assert found[0].field == "tables[0].rules[0].when"
    assert found[0].line == 13
    assert what in found[0].what
    assert fix in found[0].fix
    if column:
        assert found[0].column == column
        assert f"at character {column}: " in found[0].sentence()


def test_faults_of_keys_and_of_conditions_are_told_together(tmp_path: Path) -> None:
    found = load_faults(
        tmp_path,
        "{name: a, when: totl > 1}",
        "{name: b, when: total > 1, severity: FATAL}",
        "{name: c, type: range, field: items}",
        "{name: d, when: email > 5}",
    )
    assert [(fault.field, fault.line) for fault in found] == [
        ("tables[0].rules[0].when", 13),
        ("tables[0].rules[1].severity", 14),
        ("tables[0].rules[2]", 15),
        ("tables[0].rules[3].when", 16),
    ]


@pytest.mark.parametrize(
    ("line", "typo", "key"),
    [
        ("pk: order_id", "on_fial: keep", "on_fial"),
        ("event_time: at", "dcc: a", "sources.onprem.dcc"),
    ],
)
def test_an_unknown_key_of_a_table_hides_no_fault_of_its_rules(
    tmp_path: Path, line: str, typo: str, key: str
) -> None:
    indent = " " * (4 if line.startswith("pk") else 8)
    text = ONE.replace(f"{line}\n", f"{line}\n{indent}{typo}\n")
    with pytest.raises(DeclarationError) as caught:
        load_rule_file(tmp_path, f"{text}      - {{name: a, when: totl > 1}}\n")
    fields = [fault.field for fault in caught.value.faults]
    assert fields == [f"tables[0].{key}", "tables[0].rules[0].when"]


def test_a_rule_for_all_tables_is_told_once(tmp_path: Path) -> None:
    second = PAIR.split("tables:\n")[1].split("rules:\n")[0].replace("customer\n", "client\n", 1)
    second = second.replace("t_a", "u_a").replace("t_b", "u_b")
    text = PAIR.replace("rules:\n", f"{second}rules:\n  - {{name: a, when: t1.acton = 'x'}}\n")
    with pytest.raises(DeclarationError) as caught:
        load_rule_file(tmp_path, text)
    assert len(caught.value.faults) == 1


def test_what_a_rule_leaves_out_follows_from_its_severity(tmp_path: Path) -> None:
    rules = [
        load_rule(tmp_path, f"{{name: a, when: total > 1{more}}}")
        for more in ("", ", severity: WARN", ", severity: INFO", ", description: too much")
    ]
    assert [(rule.status, rule.severity, rule.metric, rule.reason) for rule in rules] == [
        ("INVALID", "ERROR", "a", "a"),
        ("QUARANTINE", "WARN", "a", "a"),
        ("INFO", "INFO", "a", "a"),
        ("INVALID", "ERROR", "a", "too much"),
    ]


def test_what_becomes_of_a_bad_row_is_the_rules_word_then_the_tables(tmp_path: Path) -> None:
    text = ONE.replace("    rules:\n", "    on_fail: dead_letter\n    rules:\n")
    text += "      - {name: a, when: total > 1}\n"
    text += "      - {name: b, when: total > 2, severity: WARN}\n"
    text += "      - {name: c, when: items > 3, on_fail: stop}\n"
    rules = load_rule_file(tmp_path, text).tables[0].rules
    assert [rule.on_fail for rule in rules] == ["dead_letter", "keep", "stop"]


def test_rules_for_all_tables_come_before_a_tables_own(tmp_path: Path) -> None:
    text = (
        ONE + "      - {name: own, when: total > 1}\nrules:\n  - {name: all, when: '{pk} = \"\"'}\n"
    )
    assert [rule.name for rule in load_rule_file(tmp_path, text).tables[0].rules] == ["all", "own"]


def test_a_rule_that_can_never_hold_is_refused(tmp_path: Path) -> None:
    (fault,) = load_faults(tmp_path, "{name: a, when: total > 5 AND total < 3}")
    assert fault.field == "tables[0].rules[0]"
    assert "can match no row" in fault.what


def test_a_part_that_its_type_makes_impossible_is_refused(tmp_path: Path) -> None:
    (fault,) = load_faults(tmp_path, "{name: a, when: items > 3000000000 OR total > 5}")
    assert "decides nothing" in fault.what


@pytest.mark.parametrize(
    "rule",
    [
        "type: required, field: order_id",
        "when: '{pk} IS NULL'",
        "when: '{pk} IS NULL AND total > 5'",
        "when: 'coalesce(order_id, email) IS NULL'",
        "when: 'coalesce(items, 0) IS NULL'",
        "when: 'items % 2 = 3'",
        "when: 'items % -2 < -1'",
        "when: upper(email) = 'abc'",
        "when: \"lower(email) IN ('A', 'bC') AND total > 1\"",
        "type: timestamp_freshness, field: at, max_age_seconds: 999999999999999",
    ],
)
def test_a_rule_that_no_row_can_fail_is_refused(tmp_path: Path, rule: str) -> None:
    (fault,) = load_faults(tmp_path, f"{{name: a, {rule}}}")
    assert "can match no row" in fault.what or "could never match" in fault.what
    if "order_id" in rule or "pk" in rule:
        assert "dq_missing_pk" in fault.what or "there is a value" in fault.what


def test_the_key_of_a_table_of_the_lake_is_never_missing_either(tmp_path: Path) -> None:
    text = ONE.replace("topic: orders.raw", "iceberg: silver.orders")
    with pytest.raises(DeclarationError) as caught:
        load_rule_file(tmp_path, f"{text}      - {{name: a, type: required, field: order_id}}\n")
    assert "dq_missing_pk" in caught.value.faults[0].what


def test_a_key_of_a_pair_may_be_missing(tmp_path: Path) -> None:
    assert load_condition(tmp_path, '{name: a, when: "{pk} IS NULL"}', pair=True)


@pytest.mark.parametrize(
    "rule",
    [
        "type: required, fields: [order_id, total]",
        "type: lookup_in, field: order_id, values: [a], null_handling: fail",
        "when: '{pk} IS NOT NULL AND total > 5'",
    ],
)
def test_a_question_for_the_key_beside_others_is_a_note(tmp_path: Path, rule: str) -> None:
    (note,) = load_rule_file(tmp_path, f"{ONE}      - {{name: a, {rule}}}\n").notes
    assert "`order_id IS NULL` is true of no row" in note.what
    assert "dq_missing_pk" in note.what


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (["total > 5", "total > 5"], "exactly the rows"),
        (["total > 5", "total > 7"], "never gives a row its status"),
        (["total > 7", "total > 5"], "matches too"),
        (["email IS NULL OR email IS NOT NULL"], "matches every row"),
    ],
)
def test_what_is_hardly_meant_is_a_note(tmp_path: Path, rules: list[str], said: str) -> None:
    lines = [f"      - {{name: r{at}, when: '{rule}'}}\n" for at, rule in enumerate(rules)]
    found = load_rule_file(tmp_path, ONE + "".join(lines))
    assert len(found.tables[0].rules) == len(rules)
    assert said in found.notes[0].what


@pytest.mark.parametrize(
    ("aggregate", "key", "what"),
    [
        ("measure: sum, field: totl, min: 1", "field", "no column `totl`"),
        ("measure: sum, field: email, min: 1", "field", "needs numbers"),
        ("measure: quantile, quantile: 0.5, field: at, min: 1", "field", "needs numbers"),
        ("measure: freshness, field: total, max: 1", "field", "needs a time"),
        ("measure: row_count, min: 2, group_by: [itms]", "group_by[0]", "no column `itms`"),
        ("measure: row_count, min: 1", "min", "a window without rows has no verdict"),
        ("measure: row_count, min: 1, group_by: [items]", "min", "never below 1"),
        ("measure: row_count, min: 0", "min", "never below 1"),
        ("measure: null_rate, field: total, max: 1", "max", "never above 1"),
        ("measure: null_rate, field: total, min: 0", "min", "never below 0"),
        ("measure: null_rate, field: total, min: 0, max: 1", "min", "never below 0"),
        ("measure: distinct_count, field: total, min: -3", "min", "never below 0"),
        ("measure: freshness, field: at, min: -9.0e+10", "min", "never below"),
        ("measure: freshness, max: 9.0e+15", "max", "never above"),
        ("measure: quantile, quantile: 0.5, field: items, max: 3000000000", "max", "`items`"),
        ("measure: quantile, quantile: 0.5, field: price, min: -1.0e+9", "min", "`price`"),
        ("measure: sum, field: total, min: -1.0e+999", "min", "too large"),
    ],
)
def test_aggregates_are_held_against_columns(
    tmp_path: Path, aggregate: str, key: str, what: str
) -> None:
    text = f"{ONE.replace('    rules:', '    aggregates:')}      - {{name: a, {aggregate}}}\n"
    with pytest.raises(DeclarationError) as caught:
        load_rule_file(tmp_path, text)
    assert caught.value.faults[0].field == f"tables[0].aggregates[0].{key}"
    assert what in caught.value.faults[0].what


@pytest.mark.parametrize(
    "aggregate",
    [
        "measure: row_count, min: 2",
        "measure: row_count, max: 0",
        "measure: null_rate, field: total, max: 0.99",
        "measure: distinct_count, field: total, min: 1",
        "measure: freshness, max: 315360000",
        "measure: freshness, min: -60, max: 60",
        "measure: quantile, quantile: 0.5, field: items, max: 2000000000",
        "measure: sum, field: items, min: 0",
    ],
)
def test_limits_that_a_value_can_pass_are_accepted(tmp_path: Path, aggregate: str) -> None:
    text = f"{ONE.replace('    rules:', '    aggregates:')}      - {{name: a, {aggregate}}}\n"
    found = load_rule_file(tmp_path, text)
    assert len(found.tables[0].aggregates) == 1
    assert found.notes == ()


def test_an_idle_limit_beside_another_is_a_note(tmp_path: Path) -> None:
    aggregate = "{name: a, measure: null_rate, field: total, min: 0, max: 0.5}"
    found = load_rule_file(
        tmp_path, f"{ONE.replace('    rules:', '    aggregates:')}      - {aggregate}\n"
    )
    assert [note.field for note in found.notes] == ["tables[0].aggregates[0].min"]


@pytest.mark.parametrize(
    ("aggregate", "key"),
    [
        ("measure: sum, field: total, min: 1", "field"),
        ("measure: quantile, quantile: 0.5, field: total, max: 1", "field"),
        ("measure: distinct_count, field: total, min: 1", "field"),
        ("measure: freshness, field: at, max: 60", "field"),
        ("measure: freshness, max: 60", "measure"),
        ("measure: null_rate, field: total, max: 0.5", ""),
        ("measure: freshness, field: until, max: 60", ""),
    ],
)
def test_what_is_sensitive_is_told_to_no_sink(tmp_path: Path, aggregate: str, key: str) -> None:
    text = ONE.replace("    rules:", "    aggregates:").replace(
        "total: DOUBLE", "total: {type: DOUBLE, sensitive: true}"
    )
    text = text.replace("at: TIMESTAMP(3),", "at: {type: TIMESTAMP(3), sensitive: true},")
    text += f"      - {{name: a, {aggregate}}}\n"
    if not key:
        assert len(load_rule_file(tmp_path, text).tables[0].aggregates) == 1
        return
    with pytest.raises(DeclarationError) as caught:
        load_rule_file(tmp_path, text)
    (fault,) = caught.value.faults
    assert fault.field == f"tables[0].aggregates[0].{key}"
    assert "sensitive" in fault.what
    assert "null_rate" in fault.fix


def test_groups_are_no_sensitive_columns(tmp_path: Path) -> None:
    text = ONE.replace("email: STRING", "email: {type: STRING, sensitive: true}")
    text = text.replace("    rules:", "    aggregates:")
    with pytest.raises(DeclarationError, match="one fault"):
        load_rule_file(
            tmp_path, f"{text}      - {{name: a, measure: row_count, min: 2, group_by: [email]}}\n"
        )


def test_an_aggregate_is_of_one_source(tmp_path: Path) -> None:
    text = PAIR.replace("rules:", "aggregates:")
    with pytest.raises(DeclarationError, match="one fault"):
        load_rule_file(tmp_path, f"{text}  - {{name: a, measure: row_count, min: 2}}\n")


def test_a_key_by_a_path_is_a_column_of_text(tmp_path: Path) -> None:
    text = ONE.replace("pk: order_id", "pk: key").replace("table:", "pk_path: a.b\n        table:")
    types = (
        load_rule_file(tmp_path, f"{text}      - {{name: a, when: key = 'x'}}\n").tables[0].types
    )
    assert str(types["key"]) == "STRING"


def test_the_shipped_rule_sets_have_neither_faults_nor_notes() -> None:
    declared = load_rules(ROOT / "rules.yaml", {})
    tables = judged(declared)
    assert [table.table.name for table in tables] == ["customer", "orders"]
    assert judged_table(declared, declared.value.tables[1]) == tables[1]
    path = ROOT / "rules" / "taxi.yml"
    one = judged(load_rules(path, {"TOPIC": "x"}))[0]
    assert 15 <= len(one.rules) <= 25
    assert {aggregate.measure for aggregate in one.aggregates} == {
        "row_count",
        "null_rate",
        "freshness",
        "distinct_count",
        "sum",
        "quantile",
    }


def test_the_order_of_the_shipped_rules_is_that_of_the_documents() -> None:
    table = judged(load_rules(ROOT / "rules.yaml", {}))[0]
    assert [(rule.status, rule.metric, rule.severity) for rule in table.rules] == [
        ("DELETE_EVENT", "delete_count", "INFO"),
        ("MISSING_ONPREM", "missing_onprem", "WARN"),
        ("MISSING_CLOUD", "missing_cloud", "ERROR"),
        ("INVALID_HASH", "invalid_hash", "ERROR"),
        ("MISMATCH", "hash_mismatch", "ERROR"),
    ]
