"""Dead letters: records that cannot be rows, and rows that a rule sends there."""

from __future__ import annotations

from headgate.compile.fragments import DEAD_LETTERS
from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.names import Names
from headgate.compile.rules.results import DEAD_LETTER
from headgate.compile.rules.row_text import source_text
from headgate.compile.rules.source import (
    MISSING_KEY,
    MISSING_KEY_WORDS,
    PLACE,
    Source,
    letter_columns,
    unlike_words,
)
from headgate.compile.rules.statement import case, nested, select, statement

_LETTER = ("kafka_key", "kafka_value", "kafka_headers")
_CODE, _IS_DEAD = "concat('dq_', get(dq_rules, 0))", f"dq_outcome = '{DEAD_LETTER}'"
_HEADERS = "ARRAY<STRUCT<key: STRING, value: BINARY>>"


def refuse_statement(judged: JudgedTable, sources: tuple[Source, ...]) -> str:
    names = Names(judged.table.name)
    queries = [_unreadable(source, names.job) for source in sources]
    if any(rule.on_fail == DEAD_LETTER for rule in judged.rules):
        queries += _by_rule(sources, names)
    words = "What could not be judged, and what a rule refuses, with the original bytes."
    query = "\nUNION ALL\n".join(queries)
    return statement("refuse", words, f"INSERT INTO {DEAD_LETTERS} BY NAME\n{query}")


def _unreadable(source: Source, job: str) -> str:
    if source.declared.topic is not None:
        return letter_columns(source, job)
    reasons = [(f"_reason_code = '{MISSING_KEY}'", f"'{MISSING_KEY_WORDS}'")]
    return select(
        _letter(job, "_reason_code", case(reasons, unlike_words(source)), source_text(source)),
        f"FROM {source.names.read}",
        "WHERE _reason_code IS NOT NULL",
    )


def _letter(job: str, code: str, reason: str, value: str) -> list[str]:
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


def _by_rule(sources: tuple[Source, ...], names: Names) -> list[str]:
    """One letter for each: the record at the result's place, or where it has none, the row as JSON.

    By the results as they were staged: judged again, a part of a batch could come out otherwise.
    """
    topics = {source.declared.topic: source for source in sources if source.declared.topic}
    found = [_record(source, names) for source in topics.values()]
    if any(source.declared.topic is None for source in sources):
        letter = _letter(names.job, _CODE, "dq_reason", "row")
        dead = f"WHERE {_IS_DEAD} AND kafka_offset IS NULL"
        found.append(select(letter, f"FROM {names.committed}", dead))
    return found


def _record(source: Source, names: Names) -> str:
    return select(
        [
            f"'{names.job}' AS job",
            "session.batch_revision AS revision",
            f"{_CODE} AS reason_code",
            "dq_reason AS reason",
            *(f"record.{name}" for name in (*PLACE, *_LETTER)),
            "session.batch_time AS refused_at",
        ],
        f"FROM {source.names.read} AS record",
        f"JOIN {nested(_dead(names), 'dead')}",
        *(
            f"  {'ON' if at == 0 else 'AND'} record.{name} = dead.{name}"
            for at, name in enumerate(PLACE[:3])
        ),
    )


def _dead(names: Names) -> str:
    columns = ["dq_rules", "dq_reason", *PLACE[:3]]
    return select(columns, f"FROM {names.committed}", f"WHERE {_IS_DEAD}")


def outcomes_statement(judged: JudgedTable, sources: tuple[Source, ...]) -> str:
    """What became of every record, where all is judged as a whole."""
    names = Names(judged.table.name)
    counts = [_count for source in sources for _count in _counts(judged, source)]
    counts.append(_dead_count(judged, names))
    query = "\nUNION ALL\n".join(counts)
    words = "What became of every record: each has one outcome."
    whole = f"SELECT\n  outcome,\n  sum(n) AS n\nFROM {nested(query)}\nGROUP BY outcome"
    return statement("outcomes", words, whole)


def _counts(judged: JudgedTable, source: Source) -> list[str]:
    views = source.names
    bad = [_counted("refused", views.read, "WHERE _reason_code IS NOT NULL")]
    if source.declared.topic is not None:
        bad.append(_counted("tombstone", views.bound, "WHERE value IS NULL"))
    if not judged.table.is_pair:
        return [*bad, _counted("accepted", views.rows)]
    older = f"count(*) - (SELECT count(*) FROM {views.newest})"
    return [
        *bad,
        _counted("newest", views.newest),
        f"SELECT 'superseded' AS outcome, {older} AS n FROM {views.rows}",
    ]


def _counted(outcome: str, start: str, where: str = "") -> str:
    return f"SELECT '{outcome}' AS outcome, count(*) AS n FROM {start} {where}".rstrip()


def _dead_count(judged: JudgedTable, names: Names) -> str:
    """A dead letter is no accepted record; of a pair it is the on-prem record, or the only one."""
    kept = "newest" if judged.table.is_pair else "accepted"
    dead = f"FROM {names.committed} WHERE dq_outcome = '{DEAD_LETTER}'"
    return (
        f"SELECT '{DEAD_LETTER}' AS outcome, count(*) AS n {dead}\n"
        f"UNION ALL\nSELECT '{kept}' AS outcome, -count(*) AS n {dead}"
    )
