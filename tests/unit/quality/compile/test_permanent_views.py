"""The permanent views rest on tables alone: any client may ask them, long after the batch and its session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.rule_files import load_rule_file
from tests.support.rule_tables import compile_shipped, load_rule_table, script_of, shipped_table

from headgate.core.sql.fragments import QUOTED
from headgate.core.sql.script import Script
from headgate.quality.compile.file import compile_table, quality_views
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.compile.tables import names_of
from headgate.reconcile.compile.views import reconcile_views

SHIPPED = ("business", "customer", "orders", "taxi")
LISTED = {
    "business": ("results", "audit", "status", "metrics", "hash_check"),
    "customer": ("results", "audit", "status", "metrics"),
    "orders": ("results", "audit", "status", "metrics"),
    "taxi": ("results", "metrics", "aggregates"),
}


def views_of(judged: JudgedTable, script: Script) -> list[str]:
    names, declared = names_of(judged.table), judged.table.reconcile
    if declared is None:
        return quality_views(names, script)
    return reconcile_views(names, script, declared.view)


def shipped(name: str) -> tuple[list[str], Script]:
    script = script_of(compile_shipped(name), shipped_table(name))
    return views_of(shipped_table(name), script), script


def temporary(script: Script) -> set[str]:
    return {
        found[1]
        for step in script.steps
        if (found := re.match(r"CREATE OR REPLACE TEMPORARY VIEW (\S+)", step.sql))
    }


def rest_on_tables(statement: str, script: Script) -> None:
    """A temporary view may be named where it is one of the statement's own WITH clauses, else nowhere."""
    sql = QUOTED.sub("", statement)
    assert "session." not in sql
    clauses = set(re.findall(r"(?:^WITH |^\), )(\w+) AS \(", sql, re.MULTILINE))
    for view in temporary(script):
        if re.search(rf"(?<![\w.]){view}\b", sql):
            assert view in clauses, view
    assert re.search(r"\blake\.dq\.\w+|\bspark_catalog\.default\.\w+", sql.partition(" AS\n")[2])


@pytest.mark.parametrize("name", SHIPPED)
def test_a_permanent_view_asks_no_session_and_no_temporary_view(name: str) -> None:
    views, script = shipped(name)
    for statement in views:
        rest_on_tables(statement, script)


@pytest.mark.parametrize("name", SHIPPED)
def test_permanent_views_have_the_names_of_the_file_and_those_of_the_documents(name: str) -> None:
    views, _ = shipped(name)
    made = [view.split()[4] for view in views]
    listed = ("dq_hash_check" if n == "hash_check" else f"dq_{n}_{name}" for n in LISTED[name])
    assert made == [f"spark_catalog.default.{view}" for view in listed]


def test_the_query_of_a_view_stands_once_in_the_file_and_is_only_laid_over_the_tables() -> None:
    views, script = shipped("customer")
    for name in ("facts", "decided", "verdicts"):
        query = script.view(f"dq_{name}_customer").partition(" AS\n")[2]
        assert "".join(query.split()) in "".join(views[0].split())
    results = script.view("dq_results_customer").partition(" AS\n")[2]
    assert views[0].endswith(results)


def test_words_of_a_rule_stay_words(tmp_path: Path) -> None:
    """A reason that names a view or the variable of a batch makes no WITH clause and keeps its text."""
    words = "see dq_timed_both and session.batch_time"
    text = f"""\
version: 2
tables:
  - name: both
    pk: id
    sources:
      onprem: {{topic: a, table: t_a, columns: {{id: STRING, h1: STRING, at: TIMESTAMP(3)}}}}
      cloud: {{topic: b, table: t_b, columns: {{id: STRING, h2: STRING}}}}
    hash: {{onprem_field: h1, cloud_field: h2}}
rules:
  - {{name: ahead, when: "{{t1}}.at > {{batch_time}}", description: {words}}}
"""
    judged = load_rule_file(tmp_path, text).tables[0]
    script = script_of(compile_table(judged, "rules.yml"), judged)
    results = views_of(judged, script)[0]
    assert words in results
    assert "dq_timed_both AS (" not in results
    assert "current_timestamp()" in results
    rest_on_tables(results, script)


def test_now_is_the_time_of_the_query(tmp_path: Path) -> None:
    judged = load_rule_table(tmp_path, '{name: negative, when: "amount < 0"}')
    script = script_of(compile_table(judged, "rules.yml"), judged)
    results, metrics = views_of(judged, script)
    assert results.endswith("SELECT * FROM lake.dq.results_things")
    assert "FROM lake.dq.partials_things" in metrics
    views, _ = shipped("customer")
    assert "current_timestamp() AS judged_at" in views[0]
