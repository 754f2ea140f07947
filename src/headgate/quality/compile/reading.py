"""The permanent views: what the tables of the lake say, under the names that the file uses.

The query of a view stands once, in the file. Here it is laid over the tables instead of a batch: the views
that it reads become WITH clauses, those at the bottom read the tables, and now is the time of the query.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from headgate.conditions.expr_literals import spark_identifier
from headgate.core.sql.compile_fragments import QUOTED
from headgate.core.sql.compile_script import Script
from headgate.core.sql.statement import nested
from headgate.quality.compile.names import VIEWS, Names
from headgate.reconcile.compile.merging import merged_query

_VIEW = re.compile(r"CREATE OR REPLACE TEMPORARY VIEW (?P<name>\S+) AS\n(?P<query>.*)", re.DOTALL)
_NOW = "current_timestamp()"


def quality_views(names: Names, script: Script) -> list[str]:
    """Results, metrics and, where there are any, aggregates of a rule table with one source."""
    statements = [
        f"CREATE OR REPLACE VIEW {VIEWS}.{names.results} AS\nSELECT * FROM {names.results_table}",
        permanent_view(script, names.metrics, {names.counts: _counts(names)}),
    ]
    return [*statements, *script.named("reading")]


def reconcile_views(names: Names, script: Script, more: str | None = None) -> list[str]:
    """Verdicts of now, changes, keys by status and metrics of a pair; `more` is another view of the file."""
    states = {names.states: _states(names)}
    statements = [
        permanent_view(script, names.results, states),
        _audit(names),
        f"""CREATE OR REPLACE VIEW {VIEWS}.{names.status} AS
SELECT dq_status, rollup, count(*) AS cnt
FROM {VIEWS}.{names.results}
GROUP BY dq_status, rollup""",
        permanent_view(script, names.metrics, {names.counts: _counts(names)}),
    ]
    others = [permanent_view(script, spark_identifier(more), states)] if more else []
    return [*statements, *others]


def permanent_view(script: Script, name: str, given: Mapping[str, str]) -> str:
    """A view of the file as a permanent one, over the queries that are given for the views it rests on."""
    queries = {**_queries(script), **given}
    needed = _needed(name, queries, frozenset(given))
    clauses = [f"{view} AS {nested(queries[view])}" for view in queries if view in needed]
    query = _at_query_time(f"WITH {', '.join(clauses)}\n{queries[name]}")
    return f"CREATE OR REPLACE VIEW {VIEWS}.{name} AS\n{query}"


def _at_query_time(query: str) -> str:
    """The query without the variable of a batch; words of a rule may name it, and stay as they are."""
    found = re.compile(rf"{QUOTED.pattern}|(?P<variable>session\.batch_time)", re.DOTALL)
    return found.sub(lambda match: _NOW if match["variable"] else match[0], query)


def _queries(script: Script) -> dict[str, str]:
    """The views of the file by name, in their order."""
    found = (_VIEW.fullmatch(step.sql) for step in script.steps)
    return {view["name"]: view["query"] for view in found if view}


def _needed(name: str, queries: Mapping[str, str], bottom: frozenset[str]) -> set[str]:
    """The views that a view rests on, down to those of which the queries are given."""
    query = QUOTED.sub("", queries[name])
    direct = {
        view
        for view in queries
        if view != name and re.search(rf"\b(FROM|JOIN) {re.escape(view)}(?!\w)", query)
    }
    below = (_needed(view, queries, bottom) for view in direct - bottom)
    return direct.union(*below)


def _counts(names: Names) -> str:
    return f"""SELECT window_start, name, severity, n
FROM {names.partials_table}
WHERE kind IN ('rows', 'rule')"""


def _states(names: Names) -> str:
    """The state of each key of the table; settled at the end of an input if nothing has come since."""
    merged = merged_query(names.states_table, "max(batch_time) AS written_at")
    ended = (
        f"SELECT max(processing_time) FROM {names.results_table} WHERE settled_by = 'end_of_input'"
    )
    return f"""SELECT
  *,
  TRUE AS whole,
  coalesce(written_at <= ({ended}), FALSE) AS ended,
  current_timestamp() AS judged_at,
  'now' AS origin
FROM {nested(merged)}"""


def _audit(names: Names) -> str:
    """What is told of a key twice in a row is no change; what comes back after another is one."""
    order = "processing_time, onprem_version, cloud_version, settled"
    told = f"""SELECT *, lag(id) OVER (PARTITION BY pk ORDER BY {order}) AS _before
FROM {names.results_table}"""
    return f"""CREATE OR REPLACE VIEW {VIEWS}.{names.audit} AS
SELECT * EXCEPT (_before)
FROM {nested(told)}
WHERE NOT id <=> _before"""
