"""Typed rules and the conditions that they are short for."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.rule_files import load_condition, load_faults, load_rule

REGEX = "type: regex, field: email, pattern: '^a+$'"


@pytest.mark.parametrize(
    ("rule", "sql"),
    [
        ("type: required, field: email", "email IS NULL"),
        ("type: required, fields: [email, at]", "email IS NULL OR `at` IS NULL"),
        ("type: required, field: email, null_handling: fail", "email IS NULL"),
        ("type: range, field: total, min: 0", "total < 0"),
        ("type: range, field: total, max: 9.5", "total > 9.5"),
        ("type: range, field: total, min: -1, max: 1e3", "total < -1 OR total > 1000.0"),
        (
            "type: range, field: total, min: 0, null_handling: fail",
            "total < 0 OR total IS NULL",
        ),
        ("type: range, field: total, min: 0, null_handling: skip", "total < 0"),
        ("type: range, field: day, min: 2024-01-01", "day < DATE '2024-01-01'"),
        (
            "type: range, field: at, max: 2024-01-31 12:00",
            "`at` > TIMESTAMP_LTZ '2024-01-31 12:00:00Z'",
        ),
        ("type: threshold, field: items, max: 9", "items > 9"),
        (REGEX, r"NOT regexp_like(email, '^a+\\z')"),
        (f"{REGEX}, null_handling: fail", r"NOT regexp_like(email, '^a+\\z') OR email IS NULL"),
        (f"{REGEX}, null_handling: skip", r"NOT regexp_like(email, '^a+\\z')"),
        (
            "type: timestamp_freshness, field: at",
            "try_subtract(unix_timestamp(session.batch_time), unix_timestamp(`at`)) > 86400",
        ),
        (
            "type: timestamp_freshness, field: at, max_age_seconds: 60, null_handling: fail",
            "try_subtract(unix_timestamp(session.batch_time), unix_timestamp(`at`)) > 60 "
            "OR `at` IS NULL",
        ),
        ("type: cross_field, left: at, op: <=, right: until", "NOT (`at` <= until)"),
        ("type: cross_field, left: items, op: ==, right: total", "NOT (items = total)"),
        (
            "type: cross_field, left: at, op: '!=', right: until, null_handling: fail",
            "NOT (`at` <> until) OR `at` IS NULL OR until IS NULL",
        ),
        ("type: lookup_in, field: email, values: [a, b, a]", "email NOT IN ('a', 'b')"),
        (
            "type: lookup_in, field: items, values: [1, -2], null_handling: fail",
            "items NOT IN (1, -2) OR items IS NULL",
        ),
        ("type: lookup_not_in, field: paid, values: [false]", "paid IN (FALSE)"),
        ("type: lookup_not_in, field: email, values: [x], null_handling: fail", None),
        ("type: custom_sql, sql: 'total > 1 AND {pk} IS NOT NULL'", None),
        ("type: schema", "_missing IS NOT NULL OR _extra IS NOT NULL"),
        ("type: schema, allow_unknown: true", "_missing IS NOT NULL"),
    ],
)
def test_a_short_form_is_a_condition_that_holds_on_bad_rows(
    tmp_path: Path, rule: str, sql: str | None
) -> None:
    found = load_condition(tmp_path, f"{{name: a, {rule}}}").replace("`at`", "at").replace("`", "")
    special = {
        "type: custom_sql, sql: 'total > 1 AND {pk} IS NOT NULL'": "total > 1 AND order_id "
        "IS NOT NULL",
        "type: lookup_not_in, field: email, values: [x], null_handling: fail": "email IN ('x') "
        "OR email IS NULL",
    }
    assert found == (sql or special[rule]).replace("`", "")


@pytest.mark.parametrize(
    ("rule", "key", "what", "fix"),
    [
        ("type: required, fields: [emial, at, on]", "fields[0]", "`emial`", "`email`"),
        ("type: range, field: totl, min: 1", "field", "no column `totl`", "`total`"),
        ("type: range, field: email, min: 1", "min", "no type in common", "quotes: '1'"),
        ("type: range, field: total, min: a", "min", "no type in common", "Write a number"),
        ("type: range, field: day, min: 1", "min", "no type in common", ""),
        ("type: range, field: day, min: 2024-31-01", "min", "not a date", "2024-01-31"),
        ("type: range, field: at, max: soon", "max", "not a time", "2024-01-31"),
        ("type: range, field: paid, min: 1", "min", "no type in common", "TRUE or FALSE"),
        ("type: range, field: day, min: 2024-02-01, max: 2024-01-01", "max", "below", "Swap"),
        ("type: regex, field: total, pattern: a", "pattern", "needs text", ""),
        ("type: regex, field: email, pattern: '(a)\\1'", "pattern", "", ""),
        ("type: regex, field: email, pattern: '(a'", "pattern", "", ""),
        ("type: regex, field: email, pattern: '(?=a)'", "pattern", "", ""),
        ("type: timestamp_freshness, field: email", "field", "not a time", "TIMESTAMP(3)"),
        ("type: cross_field, left: at, op: <, right: total", "right", "in common", ""),
        ("type: cross_field, left: at, op: <, right: utnil", "right", "`utnil`", "`until`"),
        ("type: lookup_in, field: items, values: [a]", "values", "no type in common", "number"),
        ("type: lookup_in, field: email, values: [1]", "values", "no type in common", "'1'"),
        ("type: custom_sql, sql: total > totl", "sql", "`totl`", "`total`"),
        ("type: unique, fields: [email, itms]", "fields[1]", "`itms`", "`items`"),
    ],
)
def test_what_does_not_fit_is_told_at_its_key(
    tmp_path: Path, rule: str, key: str, what: str, fix: str
) -> None:
    found = load_faults(tmp_path, f"{{name: a, {rule}}}")
    assert found[0].field == f"tables[0].rules[0].{key}"
    assert what in found[0].what
    assert fix in found[0].fix
    assert found[0].line == 13


def test_all_unknown_fields_of_a_rule_are_told(tmp_path: Path) -> None:
    found = load_faults(tmp_path, "{name: a, type: required, fields: [emial, at, itms]}")
    assert [fault.field for fault in found] == [
        "tables[0].rules[0].fields[0]",
        "tables[0].rules[0].fields[2]",
    ]


def test_a_limit_that_no_value_can_pass_is_a_fault(tmp_path: Path) -> None:
    (fault,) = load_faults(tmp_path, "{name: a, type: range, field: items, max: 3000000000}")
    assert "can match no row" in fault.what


def test_a_unique_rule_has_fields_and_a_horizon(tmp_path: Path) -> None:
    rule = load_rule(tmp_path, "{name: a, type: unique, fields: [order_id, at], horizon: 2 HOURS}")
    assert rule.condition is None
    assert rule.unique is not None
    assert rule.unique.fields == ("order_id", "at")
    assert rule.unique.horizon == timedelta(hours=2)
    default = load_rule(tmp_path, "{name: a, type: unique, field: order_id}").unique
    assert default is not None
    assert default.horizon == timedelta(days=1)


def test_of_two_sources_a_field_is_named_with_its_alias_where_both_have_it(tmp_path: Path) -> None:
    plain = load_condition(tmp_path, "{name: a, type: required, field: action}", pair=True)
    named = load_condition(tmp_path, "{name: a, type: required, field: t2.customer_id}", pair=True)
    braces = load_condition(tmp_path, '{name: a, type: required, field: "{t1}.action"}', pair=True)
    assert plain == braces == "t1.action IS NULL"
    assert named == "t2.customer_id IS NULL"
    (fault,) = load_faults(tmp_path, "{name: a, type: required, field: customer_id}", pair=True)
    assert fault.fix == "Write t1.customer_id or t2.customer_id."


@pytest.mark.parametrize("rule", ["type: unique, field: action", "type: schema"])
def test_two_sources_have_no_such_rule(tmp_path: Path, rule: str) -> None:
    (fault,) = load_faults(tmp_path, f"{{name: a, {rule}}}", pair=True)
    assert fault.field == "rules[0].type"
