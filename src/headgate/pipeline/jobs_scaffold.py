"""A manifest → every file that runs it: SQL templates, a dbt model, its source and its tests.

What a person edited is never overwritten: edits and the manifest's changes are merged, and where
both changed the same lines the file stays as it is and the conflict is written beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from headgate.errors import DeclarationError, Fault
from headgate.pipeline.bases import Bases, read_text, write_source
from headgate.pipeline.compile import compile_dbt_files as dbt_files
from headgate.pipeline.compile.compile_dataset import CompiledDataset
from headgate.pipeline.compile.edited import check_edited
from headgate.pipeline.compile.seal import choose, conflict_line, is_sealed
from headgate.pipeline.compile.staging import staging_model
from headgate.pipeline.dbt_sources import reading_models, source_file
from headgate.pipeline.declaration import TEMPLATES, compiled
from headgate.pipeline.merging import three_way

CONFLICT_FILE = ".conflict"
MODELS = "dbt/models"


class Status(StrEnum):
    """What became of a file; a conflict is the one that asks for a person."""

    WRITTEN = "written"
    UPDATED = "updated"
    MERGED = "merged"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    CONFLICT = "CONFLICT"


@dataclass(frozen=True)
class ScaffoldFile:
    """One file: what stands there, what the manifest gives, and what will stand there."""

    path: str
    status: Status
    words: str
    before: str | None
    after: str | None
    fresh: str | None
    conflict: str | None = None

    @property
    def changes(self) -> bool:
        return self.after is not None and self.after != self.before


@dataclass(frozen=True)
class Scaffold:
    """What `apply` will do; `faults` are those of SQL that a person edited."""

    dataset: str
    files: tuple[ScaffoldFile, ...]
    faults: tuple[Fault, ...]

    @property
    def conflicts(self) -> tuple[ScaffoldFile, ...]:
        return tuple(file for file in self.files if file.status is Status.CONFLICT)


def plan_scaffold(root: Path, name: str) -> Scaffold:
    """Decide about every file and write nothing; a faulty manifest raises all its faults."""
    fresh = compiled(root, name)
    bases = Bases(root, name)
    managed = [decide(bases, path, text) for path, text in _fresh_files(fresh)]
    files = tuple(_claimed(root, fresh, file) for file in managed)
    return Scaffold(name, files, _faults(fresh, files))


def apply(root: Path, scaffold: Scaffold) -> None:
    """Write the files, and what was scaffolded as the base of the next merge."""
    bases = Bases(root, scaffold.dataset)
    bases.forget_copied()
    for file in scaffold.files:
        if file.changes and file.after is not None:
            write_source(root / file.path, file.after)
        if file.conflict is not None:
            write_source(root / f"{file.path}{CONFLICT_FILE}", file.conflict)
        if file.fresh is not None:
            _remember(bases, file, file.fresh)


def open_conflicts(root: Path, name: str) -> tuple[str, ...]:
    """The files of a dataset that wait for a person's decision."""
    bases = Bases(root, name)
    return tuple(path for path in bases.paths() if _is_open(bases, path))


def _remember(bases: Bases, file: ScaffoldFile, fresh: str) -> None:
    if file.status is not Status.CONFLICT:
        bases.keep(file.path, fresh)
        (bases.root / f"{file.path}{CONFLICT_FILE}").unlink(missing_ok=True)
    elif file.conflict is not None:
        bases.keep_next(file.path, fresh)


def _fresh_files(fresh: CompiledDataset) -> Iterator[tuple[str, str]]:
    dataset, manifest = fresh.dataset, f"datasets/{fresh.dataset.name}/dataset.yml"
    stem = staging_model(dataset)
    for template in fresh.templates:
        yield f"{TEMPLATES}/{dataset.name}/{template.file}.tmpl", template.text
    yield _source_path(fresh), dbt_files.source_entry(dataset, manifest)
    yield f"{MODELS}/staging/{fresh.staging.file}", fresh.staging.text
    yield f"{MODELS}/staging/{stem}.yml", dbt_files.model_tests(dataset, manifest)


