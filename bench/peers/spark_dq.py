"""sparkdq: a check set, errors of each row in an array column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from rule_task import Rule, Task, measure_peer
from sparkdq.engine import BatchDQEngine
from sparkdq.management import CheckSet


def check(rule: Rule) -> dict[str, Any]:
    return {"check-id": rule.name, **_CHECKS[rule.kind](rule)}


_CHECKS = {
    "not_null": lambda rule: {"check": "null-check", "columns": [rule.column]},
    "range": lambda rule: {
        "check": "numeric-between-check",
        "columns": [rule.column],
        "min-value": rule.low,
        "max-value": rule.high,
        "inclusive": [True, True],
    },
    "in": lambda rule: {
        "check": "is-contained-in-check",
        "allowed-values": {rule.column: list(rule.values)},
    },
    "regex": lambda rule: {
        "check": "regex-match-check",
        "column": rule.column,
        "pattern": rule.pattern,
    },
}


def rows(session: SparkSession, task: Task, source: DataFrame) -> DataFrame:
    checks = CheckSet()
    checks.add_checks_from_dicts([check(rule) for rule in task.rules])
    return BatchDQEngine(checks).run_batch(source).df


def counts(session: SparkSession, task: Task, judged: DataFrame) -> Mapping[str, int]:
    exploded = judged.selectExpr("explode(_dq_errors.`check-id`) AS name")
    return {row["name"]: row["count"] for row in exploded.groupBy("name").count().collect()}


measure_peer("sparkdq", counts, rows)
