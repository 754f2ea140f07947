"""A row as JSON for whoever looks at it: the declared columns, sensitive ones masked."""

from __future__ import annotations

import textwrap

from headgate.conditions.expr_literals import spark_identifier
from headgate.core.sql.compile_fragments import filled
from headgate.quality.compile.source import MASKED, Source
from headgate.quality.compile.unique import TIME_OPTIONS


def row_text(source: Source) -> str:
    """The declared columns of one source's row."""
    columns = textwrap.indent(filled([_shown(source, name) for name in source.types]), "  ")
    return f"to_json(struct(\n{columns}\n), {TIME_OPTIONS})"


def _shown(source: Source, name: str) -> str:
    column = spark_identifier(name)
    return f"'{MASKED}' AS {column}" if name in source.hidden else column
