"""DQX: checks as metadata, results in two array columns beside each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import create_autospec

from databricks.labs.dqx.engine import DQEngineCore
from databricks.sdk import WorkspaceClient
from pyspark.sql import DataFrame, SparkSession
from rule_task import Rule, Task, measure_peer


def check(rule: Rule) -> dict[str, Any]:
    function, arguments = _CALLS[rule.kind](rule)
    called = {"function": function, "arguments": {"column": rule.column, **arguments}}
    return {"name": rule.name, "criticality": "error", "check": called}


_CALLS = {
    "not_null": lambda rule: ("is_not_null", {}),
    "range": lambda rule: ("is_in_range", {"min_limit": rule.low, "max_limit": rule.high}),
    "in": lambda rule: ("is_in_list", {"allowed": [f"'{value}'" for value in rule.values]}),
    "regex": lambda rule: ("regex_match", {"regex": rule.pattern}),
}


def rows(session: SparkSession, task: Task, source: DataFrame) -> DataFrame:
    # The engine asks its workspace for nothing here; without an account there is none to give.
    engine = DQEngineCore(workspace_client=create_autospec(WorkspaceClient), spark=session)
    return engine.apply_checks_by_metadata(source, [check(rule) for rule in task.rules])


def counts(session: SparkSession, task: Task, judged: DataFrame) -> Mapping[str, int]:
    found = judged.selectExpr("explode(_errors.name) AS name").groupBy("name").count().collect()
    return {row["name"]: row["count"] for row in found}


measure_peer("databricks-labs-dqx", counts, rows)
