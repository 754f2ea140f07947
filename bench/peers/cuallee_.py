"""cuallee: counts per rule; it has no verdict on single rows."""

from __future__ import annotations

from collections.abc import Mapping

from cuallee import Check, CheckLevel
from pyspark.sql import DataFrame, SparkSession
from rule_task import Rule, Task, measure_peer


def add(check: Check, rule: Rule) -> None:
    if rule.kind == "not_null":
        check.is_complete(rule.column)
    elif rule.kind == "range":
        check.is_between(rule.column, (rule.low, rule.high))
    elif rule.kind == "in":
        check.is_contained_in(rule.column, rule.values)
    else:
        check.has_pattern(rule.column, rule.pattern)


def counts(session: SparkSession, task: Task, source: DataFrame) -> Mapping[str, int]:
    check = Check(CheckLevel.ERROR, "rules")
    for rule in task.rules:
        add(check, rule)
    found = sorted(check.validate(source).collect(), key=lambda row: row["id"])
    told = zip(task.rules, found, strict=True)
    return {rule.name: int(row["violations"]) for rule, row in told if row["violations"]}


measure_peer("cuallee", counts)
