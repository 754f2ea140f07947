"""The SQL of the shipped rule sets is what it was, byte by byte; a change of it is seen in review."""

from __future__ import annotations

import os

import pytest
from tests.support.rule_tables import ROOT, compile_shipped, shipped_table

from headgate.core.sql.script import Template
from headgate.quality.compile.file import compile_table
from headgate.quality.compile.tables import ENGINE_FILE, FILE

GOLDEN = ROOT / "tests" / "golden" / "rules"
TABLES = ("business", "customer", "orders", "taxi")
VALUES = {"TOPIC": "taxi.raw_trips", "BOOTSTRAP_SERVERS": "127.0.0.1:9092"}
# HEADGATE_GOLDEN=write pytest tests/unit/quality/compile/test_compile_golden.py
WRITE = os.environ.get("HEADGATE_GOLDEN") == "write"


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("file", [FILE, ENGINE_FILE])
def test_the_rendered_file_equals_the_golden_one(name: str, file: str) -> None:
    compiled = compile_shipped(name)
    text = compiled.text if file == FILE else compiled.engine
    rendered = Template(file, text).render(VALUES)
    golden = GOLDEN / name / file
    if WRITE:
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(rendered, encoding="utf-8")
    assert rendered == golden.read_text("utf-8"), "HEADGATE_GOLDEN=write writes the files anew"


@pytest.mark.parametrize("name", TABLES)
def test_the_same_rules_give_the_same_bytes(name: str) -> None:
    assert compile_table(shipped_table(name), "a.yml") == compile_table(
        shipped_table(name), "a.yml"
    )


def test_there_is_no_golden_file_without_its_table() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(TABLES)
