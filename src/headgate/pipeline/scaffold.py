"""Scaffold a dataset: from its manifest, write SQL templates, the dbt model, its source and its tests.

A person's edits are never overwritten: they are merged (`git merge-file`) with the manifest's changes
against the baseline in `datasets/<name>/.scaffold/`, where each scaffolded file is kept under its own
path and committed. Where both changed the same lines the file stays, the conflict stands beside it;
a baseline ending in `.next` stands for a conflict that is not settled yet. Plan first, then apply.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from headgate.config.env_files import write_atomically
from headgate.declarations.document import Plain, read_document
from headgate.errors import DeclarationError, Fault, OperationError, UnavailableError
from headgate.pipeline.compile.dataset import CompiledDataset
from headgate.pipeline.compile.dbt_files import model_tests, source_entry, staging_model
from headgate.pipeline.compile.templates import check_edited, choose, conflict_line, is_sealed
from headgate.pipeline.revision import TEMPLATES, compiled

FOLDER = ".scaffold"
NEXT = ".next"
_COMPILED_FROM = re.compile(r"Compiled from datasets/([^/]+)/dataset\.yml")


@dataclass(frozen=True)
class Bases:
    """The bases of one dataset's files; paths are relative to the project.

    A folder that was copied from another dataset brings that one's bases along: they name the
    manifest that they were compiled from, and are as good as absent here.
    """

    root: Path
    dataset: str

    @property
    def folder(self) -> Path:
        return self.root / "datasets" / self.dataset / FOLDER

    def read(self, path: str) -> str | None:
        return self._read_own(path)

    def read_next(self, path: str) -> str | None:
        """What the base will be once the conflict is settled."""
        return self._read_own(f"{path}{NEXT}")

    def _read_own(self, file: str) -> str | None:
        text = read_text(self.folder / file)
        compiled_from = _COMPILED_FROM.search(text) if text is not None else None
        is_copied = compiled_from is not None and compiled_from[1] != self.dataset
        return None if is_copied else text

    def keep(self, path: str, text: str) -> None:
        write_source(self.folder / path, text)
        (self.folder / f"{path}{NEXT}").unlink(missing_ok=True)

    def keep_next(self, path: str, text: str) -> None:
        write_source(self.folder / f"{path}{NEXT}", text)

    def paths(self) -> tuple[str, ...]:
        """Every file that was ever scaffolded for this dataset and not removed since."""
        return tuple(path for path in self._all_paths() if self._is_own(path))

    def _all_paths(self) -> list[str]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        names = {path.relative_to(self.folder).as_posix().removesuffix(NEXT) for path in files}
        return sorted(names)

    def _is_own(self, path: str) -> bool:
        return self.read(path) is not None or self.read_next(path) is not None

    def forget_copied(self) -> None:
        """Remove the bases that came along with a copied folder; the files they are of stay."""
        for path in self._all_paths():
            if not self._is_own(path):
                self.forget(path)

    def forget(self, path: str) -> None:
        for file in (self.folder / path, self.folder / f"{path}{NEXT}"):
            file.unlink(missing_ok=True)
        if not self._all_paths():
            shutil.rmtree(self.folder, ignore_errors=True)


def read_text(path: Path) -> str | None:
    """The text of a file, lines ended as on this project's machines; None when there is none."""
    if not path.is_file():
        return None
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def write_source(path: Path, text: str) -> None:
    """A source file like any other: replaced whole, and readable by all."""
    write_atomically(path, text.encode())
    path.chmod(0o644)


LABELS = ("as edited here", "as scaffolded before", "as the manifest gives it now")
# Lines that name the revision; nobody edits them, and after a conflict they may be older than the base.
_STAMPS = (
    re.compile(r"^-- Compiled from \S+, revision [0-9a-f]{12}, by Headgate \S+$", re.MULTILINE),
    re.compile(r"^-- Digest [0-9a-f]{12}: .*$", re.MULTILINE),
    re.compile(r"^DEFAULT '[0-9a-f]{64}';$", re.MULTILINE),
)
# git says how many conflicts there are, and 255 when it could not even try.
_MOST_CONFLICTS = 127


@dataclass(frozen=True)
class Merge:
    """The merged text; with conflicts it has markers and is for a person's eyes only."""

    text: str
    conflicts: int


def three_way(edited: str, base: str, fresh: str) -> Merge:
    """`git merge-file` over the three texts."""
    with tempfile.TemporaryDirectory(prefix="headgate-merge-") as folder:
        files = [Path(folder) / name for name in ("edited", "base", "fresh")]
        for file, text in zip(files, (stamped(edited, base), base, fresh), strict=True):
            file.write_text(text, encoding="utf-8")
        done = _merge_file(files)
    if not 0 <= done.returncode <= _MOST_CONFLICTS:
        raise OperationError("git could not merge", why=done.stderr.decode(errors="replace"))
    return Merge(done.stdout.decode(), done.returncode)


def stamped(edited: str, base: str) -> str:
    """The edited text with the base's revision in it, so that the fresh one can take its place."""
    for stamp in _STAMPS:
        if found := stamp.search(base):
            edited = stamp.sub(lambda _, line=found[0]: line, edited, count=1)
    return edited


def _merge_file(files: list[Path]) -> subprocess.CompletedProcess[bytes]:
    labels = [word for label in LABELS for word in ("-L", label)]
    command = ["git", "merge-file", "-p", "--diff3", *labels, *map(str, files)]
    try:
        return subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        raise UnavailableError(
            "git is not installed",
            why="a file that was edited is merged with `git merge-file`",
            fix="install git, then run the command again",
        ) from None


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
    yield _source_path(fresh), source_entry(dataset, manifest)
    yield f"{MODELS}/staging/{fresh.staging.file}", fresh.staging.text
    yield f"{MODELS}/staging/{stem}.yml", model_tests(dataset, manifest)


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
