"""Soda: counts per check by SQL; it has no verdict on single rows, but samples."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from rule_task import Rule, Task, measure_peer
from soda.scan import Scan


def check(rule: Rule) -> str:
    head = (
        f"missing_count({rule.column})"
        if rule.kind == "not_null"
        else f"invalid_count({rule.column})"
    )
    lines = [f"  - {head} = 0:", f"      name: {rule.name}"]
    if rule.kind == "range":
        lines += [f"      valid min: {rule.low}", f"      valid max: {rule.high}"]
    elif rule.kind == "in":
        lines.append(f"      valid values: {json.dumps(rule.values)}")
    elif rule.kind == "regex":
        lines.append(f"      valid regex: {json.dumps(rule.pattern)}")
    return "\n".join(lines)


def counts(session: SparkSession, task: Task, source: DataFrame) -> Mapping[str, int]:
    source.createOrReplaceTempView("judged")
    scan = Scan()
    scan.set_scan_definition_name("rules")
    scan.set_data_source_name("spark_df")
    scan.add_spark_session(session, data_source_name="spark_df")
    scan.disable_telemetry()
    scan.add_sodacl_yaml_str("checks for judged:\n" + "\n".join(map(check, task.rules)))
    scan.execute()
    found = scan.get_scan_results()["checks"]
    values = {c["name"]: int(c["diagnostics"]["value"]) for c in found}
    return {name: n for name, n in values.items() if n}


measure_peer("soda-core", counts)
