"""`headgate dataset check`: every fault of a manifest at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console
from headgate.terminal.project import below, faults_below

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.errors import Fault


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
    from headgate.errors import DeclarationError

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
    from headgate.pipeline.declaration import declared_revision
    from headgate.pipeline.expressions import load_checked
    from headgate.pipeline.generator.sample_loader import SAMPLE, load_sample

    manifest = find_dataset(settings.root, name)
    sample = manifest.with_name(SAMPLE)
    found = [*_refused(settings.root, lambda: load_checked(manifest, settings.topics_of(name)))]
    yield from found
    if not found:
        yield from _refused(settings.root, lambda: declared_revision(settings, name))
    if sample.is_file():
        yield from _refused(settings.root, lambda: load_sample(sample))


def _refused(root: Path, attempt: Callable[[], object]) -> tuple[Fault, ...]:
    from headgate.errors import DeclarationError

    try:
        with faults_below(root):
            attempt()
    except DeclarationError as error:
        return error.faults
    return ()


def _tell_conflicts(root: Path, name: str) -> None:
    from headgate.pipeline.jobs_scaffold import CONFLICT_FILE, open_conflicts

    for path in open_conflicts(root, name):
        console.warn(f"{path} awaits a decision: see {path}{CONFLICT_FILE}")


def _tell_copied_sample(settings: Settings, name: str) -> None:
    """A sample that lacks the manifest's columns came along when the folder was copied."""
    from headgate.declarations.project import find_dataset
    from headgate.errors import DeclarationError
    from headgate.pipeline.generator.sample_loader import SAMPLE, load_sample
    from headgate.pipeline.spec_loader import load_dataset

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
