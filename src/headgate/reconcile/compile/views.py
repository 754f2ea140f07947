"""The permanent views of a pair: verdicts of now, changes, keys by status and metrics, over the tables of its job."""

from __future__ import annotations

from headgate.conditions.literals import spark_identifier
from headgate.core.sql.script import Script, nested
from headgate.quality.compile.file import counts_query, permanent_view
from headgate.quality.compile.tables import VIEWS, Names
from headgate.reconcile.compile.states import merged_query


def reconcile_views(names: Names, script: Script, pairs_view: str | None = None) -> list[str]:
    """The statements that create the views; `pairs_view` is a further view of the file, as it is declared."""
    states = {names.states: _states(names)}
    statements = [
        permanent_view(script, names.results, states),
        _audit(names),
        f"""CREATE OR REPLACE VIEW {VIEWS}.{names.status} AS
SELECT dq_status, rollup, count(*) AS cnt
FROM {VIEWS}.{names.results}
GROUP BY dq_status, rollup""",
        permanent_view(script, names.metrics, {names.counts: counts_query(names)}),
    ]
    if pairs_view:
        statements.append(permanent_view(script, spark_identifier(pairs_view), states))
    return statements


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
    """A verdict that is published twice in a row is no change; one that comes back after another is."""
    order = "processing_time, onprem_version, cloud_version, settled"
    changes = f"""SELECT *, lag(id) OVER (PARTITION BY pk ORDER BY {order}) AS _before
FROM {names.results_table}"""
    return f"""CREATE OR REPLACE VIEW {VIEWS}.{names.audit} AS
SELECT * EXCEPT (_before)
FROM {nested(changes)}
WHERE NOT id <=> _before"""
