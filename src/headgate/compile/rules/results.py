"""Row results: status, reason and all rules that match, with the row itself where one does."""

from __future__ import annotations

from headgate.compile.fragments import call
from headgate.compile.rules.judged import ACTION, action_of
from headgate.compile.rules.model import JudgedRule, JudgedTable
from headgate.compile.rules.names import Names
from headgate.compile.rules.row_text import row_text
from headgate.compile.rules.source import MASKED, PLACE, Source, window_start
from headgate.compile.rules.statement import case, select, statement, view
from headgate.expr.literals import spark_identifier, spark_literal

OK = "OK"
CLEAN, FAILED, DEAD_LETTER = "clean", "failed", "dead_letter"


def results_statement(judged: JudgedTable, sources: tuple[Source, ...]) -> str:
    """The view of row results; its columns do not depend on the rules."""
    names = Names(judged.table.name)
    clean = spark_literal(judged.clean_status)
    window = window_start("_at", judged.rule_set.metrics.window)
    row = call("IF", ["_verdict IS NULL", "NULL", row_text(judged, sources)])
    columns = [
        *_who(judged, sources),
        f"coalesce(_verdict.status, {clean}) AS dq_status",
        f"coalesce(_verdict.reason, '{OK}') AS dq_reason",
        "_verdict.severity AS dq_severity",
        "_verdict.rules AS dq_rules",
        f"{_outcome(judged.rules)} AS dq_outcome",
        *_hashes(judged, sources),
        f"{window if hides_time(sources) else '_at'} AS event_time",
        f"{window} AS window_start",
        f"{row} AS row",
        "session.batch_revision AS revision",
        "session.batch_time AS processing_time",
        *PLACE,
    ]
    words = f"Row results. A row without a verdict is {judged.clean_status}; the others are kept as text."
    return view(names.results, words, select(columns, f"FROM {names.judged}"))


def hides_time(sources: tuple[Source, ...]) -> bool:
    """Whether rows tell no nearer time than their window's: windows need that much."""
    return any(source.hides_time for source in sources)


def _who(judged: JudgedTable, sources: tuple[Source, ...]) -> list[str]:
    source = sources[0]
    if judged.table.is_pair:
        pk, action = "_pk", "_action"
    else:
        pk, action = f"CAST({spark_identifier(source.pk)} AS STRING)", action_of(source)
    if source.pk in source.hidden:
        # Masked, but so that rows of one key can still be told from others.
        pk = f"sha2({pk}, 256)"
    return [f"{pk} AS pk", f"{_shown(action, ACTION in source.hidden)} AS action"]


def _shown(value: str, hidden: bool) -> str:
    return f"IF({value} IS NULL, NULL, '{MASKED}')" if hidden else value


def _outcome(rules: tuple[JudgedRule, ...]) -> str:
    dead = [spark_literal(rule.name) for rule in rules if rule.on_fail == DEAD_LETTER]
    if not dead:
        return f"IF(_verdict IS NULL, '{CLEAN}', '{FAILED}')"
    is_dead = call("arrays_overlap", ["_verdict.rules", call("array", dead)])
    branches = [("_verdict IS NULL", f"'{CLEAN}'"), (is_dead, f"'{DEAD_LETTER}'")]
    return case(branches, f"'{FAILED}'")


def _hashes(judged: JudgedTable, sources: tuple[Source, ...]) -> list[str]:
    hashes = judged.table.hash
    if hashes is None:
        return [f"CAST(NULL AS STRING) AS {name}" for name in ("hash_onprem", "hash_cloud")]
    fields = {"hash_onprem": hashes.onprem_field, "hash_cloud": hashes.cloud_field}
    if judged.table.is_pair:
        return [
            f"{_shown(f'_{column}', fields[column] in source.hidden)} AS {column}"
            for column, source in zip(fields, sources, strict=True)
        ]
    (source,) = sources
    return [
        f"{_shown(spark_identifier(name), name in source.hidden)} AS {column}"
        if name in source.declared.columns
        else f"CAST(NULL AS STRING) AS {column}"
        for column, name in fields.items()
    ]


def accept_statement(judged: JudgedTable) -> str:
    names = Names(judged.table.name)
    words = "Every judged row, clean or not, is kept with its result."
    return statement(
        "accept",
        words,
        f"INSERT INTO {names.results_table} BY NAME\nSELECT *\nFROM {names.results}",
    )
