"""cuallee: counts per rule; it has no verdict on single rows."""

from __future__ import annotations

from collections.abc import Mapping

from cuallee import Check, CheckLevel
from played import Rule, Task, play
from pyspark.sql import DataFrame, SparkSession


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
    names: dict[str, list[str]] = {}
    for rule in task.rules:
        before = set(check._rule)
        add(check, rule)
        # Equal rules are one rule to it; the count stands for both.
        for key in set(check._rule) - before:
            names[key] = [rule.name]
    keys = list(check._rule)
    found = check.validate(source).collect()
    return {
        name: int(row["violations"])
        for key, row in zip(keys, sorted(found, key=lambda r: r["id"]), strict=True)
        for name in names[key]
        if row["violations"]
    }


play("cuallee", counts)
