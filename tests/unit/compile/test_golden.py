"""The taxi SQL is what it was, byte by byte; a change of it is seen in review."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.compile.manifests import ROOT, layouts

from headgate.compile.dataset import PLACEHOLDERS, compile_dataset
from headgate.jobs.declaration import compiled
from headgate.spec.loader import load_dataset

GOLDEN = ROOT / "tests" / "golden" / "taxi"
TEMPLATES = ROOT / "spark" / "sql" / "taxi"
VALUES = {"TOPIC": "taxi.raw_trips", "BOOTSTRAP_SERVERS": "127.0.0.1:9092"}
# HEADGATE_GOLDEN=write pytest tests/unit/compile/test_golden.py
WRITE = os.environ.get("HEADGATE_GOLDEN") == "write"
COMPILED = {template.file: template for template in compiled(ROOT, "taxi").templates}


@pytest.mark.parametrize("file", COMPILED)
def test_the_rendered_file_equals_the_golden_one(file: str) -> None:
    rendered = COMPILED[file].render(VALUES)
    golden = GOLDEN / file
    if WRITE:
        golden.write_text(rendered)
    assert rendered == golden.read_text(), "HEADGATE_GOLDEN=write writes the golden files anew"


@pytest.mark.parametrize("file", COMPILED)
def test_the_committed_template_is_what_the_manifest_gives(file: str) -> None:
    committed = (TEMPLATES / f"{file}.tmpl").read_text()
    assert committed == COMPILED[file].text, "headgate dataset build taxi --refresh"


def test_there_is_no_golden_file_and_no_template_without_its_source() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(COMPILED)
    assert {path.name for path in TEMPLATES.iterdir()} == {f"{file}.tmpl" for file in COMPILED}


def test_the_same_manifest_gives_the_same_bytes(tmp_path: Path) -> None:
    text = (ROOT / "datasets/taxi/dataset.yml").read_text()
    elsewhere = tmp_path / "dataset.yml"
    elsewhere.write_text("# another comment\n\n" + text)
    again = compile_dataset(
        load_dataset(elsewhere, PLACEHOLDERS), layouts(), "datasets/taxi/dataset.yml"
    )
    assert again.templates == tuple(COMPILED.values())


@pytest.mark.parametrize("file", COMPILED)
def test_lines_are_short_enough_to_read(file: str) -> None:
    assert max(map(len, COMPILED[file].text.splitlines())) <= 110
