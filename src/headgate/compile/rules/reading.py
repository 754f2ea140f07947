"""The permanent views: what the tables of the lake say, under the names that the file uses."""

from __future__ import annotations

from headgate.compile.rules.aggregates import verdict_query
from headgate.compile.rules.metrics import dimensions, metric_columns
from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.names import VIEWS, Names
from headgate.compile.rules.source import sources_of
from headgate.compile.rules.statement import select, statement
from headgate.compile.rules.tables import RESULTS


def reading_statements(judged: JudgedTable) -> list[str]:
    names = Names(judged.table.name)
    found = [
        _view(
            names.results,
            "All results there are.",
            select(tuple(RESULTS), f"FROM {names.results_table}"),
        ),
        _view(
            names.metrics,
            "The metrics of all windows: the sums of their partials.",
            _metrics(judged, names),
        ),
    ]
    if judged.aggregates:
        words = "The verdicts over all windows."
        query = verdict_query(judged, sources_of(judged)[0], names.partials_table)
        found.append(_view(names.aggregates, words, query))
    return found


def _metrics(judged: JudgedTable, names: Names) -> str:
    place = ["window_start", *dimensions(judged)]
    return select(
        [*place, *metric_columns(judged)],
        f"FROM {names.partials_table}",
        "WHERE kind IN ('rows', 'rule')",
        f"GROUP BY {', '.join(place)}",
    )


def _view(name: str, words: str, query: str) -> str:
    sql = f"CREATE OR REPLACE VIEW {VIEWS}.{name} AS\n{query}"
    return statement("reading", words, sql)
