"""DQX: its check compare_datasets, in the quicker form that it recommends for unique keys."""

from __future__ import annotations

import json
from collections import Counter
from unittest.mock import create_autospec

from databricks.labs.dqx.engine import DQEngineCore
from databricks.sdk import WorkspaceClient
from pyspark.sql import DataFrame, SparkSession
from table_task import KEY, Difference, measure_peer

ARGUMENTS = {
    "columns": [KEY],
    "ref_columns": [KEY],
    "ref_df_name": "other",
    "check_missing_records": True,
    "raise_on_duplicate_keys": True,
}
CHECK = {
    "name": "same",
    "criticality": "error",
    "check": {"function": "compare_datasets", "arguments": ARGUMENTS},
}


def compare(session: SparkSession, left: DataFrame, right: DataFrame) -> Difference:
    # The engine asks its workspace for nothing here; without an account there is none to give.
    engine = DQEngineCore(workspace_client=create_autospec(WorkspaceClient), spark=session)
    judged = engine.apply_checks_by_metadata(left, [CHECK], ref_dfs={"other": right})
    found = judged.where("_errors IS NOT NULL").selectExpr("explode(_errors.message) AS told")
    messages = [json.loads(row["told"]) for row in found.collect()]
    columns = Counter(name for message in messages for name in message.get("changed", {}))
    return Difference(len(messages), dict(columns))


measure_peer("databricks-labs-dqx", compare)
