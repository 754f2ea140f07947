"""Which of the project's dbt files declare or read a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headgate.declarations.spec_document import Plain, read_document


def source_file(models: Path, table: str) -> Path | None:
    """The YAML file that declares `schema.table` as a source."""
    for file in _descriptions(models):
        document = read_document(file.name, file.read_text(encoding="utf-8"), {})
        if table in _sources(document.data):
            return file
    return None


def reading_models(folder: Path, table: str) -> tuple[Path, ...]:
    """The models in that folder that read the source `schema.table`."""
    schema, name = (re.escape(part) for part in table.split(".", 1))
    call = re.compile(rf"source\(\s*['\"]{schema}['\"]\s*,\s*['\"]{name}['\"]\s*\)")
    return tuple(file for file in _models(folder) if call.search(file.read_text("utf-8")))


def referring_files(root: Path, model: str) -> tuple[Path, ...]:
    """The models, tests and descriptions in `dbt` that refer to the model of this name."""
    call = re.compile(rf"ref\(\s*['\"]{re.escape(model)}['\"]")
    folders = (root / "dbt" / name for name in ("models", "tests", "snapshots", "analyses"))
    files = [file for folder in folders for file in (*_models(folder), *_descriptions(folder))]
    return tuple(file for file in files if call.search(file.read_text("utf-8")))


def _descriptions(folder: Path) -> list[Path]:
    return sorted([*folder.rglob("*.yml"), *folder.rglob("*.yaml")])


def _models(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.sql"))


def _sources(data: Plain) -> Iterator[str]:
    listed = data.get("sources") if isinstance(data, dict) else None
    for source in listed if isinstance(listed, list) else []:
        if isinstance(source, dict):
            tables = source.get("tables")
            for table in tables if isinstance(tables, list) else []:
                if isinstance(table, dict):
                    yield f"{source.get('name')}.{table.get('name')}"
