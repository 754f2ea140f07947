"""Dead letters: records that cannot be rows, and rows that a rule sends there."""

from __future__ import annotations

import textwrap

from headgate.core.sql.compile_fragments import DEAD_LETTERS, filled, hanging
from headgate.core.sql.statement import nested, statement
from headgate.quality.compile.model import JudgedTable
from headgate.quality.compile.names import Names
from headgate.quality.compile.row_text import row_text
from headgate.quality.compile.rules_results import DEAD_LETTER
from headgate.quality.compile.source import (
    BYTES,
    MISSING_KEY,
    MISSING_KEY_WORDS,
    PLACE,
    Source,
    dead_letters_query,
    unlike_words,
)

_CODE, _IS_DEAD = "concat('dq_', get(dq_rules, 0))", f"dq_outcome = '{DEAD_LETTER}'"
_HEADERS = "ARRAY<STRUCT<key: STRING, value: BINARY>>"


def refuse_statement(judged: JudgedTable, source: Source) -> str:
    names = Names(judged.table.name)
    queries = [_unreadable(source, names.job)]
    if any(rule.on_fail == DEAD_LETTER for rule in judged.rules):
        queries.append(_by_rule(source, names))
    return insert_dead_letters(queries)


def insert_dead_letters(queries: list[str]) -> str:
    words = "What could not be read, or a rule refuses: the original bytes, and why."
    query = "\nUNION ALL\n".join(queries)
    return statement("refuse", words, f"INSERT INTO {DEAD_LETTERS} BY NAME\n{query}")


def _unreadable(source: Source, job: str) -> str:
    if source.declared.topic is not None:
        return dead_letters_query(source, job)
    reason = f"decode(_reason_code, '{MISSING_KEY}', '{MISSING_KEY_WORDS}', {unlike_words(source)})"
    columns = _row_letter(job, "_reason_code", hanging(reason), hanging(row_text(source)))
    return f"{_select(columns)}\nFROM {source.names.read}\nWHERE _reason_code IS NOT NULL"


def _row_letter(job: str, code: str, reason: str, value: str) -> list[str]:
    """A row of a table has no bytes of its own: its JSON stands for them, masked as in results."""
    return [
        f"'{job}' AS job",
        "session.batch_revision AS revision",
        f"{code} AS reason_code",
        f"{reason} AS reason",
        "CAST(NULL AS STRING) AS kafka_topic",
        "CAST(NULL AS INT) AS kafka_partition",
        "CAST(NULL AS BIGINT) AS kafka_offset",
        "CAST(NULL AS TIMESTAMP) AS kafka_timestamp",
        "CAST(NULL AS BINARY) AS kafka_key",
        f"CAST({value} AS BINARY) AS kafka_value",
        f"CAST(NULL AS {_HEADERS}) AS kafka_headers",
        "session.batch_time AS refused_at",
    ]


def _by_rule(source: Source, names: Names) -> str:
    """One letter for each: the record at the result's place, or where it has none, the row as JSON.

    By the results as they were staged: judged again, a part of a batch could come out otherwise.
    """
    if source.declared.topic is None:
        letter = _select(_row_letter(names.job, _CODE, "dq_reason", "row"))
        return f"{letter}\nFROM {names.committed}\nWHERE {_IS_DEAD}"
    place = PLACE[:3]
    columns = [
        f"'{names.job}' AS job",
        "session.batch_revision AS revision",
        f"{_CODE} AS reason_code",
        "dq_reason AS reason",
        *place,
        "record.kafka_timestamp",
        *BYTES,
        "session.batch_time AS refused_at",
    ]
    join = f"JOIN {names.committed} USING ({', '.join(place)})"
    return f"{_select(columns)}\nFROM {source.names.read} AS record\n{join}\nWHERE {_IS_DEAD}"


def _select(columns: list[str]) -> str:
    return f"SELECT\n{textwrap.indent(filled(columns), '  ')}"


def outcomes_statement(judged: JudgedTable, source: Source) -> str:
    """What became of every row of a snapshot."""
    names = Names(judged.table.name)
    dead = f"FROM {names.committed} WHERE {_IS_DEAD}"
    counts = (
        f"SELECT 'refused' AS outcome, count(*) AS n FROM {source.names.read} WHERE _reason_code IS NOT NULL",
        f"SELECT 'accepted' AS outcome, count(*) AS n FROM {source.names.rows}",
        f"SELECT '{DEAD_LETTER}' AS outcome, count(*) AS n {dead}",
        f"SELECT 'accepted' AS outcome, -count(*) AS n {dead}",
    )
    query = "\nUNION ALL\n".join(counts)
    words = "What became of every row: each has one outcome."
    return statement(
        "outcomes", words, f"SELECT outcome, sum(n) AS n\nFROM {nested(query)}\nGROUP BY outcome"
    )
