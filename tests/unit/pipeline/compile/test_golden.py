"""The SQL of the shipped datasets is what it was, byte by byte; a change of it is seen in review."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.manifests import ROOT, load_templates

from headgate.core.sql.script import PLACEHOLDERS
from headgate.declarations.project import available_datasets
from headgate.pipeline.compile.dataset import compile_dataset
from headgate.pipeline.loader import load_dataset
from headgate.pipeline.revision import compiled

GOLDEN = ROOT / "tests" / "golden"
TEMPLATES = ROOT / "spark" / "sql"
DATASETS = available_datasets(ROOT)
VALUES = {"TOPIC": "taxi.raw_trips", "BOOTSTRAP_SERVERS": "127.0.0.1:9092"}
# HEADGATE_GOLDEN=write pytest tests/unit/pipeline/compile/test_golden.py
WRITE = os.environ.get("HEADGATE_GOLDEN") == "write"
COMPILED = {
    (name, template.file): template
    for name in DATASETS
    for template in compiled(ROOT, name).templates
}
FILES = [f"{name}/{file}" for name, file in COMPILED]
every_file = pytest.mark.parametrize(("name", "file"), COMPILED, ids=FILES)


@every_file
def test_the_rendered_file_equals_the_golden_one(name: str, file: str) -> None:
    rendered = COMPILED[name, file].render(VALUES)
    golden = GOLDEN / name / file
    if WRITE:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(rendered)
    assert rendered == golden.read_text(), "HEADGATE_GOLDEN=write writes the golden files anew"


@every_file
def test_the_committed_template_is_what_the_manifest_gives(name: str, file: str) -> None:
    committed = (TEMPLATES / name / f"{file}.tmpl").read_text()
    assert committed == COMPILED[name, file].text, f"headgate dataset build {name} --refresh"


@pytest.mark.parametrize("name", DATASETS)
def test_there_is_no_golden_file_and_no_template_without_its_source(name: str) -> None:
    files = {file for of, file in COMPILED if of == name}
    assert {path.name for path in (GOLDEN / name).iterdir()} == files
    assert {path.name for path in (TEMPLATES / name).iterdir()} == {f"{f}.tmpl" for f in files}


@pytest.mark.parametrize("name", DATASETS)
def test_the_same_manifest_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    manifest = f"datasets/{name}/dataset.yml"
    elsewhere = tmp_path / "dataset.yml"
    elsewhere.write_text("# another comment\n\n" + (ROOT / manifest).read_text())
    again = compile_dataset(load_dataset(elsewhere, PLACEHOLDERS), load_templates(), manifest)
    assert again.templates == tuple(t for (of, _), t in COMPILED.items() if of == name)


@every_file
def test_lines_are_short_enough_to_read(name: str, file: str) -> None:
    assert max(map(len, COMPILED[name, file].text.splitlines())) <= 110
