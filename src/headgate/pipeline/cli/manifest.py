"""`headgate dataset check`, `scaffold` and `remove`: a manifest's faults, and the files made from it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.errors import ConflictError, DeclarationError
from headgate.terminal.console import ask, console, need_terminal
from headgate.terminal.project import active_dataset, below, faults_below

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.errors import Fault
    from headgate.pipeline.removal import Removal
    from headgate.pipeline.scaffold import Scaffold, ScaffoldFile


@dataclass(frozen=True)
class Checked:
    """What `dataset check` found."""

    datasets: tuple[str, ...]
    faults: tuple[Fault, ...]
    passed: bool


@click.command()
@click.argument("name", required=False)
def check(name: str | None) -> None:
    """Check one manifest, or all of them: every fault at once, each with its line.

    \b
    Examples:
      headgate dataset check
      headgate dataset check orders
    """
    from headgate.config.settings import load_settings
    from headgate.declarations.project import available_datasets, find_dataset

    settings = load_settings()
    names = (name,) if name else available_datasets(settings.root)
    for known in names:
        find_dataset(settings.root, known)
        _tell_conflicts(settings.root, known)
        _tell_copied_sample(settings, known)
    faults = tuple(fault for known in names for fault in _faults(settings, known))
    if console.format != "text":
        console.data(Checked(names, faults, passed=not faults))
    if faults:
        raise DeclarationError(faults)
    console.done(f"{', '.join(names) or 'no dataset'}: no faults")


def _faults(settings: Settings, name: str) -> Iterator[Fault]:
    """All faults of a dataset: its manifest, its sample, and what it compiles to."""
    from headgate.declarations.project import find_dataset
    from headgate.pipeline.generator.declaration import SAMPLE, load_sample
    from headgate.pipeline.loader import load_checked
    from headgate.pipeline.revision import declared_revision

    manifest = find_dataset(settings.root, name)
    sample = manifest.with_name(SAMPLE)
    found = [*_refused(settings.root, lambda: load_checked(manifest, settings.topics_of(name)))]
    yield from found
    if not found:
        yield from _refused(settings.root, lambda: declared_revision(settings, name))
    if sample.is_file():
        yield from _refused(settings.root, lambda: load_sample(sample))


def _refused(root: Path, attempt: Callable[[], object]) -> tuple[Fault, ...]:
    try:
        with faults_below(root):
            attempt()
    except DeclarationError as error:
        return error.faults
    return ()


def _tell_conflicts(root: Path, name: str) -> None:
    from headgate.pipeline.scaffold import CONFLICT_FILE, open_conflicts

    for path in open_conflicts(root, name):
        console.warn(f"{path} awaits a decision: see {path}{CONFLICT_FILE}")


def _tell_copied_sample(settings: Settings, name: str) -> None:
    """A sample that lacks the manifest's columns came along when the folder was copied."""
    from headgate.declarations.project import find_dataset
    from headgate.pipeline.generator.declaration import SAMPLE, load_sample
    from headgate.pipeline.loader import load_dataset

    manifest = find_dataset(settings.root, name)
    sample = manifest.with_name(SAMPLE)
    try:
        dataset = load_dataset(manifest, settings.topics_of(name)).value
        written = {c.name for c in load_sample(sample).value.written} if sample.is_file() else None
    except DeclarationError:  # told as a fault
        return
    missing = [c.name for c in dataset.columns if written is not None and c.name not in written]
    if missing:
        console.warn(
            f"{below(sample, settings.root)} writes no {', '.join(missing[:5])}:"
            " it looks like the sample of another dataset"
        )


@dataclass(frozen=True)
class Reported:
    """One file as it is told."""

    file: str
    status: str
    words: str


@dataclass(frozen=True)
class Scaffolded:
    """What `dataset scaffold` did, or would do."""

    dataset: str
    dry_run: bool
    files: tuple[Reported, ...]


@click.command()
@click.argument("name", required=False)
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
def scaffold(name: str | None, dry_run: bool) -> None:
    """Write the SQL templates, the dbt model, its source and its tests from the manifest.

    Run it again whenever the manifest changes. What you edited is merged with what is new; where
    both changed the same lines your file stays, and the conflict is written beside it.

    \b
    Examples:
      headgate dataset scaffold orders
      headgate dataset scaffold orders --dry-run
    """
    from headgate.config.settings import load_settings
    from headgate.pipeline.scaffold import apply, plan_scaffold

    settings = load_settings()
    with faults_below(settings.root):
        plan = plan_scaffold(settings.root, name or active_dataset(settings))
    if not dry_run:
        apply(settings.root, plan)
    console.data(reported(plan, dry_run=dry_run), text=_text(plan, dry_run=dry_run))
    refuse_unless_settled(plan)


