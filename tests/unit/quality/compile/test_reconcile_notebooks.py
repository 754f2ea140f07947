"""Notebooks of a reconciled pair: three in each form, each side's pinned to its data centre."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from headgate.core.sql.script import parse_script
from headgate.hashing.contract import load_contract
from headgate.quality.compile.resolve import JudgedTable, judged_table
from headgate.quality.notebook import SUFFIXES, Form, Note, compile_notes, render_note
from headgate.quality.spec.loader import find_table, load_rules

ROOT = Path(__file__).resolve().parents[4]
FORMS: tuple[Form, ...] = ("jupyter", "zeppelin", "sql")
PAIRS = ("business", "customer", "orders")
KINDS = ("onprem", "cloud", "reconcile")


def judged(name: str) -> JudgedTable:
    rules = load_rules(find_table(ROOT, name), {"TOPIC": "any"})
    return judged_table(rules, rules.value.table(name))


def notes_of(name: str) -> dict[str, Note]:
    table = judged(name)
    path = table.table.reconcile.contract if table.table.reconcile else None
    contract = load_contract(ROOT / path).value if path else None
    return {note.name: note for note in compile_notes(table, contract)}


@pytest.fixture(scope="module")
def notes() -> dict[str, Note]:
    return notes_of("business")


@pytest.mark.parametrize("name", PAIRS)
def test_there_is_one_for_each_side_and_one_for_both(name: str) -> None:
    """Also of a pair whose file has no `reconcile:` section."""
    assert list(notes_of(name)) == [f"{name}_{kind}" for kind in KINDS]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PAIRS)
def test_the_committed_file_is_what_the_rule_set_gives(name: str, form: Form) -> None:
    for note in notes_of(name).values():
        committed = ROOT / "notebooks" / f"{note.name}{SUFFIXES[form]}"
        assert committed.read_text("utf-8") == render_note(note, form)


def test_the_rules_of_a_pair_stand_in_the_notebook_of_both_sides() -> None:
    found = notes_of("customer")
    matches = [
        query.sql for query in found["customer_reconcile"].queries if "dq_rules" in query.sql
    ]
    assert len(matches) == 1
    for rule in judged("customer").rules:
        assert f"| `{rule.name}` | {rule.status} |" in found["customer_reconcile"].about
        assert rule.name not in found["customer_onprem"].about


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
