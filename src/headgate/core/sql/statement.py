"""Statements as they stand in the file: words for the reader, the step's mark, the SQL."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from headgate.core.sql.compile_fragments import branch, comment

WIDTH = 96


class Section(NamedTuple):
    """Statements that belong together, under a title for the table of contents."""

    title: str
    statements: Sequence[str]


class Sections(NamedTuple):
    """The views of a rule table, and what its job does with them."""

    views: Sequence[Section]
    engine: Sequence[str]


def statement(step: str, words: str, sql: str) -> str:
    """One statement under its mark, or without one; `words` say why it is there."""
    said = "".join(f"{comment(line)}\n" for line in textwrap.wrap(words, WIDTH))
    mark = f"-- step: {step}\n" if step else ""
    return f"{said}{mark}{sql};"


def view(name: str, words: str, query: str, step: str = "") -> str:
    return statement(step, words, f"CREATE OR REPLACE TEMPORARY VIEW {name} AS\n{query}")


def select(columns: Sequence[str], *clauses: str) -> str:
    """A SELECT with one column a line and one clause a line."""
    return "\n".join([f"SELECT\n{indented(columns)}", *clauses])


def indented(columns: Sequence[str], by: int = 2) -> str:
    return textwrap.indent(",\n".join(columns), " " * by)


def nested(query: str, alias: str = "") -> str:
    """A query in brackets, as FROM takes it."""
    return f"(\n{textwrap.indent(query, '  ')}\n){f' {alias}' if alias else ''}"


def case(branches: Sequence[tuple[str, str]], default: str = "") -> str:
    """A CASE with one branch a line."""
    found = [textwrap.indent(branch(condition, result), "  ") for condition, result in branches]
    last = [f"  ELSE {default}"] if default else []
    return "\n".join(["CASE", *found, *last, "END"])
