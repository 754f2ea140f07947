"""Remove a dataset from the project: scaffolded files, baselines and the manifest; tables stay."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headgate.core.sql.script import PLACEHOLDERS
from headgate.declarations.project import find_dataset
from headgate.errors import ConflictError, DeclarationError
from headgate.pipeline.compile.templates import is_sealed
from headgate.pipeline.loader import load_dataset
from headgate.pipeline.revision import TEMPLATES
from headgate.pipeline.scaffold import (
    CONFLICT_FILE,
    FOLDER,
    MODELS,
    Bases,
    read_text,
    reading_models,
    referring_files,
    source_file,
)


@dataclass(frozen=True)
class RemovedFile:
    """One file of the dataset; `edited` ones hold work that is nowhere else."""

    path: str
    edited: bool


@dataclass(frozen=True)
class Removal:
    """What `apply_removal` will remove, the edited files that stay, and the tables that stay."""

    dataset: str
    files: tuple[RemovedFile, ...]
    kept: tuple[RemovedFile, ...]
    tables: tuple[str, ...]


def plan_removal(root: Path, name: str, *, whole: bool, with_edits: bool) -> Removal:
    """Name every file; raises when a model that stays could no longer be built."""
    find_dataset(root, name)
    found = [*_scaffolded(root, name), *(_declared(root, name) if whole else ())]
    files = tuple(file for file in found if with_edits or not file.edited)
    tables = _tables(root, name)
    _require_unused(root, tables, {file.path for file in files})
    kept = tuple(file for file in found if file not in files)
    return Removal(name, files, kept, tables)


def _tables(root: Path, name: str) -> tuple[str, ...]:
    """Bronze and silver; a manifest that is not valid can be removed like any other."""
    try:
        dataset = load_dataset(find_dataset(root, name), PLACEHOLDERS).value
    except DeclarationError:
        return ()
    return dataset.bronze_table, dataset.silver_table


def apply_removal(root: Path, removal: Removal) -> None:
    """Remove the files, the bases, and the folders that are empty then."""
    for file in removal.files:
        (root / file.path).unlink(missing_ok=True)
    bases = Bases(root, removal.dataset)
    bases.forget_copied()
    for path in bases.paths():
        if not (root / path).exists():
            bases.forget(path)
    for folder in (root / TEMPLATES / removal.dataset, root / "datasets" / removal.dataset):
        _remove_if_empty(folder)


def _scaffolded(root: Path, name: str) -> Iterator[RemovedFile]:
    bases = Bases(root, name)
    templates = (root / TEMPLATES / name).glob("*.sql.tmpl")
    compiled = {path.relative_to(root).as_posix() for path in templates}
    for path in sorted({*bases.paths(), *compiled}):
        text = read_text(root / path)
        if text is not None:
            untouched = text == bases.read(path) or is_sealed(text)
            yield RemovedFile(path, edited=not untouched)
        if (root / f"{path}{CONFLICT_FILE}").is_file():
            yield RemovedFile(f"{path}{CONFLICT_FILE}", edited=False)


def _declared(root: Path, name: str) -> Iterator[RemovedFile]:
    """The manifest and what stands beside it, and the schema of the rows."""
    folder = root / "datasets" / name
    for path in sorted(folder.rglob("*")):
        if path.is_file() and FOLDER not in path.relative_to(folder).parts:
            yield RemovedFile(path.relative_to(root).as_posix(), edited=False)
    schema = root / "schemas" / f"{name}.json"
    if schema.is_file():
        yield RemovedFile(schema.relative_to(root).as_posix(), edited=False)


def _require_unused(root: Path, tables: tuple[str, ...], removed: set[str]) -> None:
    """dbt reads no project in which a model asks for a source or a model that is not there."""
    models = {Path(path).stem for path in removed if path.endswith(".sql")}
    users = {file for model in models for file in referring_files(root, model)}
    for table in tables:
        source = source_file(root / MODELS, table)
        if source and source.relative_to(root).as_posix() in removed:
            users |= {*reading_models(root / MODELS, table)}
    left = sorted(path for u in users if (path := u.relative_to(root).as_posix()) not in removed)
    if left:
        raise ConflictError(
            "dbt files that stay build on what would be removed",
            why=", ".join(left),
            fix="change or remove those first; --with-edits removes scaffolded ones too",
        )


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(path.is_file() for path in folder.rglob("*")):
        shutil.rmtree(folder)
