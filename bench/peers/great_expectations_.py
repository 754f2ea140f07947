"""Great Expectations: a suite; counts per expectation and samples of what it did not expect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import great_expectations as gx
from great_expectations import expectations as gxe
from pyspark.sql import DataFrame, SparkSession
from rule_task import Rule, Task, measure_peer


def expectation(rule: Rule) -> Any:
    told = {"column": rule.column, "meta": {"rule": rule.name}}
    if rule.kind == "not_null":
        return gxe.ExpectColumnValuesToNotBeNull(**told)
    if rule.kind == "range":
        return gxe.ExpectColumnValuesToBeBetween(**told, min_value=rule.low, max_value=rule.high)
    if rule.kind == "in":
        return gxe.ExpectColumnValuesToBeInSet(**told, value_set=list(rule.values))
    return gxe.ExpectColumnValuesToMatchRegex(**told, regex=rule.pattern)


def counts(session: SparkSession, task: Task, source: DataFrame) -> Mapping[str, int]:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_spark("rows").add_dataframe_asset("judged")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": source})
    suite = gx.ExpectationSuite("rules", [expectation(rule) for rule in task.rules])
    found = batch.validate(suite, result_format="SUMMARY").results
    values = {r.expectation_config.meta["rule"]: int(r.result["unexpected_count"]) for r in found}
    return {name: n for name, n in values.items() if n}


measure_peer("great-expectations", counts)
