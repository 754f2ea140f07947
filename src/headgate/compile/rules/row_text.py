"""A row as JSON for whoever looks at it: the declared columns, sensitive ones masked."""

from __future__ import annotations

from headgate.compile.fragments import call
from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.source import MASKED, Source
from headgate.compile.rules.unique import TIME_OPTIONS
from headgate.expr.literals import spark_identifier, spark_literal


def row_text(judged: JudgedTable, sources: tuple[Source, ...]) -> str:
    """The declared columns; of a pair those of both sides."""
    if not judged.table.is_pair:
        return source_text(sources[0])
    sides = [
        f"{spark_literal(s.declared.alias)}, {_fields(s, f'_{s.declared.alias}.')}" for s in sources
    ]
    return call("to_json", [call("named_struct", sides), TIME_OPTIONS])


def source_text(source: Source) -> str:
    """The declared columns of one source's row."""
    return call("to_json", [_fields(source, ""), TIME_OPTIONS])


def _fields(source: Source, before: str) -> str:
    pairs = [f"{spark_literal(name)}, {_shown(source, name, before)}" for name in source.types]
    return call("named_struct", pairs)


def _shown(source: Source, name: str, before: str) -> str:
    if name in source.hidden:
        return spark_literal(MASKED)
    return f"{before}{spark_identifier(name)}"
