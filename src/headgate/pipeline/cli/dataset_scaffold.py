"""`headgate dataset scaffold` and `remove`: the files of a dataset, made and taken out again."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from headgate.errors import ConflictError, DeclarationError
from headgate.terminal.asking import ask, need_terminal
from headgate.terminal.cli_console import console
from headgate.terminal.project import active_dataset, faults_below

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.pipeline.jobs_scaffold import Scaffold, ScaffoldFile
    from headgate.pipeline.removal import Removal


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
    from headgate.pipeline.jobs_scaffold import apply, plan_scaffold

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
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.core.ledger.store_model import ACTIVE

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