def reported(plan: Scaffold, *, dry_run: bool) -> Scaffolded:
    files = tuple(Reported(file.path, str(file.status), file.words) for file in plan.files)
    return Scaffolded(plan.dataset, dry_run, files)


def refuse_unless_settled(plan: Scaffold) -> None:
    """A conflict is exit 6, SQL that cannot run is exit 3: neither goes unnoticed."""
    if plan.conflicts:
        raise ConflictError(
            f"{len(plan.conflicts)} of {len(plan.files)} files need a decision",
            why="\n".join(f"{file.path}: {file.words}" for file in plan.conflicts),
            fix="put what you want into the file itself, delete the .conflict file beside it,"
            f" then: headgate dataset scaffold {plan.dataset}",
        )
    if plan.faults:
        raise DeclarationError(plan.faults)


def _text(plan: Scaffold, *, dry_run: bool) -> str:
    width = max(len(file.path) for file in plan.files)
    lines = [f"{file.status:<9}  {file.path:<{width}}  {file.words}" for file in plan.files]
    if not dry_run:
        return "\n".join(lines)
    return "\n".join([*lines, *(diff for file in plan.files if (diff := difference(file)))])


def difference(file: ScaffoldFile) -> str:
    """What would change in the file, as a unified diff."""
    if not file.changes or file.after is None:
        return ""
    old = "/dev/null" if file.before is None else f"a/{file.path}"
    before = (file.before or "").splitlines()
    after = file.after.splitlines()
    lines = difflib.unified_diff(before, after, old, f"b/{file.path}", lineterm="")
    return "\n" + "\n".join(lines)


@click.command()
@click.argument("name")
@click.option("--keep-manifest", is_flag=True, help="Remove only what `scaffold` wrote.")
@click.option("--with-edits", is_flag=True, help="Also remove scaffolded files that were edited.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, keep_manifest: bool, with_edits: bool, dry_run: bool, yes: bool) -> None:
    """Take a dataset out of the project: its manifest, and all that was scaffolded from it.

    Tables, topics and the ledger stay. Files that you edited stay too, unless --with-edits.

    \b
    Examples:
      headgate dataset remove orders --dry-run
      headgate dataset remove orders --keep-manifest
    """
    from headgate.config.settings import load_settings
    from headgate.pipeline.removal import apply_removal, plan_removal

    settings = load_settings()
    whole = not keep_manifest
    plan = plan_removal(settings.root, name, whole=whole, with_edits=with_edits)
    for file in plan.kept:
        console.warn(f"{file.path} was edited: it stays; --with-edits removes it too")
    console.say(f"tables ({', '.join(plan.tables) or 'unknown'}), topics and the ledger stay")
    _require_idle(settings, name)
    if not dry_run:
        _ask(plan, yes=yes)
        apply_removal(settings.root, plan)
    removed = tuple(file.path for file in plan.files)
    kept = tuple(file.path for file in plan.kept)
    console.data(Removed(name, dry_run, removed, kept), text="\n".join(removed))


@dataclass(frozen=True)
class Removed:
    """What `dataset remove` removed, or would remove."""

    dataset: str
    dry_run: bool
    removed: tuple[str, ...]
    kept: tuple[str, ...]


def _ask(plan: Removal, *, yes: bool) -> None:
    if yes or not plan.files:
        return
    need_terminal("removing files needs --yes here", fix="--dry-run lists them")
    for file in plan.files:
        console.say(f"  {file.path}" + (" (edited)" if file.edited else ""))
    ask(f"Remove these {len(plan.files)} files?")


def _require_idle(settings: Settings, name: str) -> None:
    """A job that runs would lose what it is compiled from."""
    from headgate.core.ledger.model import ACTIVE
    from headgate.core.ledger.ops_store import OpsStore

    if not settings.home.is_dir():
        return
    with OpsStore.open(settings.ops_store_url) as store:
        running = [
            run.job for run in store.runs(states=ACTIVE) if run.job.partition("-")[2] == name
        ]
    if running:
        raise ConflictError(
            f"{', '.join(running)} of {name} is running",
            why="it is compiled from these files when it starts again",
            fix=f"headgate job stop {running[0]}",
        )
