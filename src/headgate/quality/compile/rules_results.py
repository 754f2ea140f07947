"""Row results of one source: status, reason and all rules that match, with the row itself where one does."""

from __future__ import annotations

from headgate.conditions.expr_literals import spark_identifier, spark_literal
from headgate.core.sql.compile_fragments import call, hanging
from headgate.core.sql.statement import case, select, view
from headgate.quality.compile.judged import ACTION, action_of
from headgate.quality.compile.model import CLEAN as VALID
from headgate.quality.compile.model import JudgedRule, JudgedTable
from headgate.quality.compile.names import Names
from headgate.quality.compile.row_text import row_text
from headgate.quality.compile.source import MASKED, PLACE, Source, window_start

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
