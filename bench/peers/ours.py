"""Ours: the rules as a rule set, compiled, its results written as the others write theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pyspark.sql import DataFrame, SparkSession
from rule_task import Rule, Task, measure_peer

from headgate.core.runtime.java_build import EXTENSION, functions_jar
from headgate.core.sql.script import parse_rule_script
from headgate.declarations.errors import Declared
from headgate.quality.compile.file import compile_table
from headgate.quality.compile.resolve import judged
from headgate.quality.spec.rule_set import RuleSet

TABLE = "peer"
TYPES = {"not_null": "BIGINT", "range": "DOUBLE", "in": "STRING", "regex": "STRING"}


def declared(task: Task) -> Declared[RuleSet]:
    # A column's first rule tells its type.
    columns = {rule.column: TYPES[rule.kind] for rule in reversed(task.rules)}
    source = {"iceberg": "bench.rows", "table": "rows", "columns": columns}
    # The last column is never NULL: a row without a key would be no row to judge.
    table = {"name": TABLE, "pk": max(columns), "sources": {"onprem": source}}
    plain = {"version": 2, "tables": [table], "rules": [rule_of(rule) for rule in task.rules]}
    return Declared(TypeAdapter(RuleSet).validate_python(plain), "peers", {})


def rule_of(rule: Rule) -> dict[str, Any]:
    told: dict[str, Any] = {"name": rule.name, "field": rule.column}
    if rule.kind == "not_null":
        return {**told, "type": "required"}
    if rule.kind == "range":
        return {**told, "type": "range", "min": rule.low, "max": rule.high}
    if rule.kind == "in":
        return {**told, "type": "lookup_in", "values": list(rule.values)}
    return {**told, "type": "regex", "pattern": rule.pattern}


def rows(session: SparkSession, task: Task, source: DataFrame) -> DataFrame:
    compiled = compile_table(judged(declared(task))[0], "peers")
    script = parse_rule_script(compiled.file, compiled.text, ["rows_source"])
    session.conf.set("spark.sql.codegen.hugeMethodLimit", "8000")
    source.createOrReplaceTempView("rows_source")
    for step in ("clock", "view"):
        for statement in script.named(step):
            session.sql(statement)
    return session.table(f"dq_results_{TABLE}")


def counts(session: SparkSession, task: Task, judged: DataFrame) -> Mapping[str, int]:
    held = judged.selectExpr("explode(dq_rules) AS name").groupBy("name").count()
    return {row["name"]: row["count"] for row in held.collect()}


FUNCTIONS = {"spark.sql.extensions": EXTENSION, "spark.jars": str(functions_jar())}
measure_peer("headgate", counts, rows, FUNCTIONS)
