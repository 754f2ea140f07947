"""The statements of a reconciled pair, in the order of the data: sources, messages, states, verdicts."""

from __future__ import annotations

from dataclasses import replace

from headgate.compile.fragments import DEAD_LETTERS
from headgate.compile.reconcile.judging import Judging
from headgate.compile.reconcile.limits import limits_of
from headgate.compile.reconcile.merging import (
    batch_states_statement,
    keep_statement,
    states_statement,
)
from headgate.compile.reconcile.messages import message_statements
from headgate.compile.reconcile.state import ACTIONS, DELETE
from headgate.compile.reconcile.tables import CHANGES, reconcile_tables
from headgate.compile.reconcile.views import named_views, reading_statements
from headgate.compile.rules.judged import rules_view
from headgate.compile.rules.metrics import metrics_statements
from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.names import RECONCILE, Names
from headgate.compile.rules.partials import partials_statements
from headgate.compile.rules.source import Source, letter_columns, source_statements, sources_of
from headgate.compile.rules.statement import nested, select, statement, view
from headgate.spec.reconcile import Reconcile


def reconcile_sources(judged: JudgedTable) -> dict[str, Source]:
    """Both sides; a tombstone of either is a delete, and the first says what was done."""
    declared = judged.table.reconcile or Reconcile()
    found = dict(zip(judged.table.sources, sources_of(judged), strict=True))
    found = {side: replace(source, reads_tombstones=True) for side, source in found.items()}
    first = found["onprem"]
    if declared.action in first.types:
        found["onprem"] = replace(first, action=declared.action, actions=ACTIONS)
    return found


def reconcile_body(judged: JudgedTable) -> list[str]:
    names, sources = Names(judged.table.name, RECONCILE), reconcile_sources(judged)
    limits = limits_of(judged.table.reconcile or Reconcile())
    judging = Judging(judged, sources, limits)
    changed = f"SELECT *\nFROM {names.verdicts}\nWHERE changed"
    return [
        *reconcile_tables(names),
        *(part for source in sources.values() for part in source_statements(source)),
        *message_statements(judged.table, names, sources),
        batch_states_statement(names, limits),
        states_statement(names),
        rules_view(judged),
        _verdicts(judging, names),
        _results(names),
        *named_views(judging, names),
        *metrics_statements(judged),
        keep_statement(names),
        _accept(names),
        *partials_statements(judged, changed),
        _outcomes(names, sources),
        _counts(names),
        _refuse(names, sources),
        *reading_statements(judging, names),
    ]


def _verdicts(judging: Judging, names: Names) -> str:
    words = (
        "The verdict on each state: its facts, the first row of the decision table that holds, and on"
        " what is settled the rules of this table. _open is the row while the key waits, _final the"
        " row once it is due."
    )
    return view(names.verdicts, words, judging.query(names.states), step="verdict view")


def _results(names: Names) -> str:
    words = "Every key with its verdict; what waits is not counted."
    query = select(tuple(CHANGES), f"FROM {names.verdicts}")
    return view(names.results, words, query, step="verdict view")


def _accept(names: Names) -> str:
    words = "Every change of a verdict is kept: it is the audit of the pair."
    query = select(tuple(CHANGES), f"FROM {names.verdicts}", "WHERE changed")
    return statement("accept", words, f"INSERT INTO {names.results_table} BY NAME\n{query}")


def _outcomes(names: Names, sources: dict[str, Source]) -> str:
    """What became of every record of both topics."""
    outcome = (
        "CASE WHEN _reason_code IS NOT NULL THEN 'refused'"
        " WHEN kafka_value IS NULL THEN 'tombstone' ELSE 'accepted' END AS outcome"
    )
    reads = [
        select(
            [f"'{side}' AS side", outcome, "_reason_code AS reason"], f"FROM {source.names.read}"
        )
        for side, source in sources.items()
    ]
    query = select(
        ["side", "outcome", "reason", "count(*) AS n"],
        f"FROM {nested(chr(10).join([reads[0], 'UNION ALL', reads[1]]))}",
        "GROUP BY side, outcome, reason",
    )
    return statement("outcomes", "What became of every record: each has one outcome.", query)


def _counts(names: Names) -> str:
    """What is counted by offsets: deletes, and what came more than once within these records."""
    of_one = select(
        [
            "side",
            f"action <=> '{DELETE}' AS deleted",
            "count(*) AS n",
        ],
        f"FROM {names.messages}",
        f"GROUP BY side, pk, version, hash, action <=> '{DELETE}'",
    )
    query = select(
        [
            "side",
            "sum(n) AS messages",
            "sum(IF(deleted, n, 0L)) AS deletes",
            "sum(n - 1) AS duplicates",
        ],
        f"FROM {nested(of_one)}",
        "GROUP BY side",
    )
    words = (
        "A duplicate is the same key, version and hash at another offset; whether an earlier batch"
        " had it, the table of states knows."
    )
    return statement("counts", words, query)


def _refuse(names: Names, sources: dict[str, Source]) -> str:
    queries = [letter_columns(source, names.job) for source in sources.values()]
    words = "What can take no part, with the original bytes."
    query = "\nUNION ALL\n".join(queries)
    return statement("refuse", words, f"INSERT INTO {DEAD_LETTERS} BY NAME\n{query}")
