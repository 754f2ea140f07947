"""Window partials: what one batch adds to each window, so that sums need no state."""

from __future__ import annotations

from headgate.compile.rules.aggregates import PARTIALS, partials_tail
from headgate.compile.rules.metrics import dimensions
from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.names import Names
from headgate.compile.rules.statement import nested, select, statement, view

# One row stands for all rules and for each that held; the first place is the row itself.
_HELD = "posexplode(concat(array(CAST(NULL AS STRING)), coalesce(dq_rules, array())))"


def partials_statements(judged: JudgedTable, results: str = "") -> list[str]:
    """What `results` add to windows: those of the view of results, or what else is to be counted."""
    names = Names(judged.table.name)
    words = "The results to be counted; the engine binds this view to those that it has staged."
    return [
        view(names.committed, words, results or f"SELECT *\nFROM {names.results}"),
        _partials(judged, names),
        _insert(judged, names),
    ]


def _partials(judged: JudgedTable, names: Names) -> str:
    counted = select(
        ["window_start", "rule", "count_if(place <= 1) AS n", "count(*) AS held",
         "max(event_time) AS newest"],
        f"FROM {names.committed}",
        f"LATERAL VIEW {_HELD} held AS place, rule",
        *(["WHERE settled"] if judged.table.reconcile else []),
        "GROUP BY window_start, rule",
    )  # fmt: skip
    told = [f"{literal} AS {name}" for name, literal in dimensions(judged).items()]
    query = select(
        ["window_start", *told, "IF(rule IS NULL, 'rows', 'rule') AS kind",
         "coalesce(rule, 'rows') AS name", "metric", "severity", "CAST(NULL AS STRING) AS grp",
         "n", "held", "CAST(NULL AS DOUBLE) AS total", "CAST(NULL AS BIGINT) AS nulls",
         "CAST(NULL AS BINARY) AS sketch", "newest", *partials_tail(judged)],
        f"FROM {nested(counted)}",
        f"LEFT JOIN {names.rules} ON {names.rules}.name = rule",
    )  # fmt: skip
    words = (
        "What the results add to each window: its rows, and for each rule the rows whose status it"
        " gave (n) and those on which it held (held)."
    )
    return view(names.partials, words, query, step="partial view")


def _insert(judged: JudgedTable, names: Names) -> str:
    views = [names.partials, *([names.aggregate_partials] if judged.aggregates else [])]
    query = "\nUNION ALL\n".join(f"{select(PARTIALS, f'FROM {name}')}" for name in views)
    words = "The sums of a window are those of its partials: nothing is read back and changed."
    return statement("partials", words, f"INSERT INTO {names.partials_table} BY NAME\n{query}")
