"""The judged rows of one source: each with the verdict of the rules, or none."""

from __future__ import annotations

from headgate.conditions.expr_literals import spark_identifier
from headgate.core.sql.statement import select, view
from headgate.quality.compile.model import JudgedTable
from headgate.quality.compile.names import Names
from headgate.quality.compile.source import Source
from headgate.quality.compile.unique import unique_rules, unique_statements
from headgate.quality.compile.verdicts import rule_verdict

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
