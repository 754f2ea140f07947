"""SQL of what becomes of each row: the verdict of the rules, its result, and its dead letter if it is refused.

The first rule that matches gives the status, all that match are listed; a row is kept as JSON with sensitive
columns masked, and only where a rule matches. Columns of results do not depend on the rules.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Protocol

from headgate.conditions.ast import Expr
from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.conditions.spark_sql import to_clauses, to_spark
from headgate.core.sql.fragments import (
    DEAD_LETTERS,
    call,
    comment,
    filled,
    fits,
    hanging,
    lines,
    split_literals,
)
from headgate.core.sql.script import case, nested, select, statement, view
from headgate.quality.compile.resolve import VALID, JudgedRule, JudgedTable
from headgate.quality.compile.source import (
    BYTES,
    MASKED,
    MISSING_KEY,
    MISSING_KEY_WORDS,
    PLACE,
    Source,
    dead_letters_query,
    unlike_words,
    window_start,
)
from headgate.quality.compile.tables import Names
from headgate.quality.compile.unique import (
    TIME_OPTIONS,
    repeated_column,
    unique_rules,
    unique_statements,
)
from headgate.quality.pairs import pair_support

_ONE_LINE = 100


class VerdictRow(Protocol):
    """What `rule_verdict` has to know of a rule, or of a row of the decision table."""

    @property
    def name(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def severity(self) -> str | None: ...
    @property
    def reason(self) -> str: ...
    @property
    def condition(self) -> Expr | None: ...


def rule_verdict(rules: Sequence[VerdictRow], entry: str = "rule") -> str:
    """The verdict on a row: of the first rule that matches, with the names of all that match; else NULL.

    Only a call that is evaluated for every row stays in whole-stage code, whatever the number of rules: so
    it must not stand in a branch of an IF or a CASE.
    """
    if not rules:
        return "rule_verdict()"
    names = comment(
        f"name, status, severity, reason, and the condition on which the {entry} matches"
    )
    arguments = lines(_render_rule(rule, at) for at, rule in enumerate(rules))
    return f"rule_verdict(\n  {names}\n{textwrap.indent(arguments, '  ')}\n)"


def _render_rule(rule: VerdictRow, at: int) -> str:
    """On one line where it is short, else the condition on a line of its own."""
    texts = ", ".join(map(spark_literal, (rule.name, rule.status, rule.severity, rule.reason)))
    condition = repeated_column(at) if rule.condition is None else to_spark(rule.condition)
    if len(texts) + len(condition) <= _ONE_LINE and "\n" not in condition:
        return f"{texts}, {condition}"
    if rule.condition is not None and not fits(condition):
        condition = "\n  ".join(to_clauses(rule.condition))
    return split_literals(f"{texts},\n  {condition}")


def all_rules(judged: JudgedTable) -> tuple[JudgedRule, ...]:
    """The rules in their order, and behind them the verdicts where there are two sources."""
    return (*judged.rules, *(pair_support().verdict_rules() if judged.table.is_pair else ()))


ACTION, UPSERT = "action", "UPSERT"


def judged_statements(judged: JudgedTable, source: Source) -> list[str]:
    """What rules of uniqueness have to know of a row, and the rules."""
    names = Names(judged.table.name)
    with_keys = bool(unique_rules(judged))
    start = names.rows if with_keys else source.names.rows
    at = [] if with_keys else [f"{source.at()} AS _at"]
    verdict = f"{rule_verdict(judged.rules)} AS _verdict"
    words = (
        "The rules, in the order that decides: the first that matches gives the row its status, and all that"
        " match are listed. Where none matches, _verdict is NULL."
    )
    return [
        *(unique_statements(judged, source) if with_keys else []),
        view(names.judged, words, select(["*", *at, verdict], f"FROM {start}")),
    ]


def action_of(source: Source) -> str:
    """What a row says was done; without a word it was an upsert."""
    if ACTION not in source.types:
        return "CAST(NULL AS STRING)"
    return f"coalesce(CAST({spark_identifier(ACTION)} AS STRING), '{UPSERT}')"


def row_text(source: Source) -> str:
    """The declared columns of one source's row."""
    columns = textwrap.indent(filled([_masked_column(source, name) for name in source.types]), "  ")
    return f"to_json(struct(\n{columns}\n), {TIME_OPTIONS})"


def _masked_column(source: Source, name: str) -> str:
    column = spark_identifier(name)
    return f"'{MASKED}' AS {column}" if name in source.hidden else column


OK = "OK"
CLEAN, FAILED, DEAD_LETTER = "clean", "failed", "dead_letter"


def results_statement(judged: JudgedTable, source: Source) -> str:
    """The view of row results; its columns do not depend on the rules."""
    names = Names(judged.table.name)
    window = window_start("_at", judged.rule_set.metrics.window)
    columns = [
        *_who(source),
        f"coalesce(_verdict.status, '{VALID}') AS dq_status",
        f"coalesce(_verdict.reason, '{OK}') AS dq_reason",
        "_verdict.severity AS dq_severity",
        "_verdict.rules AS dq_rules",
        f"{_outcome(judged.rules)} AS dq_outcome",
        *_hashes(judged, source),
        f"{window if source.hides_time else '_at'} AS event_time",
        f"{window} AS window_start",
        f"{call('IF', ['_verdict IS NULL', 'NULL', row_text(source)])} AS row",
        "session.batch_time AS processing_time",
        *PLACE,
    ]
    words = (
        f"Every row with its result: {VALID} where no rule matches; the others are kept as JSON."
    )
    return view(names.results, words, select(columns, f"FROM {names.judged}"))


def _who(source: Source) -> list[str]:
    pk = f"CAST({spark_identifier(source.pk)} AS STRING)"
    if source.pk in source.hidden:
        # Masked, but so that rows of one key can still be told from others.
        pk = f"sha2({pk}, 256)"
    return [f"{pk} AS pk", f"{_shown(action_of(source), ACTION in source.hidden)} AS action"]


def _shown(value: str, hidden: bool) -> str:
    return f"IF({value} IS NULL, NULL, '{MASKED}')" if hidden else value


def _outcome(rules: tuple[JudgedRule, ...]) -> str:
    dead = [spark_literal(rule.name) for rule in rules if rule.on_fail == DEAD_LETTER]
    if not dead:
        return f"IF(_verdict IS NULL, '{CLEAN}', '{FAILED}')"
    is_dead = hanging(call("arrays_overlap", ["_verdict.rules", call("array", dead)]))
    branches = [("_verdict IS NULL", f"'{CLEAN}'"), (is_dead, f"'{DEAD_LETTER}'")]
    return case(branches, f"'{FAILED}'")


def _hashes(judged: JudgedTable, source: Source) -> list[str]:
    hashes = judged.table.hash
    fields = (hashes.onprem_field, hashes.cloud_field) if hashes else ("", "")
    return [
        f"{_shown(spark_identifier(name), name in source.hidden)} AS {column}"
        if name in source.declared.columns
        else f"CAST(NULL AS STRING) AS {column}"
        for column, name in zip(("hash_onprem", "hash_cloud"), fields, strict=True)
    ]


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