def _source_path(fresh: CompiledDataset) -> str:
    return f"{MODELS}/sources/{staging_model(fresh.dataset).removeprefix('stg_')}.yml"


def decide(bases: Bases, path: str, fresh: str) -> ScaffoldFile:
    """What becomes of one file, given what stands there and what was scaffolded last."""
    before = read_text(bases.root / path)
    base = _base(bases, path, before)

    def file(status: Status, words: str, after: str | None) -> ScaffoldFile:
        return ScaffoldFile(path, status, words, before, after, fresh)

    if before is None:
        return file(Status.WRITTEN, "new", fresh)
    if before == fresh:
        return file(Status.UNCHANGED, "as the manifest gives it", before)
    if marked := conflict_line(before):
        words = f"conflict markers stand in it, first on line {marked}: settle and remove them"
        return ScaffoldFile(path, Status.CONFLICT, words, before, None, None)
    if _is_open(bases, path):
        words = f"still open: see {path}{CONFLICT_FILE}"
        return ScaffoldFile(path, Status.CONFLICT, words, before, None, None)
    if before == base:
        return file(Status.UPDATED, "it was not edited", fresh)
    if base == fresh:
        return file(Status.KEPT, "edited here; the manifest gives nothing new", before)
    return _merged(path, before, base or "", fresh)


def _merged(path: str, before: str, base: str, fresh: str) -> ScaffoldFile:
    merge = three_way(before, base, fresh)
    if not merge.conflicts:
        words = "your edits and the manifest's changes"
        return ScaffoldFile(path, Status.MERGED, words, before, merge.text, fresh)
    count = "one place" if merge.conflicts == 1 else f"{merge.conflicts} places"
    words = f"{count} changed on both sides: see {path}{CONFLICT_FILE}"
    return ScaffoldFile(path, Status.CONFLICT, words, before, None, fresh, merge.text)


def _base(bases: Bases, path: str, before: str | None) -> str | None:
    """A sealed template is its own base; a conflict whose file is gone was settled by a person."""
    if before is not None and is_sealed(before):
        return before
    settled = bases.read_next(path) if not _is_open(bases, path) else None
    return settled or bases.read(path)


def _is_open(bases: Bases, path: str) -> bool:
    return (bases.root / f"{path}{CONFLICT_FILE}").is_file()


def _claimed(root: Path, fresh: CompiledDataset, file: ScaffoldFile) -> ScaffoldFile:
    """A dataset that dbt already knows under other names keeps its own files."""
    if file.before is not None or not file.path.startswith(MODELS):
        return file
    table = fresh.dataset.silver_table
    if file.path == _source_path(fresh):
        owner, words = source_file(root / MODELS, table), f"has {table}"
    else:
        readers = reading_models(root / MODELS / "staging", table)
        owner, words = (readers or (None,))[0], f"reads {table}"
    if owner is None or owner == root / file.path or owner.stem == staging_model(fresh.dataset):
        return file
    said = f"not needed: {owner.relative_to(root).as_posix()} {words}"
    return ScaffoldFile(file.path, Status.KEPT, said, None, None, None)


def _faults(fresh: CompiledDataset, files: tuple[ScaffoldFile, ...]) -> tuple[Fault, ...]:
    """What is wrong with the SQL as it will stand there."""
    folder = f"{TEMPLATES}/{fresh.dataset.name}"
    texts = {
        file.path.removeprefix(f"{folder}/").removesuffix(".tmpl"): file.after or file.before or ""
        for file in files
        if file.path.startswith(f"{folder}/")
    }
    try:
        check_edited(fresh.dataset, choose(fresh.templates, texts), folder)
    except DeclarationError as error:
        return error.faults
    return ()
