"""Notebooks are made from the rule set: what stands in the repository is what would be made."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.quality.compile.resolve import judged_table
from headgate.quality.notebook import SUFFIXES, Form, Note, compile_notes, render_note
from headgate.quality.spec.loader import find_table, load_rules

ROOT = Path(__file__).resolve().parents[4]
TABLES = ("taxi",)
FORMS: tuple[Form, ...] = ("jupyter", "zeppelin")


def note_of(name: str) -> Note:
    rules = load_rules(find_table(ROOT, name), {"TOPIC": "taxi.raw_trips"})
    (note,) = compile_notes(judged_table(rules, rules.value.table(name)))
    return note


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table", TABLES)
def test_the_committed_notebook_is_what_the_rule_set_gives(table: str, form: Form) -> None:
    committed = ROOT / "notebooks" / f"{table}{SUFFIXES[form]}"
    assert committed.read_text("utf-8") == render_note(note_of(table), form)


@pytest.mark.parametrize("table", TABLES)
def test_every_code_cell_is_python_and_asks_what_the_queries_ask(table: str) -> None:
    cells: list[dict[str, Any]] = json.loads(render_note(note_of(table), "jupyter"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for text in code:
        ast.parse(text)
    assert [query.sql in "\n".join(code) for query in note_of(table).queries].count(False) == 0
    assert len({cell["id"] for cell in cells}) == len(cells)


@pytest.mark.parametrize("table", TABLES)
def test_zeppelin_asks_the_same_over_jdbc(table: str) -> None:
    paragraphs = json.loads(render_note(note_of(table), "zeppelin"))["paragraphs"]
    asked = [p["text"].removeprefix("%jdbc\n") for p in paragraphs if p["text"].startswith("%jdbc")]
    assert asked == [query.sql for query in note_of(table).queries]


def test_every_metric_of_the_rule_set_is_a_column_that_is_shown() -> None:
    windows = next(q.sql for q in note_of("taxi").queries if q.title == "Metrics by window")
    for metric in ("no_time", "bad_amount", "duplicate"):
        assert f"`dq.taxi.{metric}`" in windows


@pytest.mark.parametrize("name", ["taxi", "customer"])
def test_a_reason_of_any_characters_stays_in_its_cell_of_the_table(name: str) -> None:
    rules = load_rules(find_table(ROOT, name), {"TOPIC": "taxi.raw_trips"})
    table = judged_table(rules, rules.value.table(name))
    reason = "a | \"b\"\n## <c> & 'd' {{ e }} {% call %}"
    hostile = replace(table, rules=(replace(table.rules[0], reason=reason), *table.rules[1:]))
    note, plain = compile_notes(hostile)[-1], compile_notes(table)[-1]
    assert note.about.count("\n") == plain.about.count("\n")
    assert note.queries == plain.queries
    cell = json.loads(render_note(note, "jupyter"))["cells"][0]
    assert "a \\| \"b\" ## <c> & 'd' {{ e }} {% call %} |" in "".join(cell["source"])
