"""Window partials: what one batch adds to each window, so that sums need no state."""

from __future__ import annotations

import textwrap

from headgate.conditions.expr_literals import spark_literal
from headgate.core.sql.compile_fragments import filled
from headgate.core.sql.statement import nested, statement, view
from headgate.quality.compile.metrics import dimensions
from headgate.quality.compile.model import JudgedTable
from headgate.quality.compile.names import Names
from headgate.quality.compile.verdicts import all_rules

# One row stands for all rules and for each that matched; the first place is the row itself.
_MATCHED = "posexplode(concat(array(string(NULL)), coalesce(dq_rules, array())))"


def partials_statements(judged: JudgedTable, names: Names, more: str = "") -> list[str]:
    """What the committed results add to their windows, and `more` partials beside them."""
    seconds = int(judged.rule_set.metrics.window.total_seconds())
    words = (
        "What the committed results add to each window: its rows, and for each rule the rows whose status it"
        " gave (n) and those that it matched (matched)."
    )
    query = " UNION ALL ".join(f"SELECT * FROM {name}" for name in (names.partials, more) if name)
    closed = f"timestamp_seconds(unix_seconds(window_start) + {seconds}) <= session.closed_before"
    columns = [
        "*",
        *(f"{literal} AS {name}" for name, literal in dimensions(judged).items()),
        f"coalesce({closed}, FALSE) AS late",
        "session.batch_revision AS revision",
        "session.batch_range AS range",
        "session.batch_time AS batch_time",
    ]
    insert = f"""INSERT INTO {names.partials_table} BY NAME
SELECT
{textwrap.indent(filled(columns), "  ")}
FROM ({query})"""
    return [
        view(names.partials, words, _partials(judged, names), step="partial view"),
        statement("partials", "The sums of a window are those of its partials.", insert),
    ]


def _partials(judged: JudgedTable, names: Names) -> str:
    rules = [
        f"({', '.join(map(spark_literal, (rule.name, rule.metric, rule.severity)))})"
        for rule in all_rules(judged)
    ]
    known = f"VALUES\n{textwrap.indent(filled(rules), '  ')}\nAS known (name, metric, severity) ON known.name = rule"
    if not rules:
        known = "(SELECT '' AS name, '' AS metric, '' AS severity) AS known ON known.name = rule"
    counted = f"""SELECT window_start, rule, count_if(place <= 1) AS n, count(*) AS matched, max(event_time) AS newest
FROM {names.committed}
LATERAL VIEW {_MATCHED} found AS place, rule
{"WHERE settled" + chr(10) if judged.table.is_pair else ""}GROUP BY window_start, rule"""
    return f"""SELECT
  window_start, IF(rule IS NULL, 'rows', 'rule') AS kind, coalesce(rule, 'rows') AS name, metric, severity,
  string(NULL) AS grp, n, matched, double(NULL) AS total, bigint(NULL) AS nulls, binary(NULL) AS sketch, newest
FROM {nested(counted, "counted")}
LEFT JOIN {known}"""
