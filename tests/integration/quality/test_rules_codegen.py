"""Judging stays in whole-stage code, in methods that the JIT compiles, whatever the number of rules."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.reconcile_messages import RECORD, START
from tests.support.rule_tables import ROOT, run_views, shipped_table

from headgate.conditions.parser import parse_condition
from headgate.quality.compile.resolve import JudgedRule, JudgedTable
from headgate.quality.spec.loader import rule_files, tables_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Methods that are larger are neither compiled by HotSpot nor used by Spark (hugeMethodLimit).
LARGEST = 8_000
SHIPPED = [name for file in rule_files(ROOT) for name in tables_in(file)]
# A text column of each kind of table: one source, a pair, a reconciled pair.
TEXTS = {"taxi": "store_and_fwd_flag", "customer": "t1.action", "business": "t1.event_id"}
CONDITIONS = {
    "comparisons": "length({column}) > {n} AND {column} <> 'x{n}'",
    "patterns": "NOT regexp_like({column}, '^[a-z]{{1,9}}x{n}$') OR {column} IN ('a', 'b', 'c{n}')",
}


def with_rules(name: str, count: int, condition: str) -> JudgedTable:
    """A shipped table with so many generated rules in place of its own."""
    table, column = shipped_table(name), TEXTS[name]
    aliases = [source.alias for source in table.table.sources.values()]
    rules = [
        JudgedRule(
            name=f"rule_{n}",
            reason=f"why {n}",
            status=f"STATUS_{n}",
            metric=f"metric_{n}",
            severity="ERROR",
            on_fail="keep",
            condition=parse_condition(
                condition.format(column=column, n=n),
                table.types,
                sources=aliases,
            ),
        )
        for n in range(count)
    ]
    return replace(table, rules=tuple(rules))


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """A session whose plans show their stages before they run."""
    found = spark.newSession()
    found.conf.set("spark.sql.adaptive.enabled", "false")
    return found


def create_views(session: SparkSession, table: JudgedTable) -> str:
    """All views of the compiled table over one record; the name of its results."""
    record = (b"k", b"{}", "topic", 0, 0, START, None)
    for source in table.table.sources.values():
        bound = session.createDataFrame([record], RECORD)
        bound.createOrReplaceTempView(f"{source.table}_source")
    run_views(session, table)
    return f"dq_results_{table.table.name}"


def assert_whole(session: SparkSession, query: str) -> None:
    (codegen,) = session.sql(f"EXPLAIN CODEGEN {query}").collect()
    sizes = [int(size) for size in re.findall(r"maxMethodCodeSize:(\d+)", codegen[0])]
    assert sizes
    assert max(sizes) < LARGEST
    java_frame: Any = session.sql(query)._jdf
    plan = str(java_frame.queryExecution().executedPlan().toString())
    assert re.search(r"\*\(\d+\) Project \[", plan)
    outside = [line for line in plan.splitlines() if re.match(r"[ :+-]*Project \[", line)]
    # A reconciled pair reads undeclared fields out of a state's text, which Spark interprets.
    assert [line for line in outside if "from_json(" not in line] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_rules_are_judged_in_whole_stages(session: SparkSession, name: str) -> None:
    results = create_views(session, shipped_table(name))
    assert_whole(session, f"SELECT * FROM {results}")


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("name", TEXTS)
def test_a_hundred_rules_are_judged_in_whole_stages(
    session: SparkSession, name: str, condition: str
) -> None:
    results = create_views(session, with_rules(name, 100, condition))
    assert_whole(session, f"SELECT * FROM {results}")
    assert_whole(session, f"SELECT dq_status FROM {results}")
