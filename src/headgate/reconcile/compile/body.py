"""The statements of a reconciled pair, in the order of the data: sources, messages, states, verdicts."""

from __future__ import annotations

import textwrap
from dataclasses import replace

from headgate.core.sql.compile_fragments import filled
from headgate.core.sql.statement import Section, Sections, nested, statement
from headgate.quality.compile.letters import insert_dead_letters
from headgate.quality.compile.metrics import metrics_sections
from headgate.quality.compile.model import JudgedTable
from headgate.quality.compile.names import RECONCILE, Names
from headgate.quality.compile.partials import partials_statements
from headgate.quality.compile.source import (
    Source,
    dead_letters_query,
    source_statements,
    sources_of,
)
from headgate.quality.spec.limits import limits_of
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.reconcile.compile.judging import VerdictViews
from headgate.reconcile.compile.merging import (
    keep_statement,
    state_statements,
    window_states_statement,
)
from headgate.reconcile.compile.messages import message_statements
from headgate.reconcile.compile.tables import CHANGES
from headgate.reconcile.reconcile_state import ACTIONS, DELETE


def reconcile_sources(judged: JudgedTable) -> dict[str, Source]:
    """Both sides; a tombstone of either is a delete, and the first says what was done."""
    declared = judged.table.reconcile or Reconcile()
    sources = dict(zip(judged.table.sources, sources_of(judged), strict=True))
    sources = {side: replace(source, reads_tombstones=True) for side, source in sources.items()}
    first = sources["onprem"]
    if declared.action in first.types:
        sources["onprem"] = replace(first, action=declared.action, actions=ACTIONS)
    return sources


def reconcile_sections(judged: JudgedTable) -> Sections:
    names, sources = Names(judged.table.name, RECONCILE), reconcile_sources(judged)
    limits = limits_of(judged.table.reconcile or Reconcile())
    facts, decided, verdicts, *results = VerdictViews(judged, sources, limits).statements()
    count = len(judged.rules)
    views = [
        *(
            Section(f"the records of topic {source.declared.topic}", source_statements(source))
            for source in sources.values()
        ),
        Section(
            "messages of both sides, and the state of each key",
            [*message_statements(judged.table, names, sources), *state_statements(names)],
        ),
        Section("the facts that rules and decision table test", [facts]),
        Section(
            f"the rules ({count}) and the decision table" if count else "the decision table",
            [decided, verdicts],
        ),
        Section(f"{names.results}: every key with its verdict", results),
        *metrics_sections(judged, names),
    ]
    engine = [
        window_states_statement(names, limits),
        keep_statement(names),
        _accept(names),
        *partials_statements(judged, names),
        _outcomes(names, sources),
        _counts(names),
        insert_dead_letters([dead_letters_query(source, names.job) for source in sources.values()]),
    ]
    return Sections(views, engine)


def _accept(names: Names) -> str:
    words = (
        "Every change of a verdict is kept: it is the audit of the pair. The job replaces this view with the"
        " results that are a change."
    )
    columns = textwrap.indent(filled([name for name in CHANGES if name != "revision"]), "  ")
    query = f"SELECT\n{columns},\n  session.batch_revision AS revision\nFROM {names.changes}"
    return statement("accept", words, f"INSERT INTO {names.results_table} BY NAME\n{query}")


def _outcomes(names: Names, sources: dict[str, Source]) -> str:
    """What became of every record of both topics."""
    reads = [
        f"SELECT '{side}' AS side, kafka_value, _reason_code FROM {source.names.read}"
        for side, source in sources.items()
    ]
    query = f"""SELECT
  side,
  CASE
    WHEN _reason_code IS NOT NULL THEN 'refused'
    WHEN kafka_value IS NULL THEN 'tombstone'
    ELSE 'accepted'
  END AS outcome,
  _reason_code AS reason,
  count(*) AS n
FROM {nested(chr(10).join([reads[0], "UNION ALL", reads[1]]))}
GROUP BY ALL"""
    return statement("outcomes", "What became of every record: each has one outcome.", query)


def _counts(names: Names) -> str:
    """What is counted by offsets: deletes, and what came more than once within these records."""
    same = f"""SELECT side, action <=> '{DELETE}' AS is_delete, count(*) AS n
FROM {names.messages}
GROUP BY side, pk, version, hash, action <=> '{DELETE}'"""
    query = f"""SELECT
  side, sum(n) AS messages, sum(IF(is_delete, n, 0L)) AS deletes, sum(n - 1) AS duplicates
FROM {nested(same)}
GROUP BY side"""
    words = (
        "A duplicate is the same key, version and hash at another offset; whether an earlier batch had it, the"
        " table of states knows."
    )
    return statement("counts", words, query)
