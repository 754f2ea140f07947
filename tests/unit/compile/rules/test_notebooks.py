"""Notebooks are made from the rule set: what stands in the repository is what would be made."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from headgate.compile.rules.judge import judged_table
from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.notebooks import SUFFIXES, Form, notebook, queries
from headgate.spec.rules_loader import find_table, load_rules

ROOT = Path(__file__).resolve().parents[4]
TABLES = ("customer", "orders", "taxi")
FORMS: tuple[Form, ...] = ("jupyter", "zeppelin")


def judged(name: str) -> JudgedTable:
    rules = load_rules(find_table(ROOT, name), {"TOPIC": "taxi.raw_trips"})
    return judged_table(rules, rules.value.table(name))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table", TABLES)
def test_the_committed_notebook_is_what_the_rule_set_gives(table: str, form: Form) -> None:
    committed = ROOT / "notebooks" / f"{table}{SUFFIXES[form]}"
    assert committed.read_text("utf-8") == notebook(judged(table), form)


@pytest.mark.parametrize("table", TABLES)
def test_every_code_cell_is_python_and_asks_what_the_queries_ask(table: str) -> None:
    cells: list[dict[str, Any]] = json.loads(notebook(judged(table), "jupyter"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for text in code:
        ast.parse(text)
    assert [query.sql in "\n".join(code) for query in queries(judged(table))].count(False) == 0
    assert len({cell["id"] for cell in cells}) == len(cells)


@pytest.mark.parametrize("table", TABLES)
def test_zeppelin_asks_the_same_over_jdbc(table: str) -> None:
    paragraphs = json.loads(notebook(judged(table), "zeppelin"))["paragraphs"]
    asked = [p["text"].removeprefix("%jdbc\n") for p in paragraphs if p["text"].startswith("%jdbc")]
    assert asked == [query.sql for query in queries(judged(table))]


def test_every_metric_of_the_rule_set_is_a_column_that_is_shown() -> None:
    customer = judged("customer")
    windows = next(q.sql for q in queries(customer) if q.title == "Metrics by window")
    for metric in ("hash_mismatch", "missing_cloud", "delete_count"):
        assert f"`dq.cassandra.{metric}`" in windows
