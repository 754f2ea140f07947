"""Notebooks of a reconciled pair: three in each form, each side's pinned to its data centre."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from headgate.compile.rules.judge import judged_table
from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.notebooks import SUFFIXES, Form, Note, compile_notes, render_note
from headgate.compile.script import parse_script
from headgate.spec.hash_contract_loader import load_contract
from headgate.spec.rules_loader import find_table, load_rules

ROOT = Path(__file__).resolve().parents[4]
FORMS: tuple[Form, ...] = ("jupyter", "zeppelin", "sql")


def judged(name: str) -> JudgedTable:
    rules = load_rules(find_table(ROOT, name), {"TOPIC": "any"})
    return judged_table(rules, rules.value.table(name))


@pytest.fixture(scope="module")
def notes() -> dict[str, Note]:
    contract = load_contract(ROOT / "contracts" / "business_table.hash.yml").value
    return {note.name: note for note in compile_notes(judged("business"), contract)}


def test_there_is_one_for_each_side_and_one_for_both(notes: dict[str, Note]) -> None:
    assert list(notes) == ["business_onprem", "business_cloud", "business_reconcile"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["business_onprem", "business_cloud", "business_reconcile"])
def test_the_committed_file_is_what_the_rule_set_gives(
    notes: dict[str, Note], name: str, form: Form
) -> None:
    committed = ROOT / "notebooks" / f"{name}{SUFFIXES[form]}"
    assert committed.read_text("utf-8") == render_note(notes[name], form)


@pytest.mark.parametrize(
    ("name", "own", "others"),
    [
        ("business_onprem", "data centre: onprem", ("cloud", "topic2", "azure")),
        ("business_cloud", "data centre: azure", ("onprem", "topic1")),
    ],
)
def test_a_side_asks_its_own_data_centre_and_no_other(
    notes: dict[str, Note], name: str, own: str, others: tuple[str, ...]
) -> None:
    for query in notes[name].queries:
        assert own in query.sql
        assert not [word for word in others if word in query.sql]


def test_only_the_third_knows_both_sides(notes: dict[str, Note]) -> None:
    asked = "\n".join(query.sql for query in notes["business_reconcile"].queries)
    assert "onprem_version" in asked
    assert "cloud_version" in asked
    assert "dq_hash_check" in asked


def test_each_sql_file_is_one_statement_a_query(notes: dict[str, Note]) -> None:
    for note in notes.values():
        steps = parse_script(note.name, render_note(note, "sql")).steps
        assert len(steps) == len(note.queries)


def test_every_code_cell_is_python(notes: dict[str, Note]) -> None:
    for note in notes.values():
        cells = json.loads(render_note(note, "jupyter"))["cells"]
        code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        assert len(code) > len(note.queries)
        assert all(ast.parse("".join(lines)).body for lines in code)


def test_a_pair_that_is_judged_as_a_whole_has_one_notebook_only() -> None:
    assert [note.name for note in compile_notes(judged("customer"))] == ["customer"]
