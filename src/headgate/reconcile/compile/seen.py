"""The declared columns of a side, taken out of its state: what rules, views and people see."""

from __future__ import annotations

from headgate.conditions.expr_literals import spark_identifier, spark_literal
from headgate.quality.compile.source import Source
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.compile.messages import hash_field, other_columns


def declared_columns(table: RuleTable, side: str, source: Source) -> dict[str, str]:
    """Each declared column as SQL over a state."""
    return {name: column_of(table, side, source, name) for name in source.types}


def column_of(table: RuleTable, side: str, source: Source, name: str) -> str:
    """One declared column as SQL over a state; what has no field of its own stands in the row's text."""
    assert table.reconcile is not None
    kept = {
        table.pk: "pk",
        hash_field(table, side): f"{side}.hash",
        table.reconcile.hash_version: f"{side}.hash_version",
        source.declared.event_time: f"{side}.version",
        source.action: f"{side}.action",
    }
    if name in kept:
        return kept[name]
    others = other_columns(table, side, source)
    fields = ", ".join(f"{spark_identifier(one)} {source.types[one].spark}" for one in others)
    return f"from_json({side}.row, {spark_literal(fields)}).{spark_identifier(name)}"
