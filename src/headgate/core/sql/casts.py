"""Values at another type, NULL where they have no counterpart; of texts only those in a known form."""

from __future__ import annotations

from headgate.conditions.ast import Cast, Column
from headgate.conditions.expr_literals import spark_identifier, spark_literal
from headgate.conditions.forms import FORMS, formed
from headgate.conditions.spark import to_spark
from headgate.core.sql.compile_fragments import fits
from headgate.declarations.spec_types import STRING, SqlType


def tried(name: str, source: SqlType, target: SqlType) -> str:
    """A column whose type is known."""
    if source != STRING or target.name not in FORMS:
        return f"try_cast({spark_identifier(name)} AS {target.spark})"
    return to_spark(Cast(formed(Column(name, STRING), target), target))


def tried_of_any(name: str, target: SqlType) -> str:
    """A column of a table whose types are not known here; Spark decides by them when it plans."""
    column, form = spark_identifier(name), FORMS.get(target.name)
    kind = "TIMESTAMP_LTZ" if target.name == "TIMESTAMP_LTZ" else target.spark
    value = f"try_cast({column} AS {kind})"
    if form is None:
        return value
    matches = f"regexp_like(CAST({column} AS STRING), {spark_literal(form.pattern)})"
    whole = f"CASE WHEN typeof({column}) <> 'string' OR {matches} THEN {value} END"
    if fits(whole):
        return whole
    return f"CASE\n  WHEN typeof({column}) <> 'string'\n    OR {matches}\n  THEN {value}\nEND"
