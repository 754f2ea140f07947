"""Notebooks over the views of a rule table: for Jupyter over Connect, for Zeppelin over JDBC, or as plain SQL.

Text and SQL stand in `notebook_templates`: three templates hold the queries (`rule_table`, `pair_side`,
`pair`), one for each form lays them out as a file. The same rule set gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import jinja2

from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.core.sql.fragments import CATALOG, DEAD_LETTERS, comment
from headgate.declarations.types import in_words
from headgate.hashing.contract import HashContract
from headgate.hashing.spark import row_hash_sql
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.compile.tables import names_of

Form = Literal["jupyter", "zeppelin", "sql"]
SUFFIXES: Mapping[Form, str] = {"jupyter": ".ipynb", "zeppelin": ".zpln", "sql": ".sql"}
TEMPLATES = Path(__file__).with_name("notebook_templates")


@dataclass(frozen=True)
class Query:
    """A query of a notebook, with its title and what its result shows."""

    title: str
    description: str
    sql: str


@dataclass(frozen=True)
class Note:
    """A notebook before it has a form; `about` is its first cell, in Markdown."""

    name: str
    title: str
    about: str
    queries: tuple[Query, ...]

    def cell_id(self, number: int) -> str:
        """The id of a cell: the same in every run, so that the file has the same bytes."""
        return hashlib.sha256(f"{self.name} {number}".encode()).hexdigest()[:12]


def compile_notes(judged: JudgedTable, contract: HashContract | None = None) -> tuple[Note, ...]:
    """Compile the notes of a rule table.

    A reconciled pair has three: one for each side, whose queries read that side alone, and one for
    both. Any other table has one. With `contract`, rows in the lake are hashed by it.
    """
    table = judged.table
    name = table.name
    reconcile = table.reconcile
    if reconcile is None:
        return (_compile_note("rule_table.j2", name, f"Data quality of {name}", judged),)
    sides = [
        _compile_note(
            "pair_side.j2",
            f"{name}_{side}",
            f"Reconciliation of {name}: {source.dc}",
            judged,
            side=side,
            source=source,
            rows=getattr(reconcile.rows, side),
            contract=contract,
            catalog=CATALOG,
            dead_letters=DEAD_LETTERS,
        )
        for side, source in table.sources.items()
    ]
    return (
        *sides,
        _compile_note("pair.j2", f"{name}_reconcile", f"Reconciliation of {name}", judged),
    )


def render_note(note: Note, form: Form) -> str:
    """Lay out a note as a file: same note, same bytes. `headgate sql -f` runs the form `sql`."""
    text = _render_template(f"{form}.j2", note=note)
    if form == "sql":
        return text
    return json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"


def _compile_note(
    template: str, name: str, title: str, judged: JudgedTable, **values: object
) -> Note:
    """Render a template; its `{% call query(…) %}` blocks become queries, the rest the first cell."""
    queries: list[Query] = []

    def add_query(title: str, description: str, caller: Callable[[], str]) -> str:
        queries.append(Query(title, description, caller().strip()))
        return ""

    about = _render_template(
        template,
        query=add_query,
        judged=judged,
        table=judged.table,
        names=names_of(judged.table),
        **values,
    )
    return Note(name, title, about.strip(), tuple(queries))


def _render_template(template: str, **values: object) -> str:
    functions = {
        "comment": comment,
        "identifier": spark_identifier,
        "literal": spark_literal,
        "row_hash": row_hash_sql,
        "write_duration": in_words,
    }
    return _environment().get_template(template).render(**functions, **values)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # it is SQL and Markdown, not HTML
    )
