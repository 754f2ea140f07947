"""`headgate rules check`: every fault of a rule set at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.cli.console import console
from headgate.cli.dataset_check import below, faults_below

if TYPE_CHECKING:
    from headgate.compile.rules.judge import JudgedFile
    from headgate.errors import Fault
    from headgate.settings import Settings


@dataclass(frozen=True)
class Checked:
    """What `rules check` found."""

    files: tuple[str, ...]
    tables: tuple[str, ...]
    rules: int
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    passed: bool


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Notes count as faults.")
def command(files: tuple[Path, ...], strict: bool) -> None:
    """Check rule sets, all of them or those given: every fault at once, each with its line.

    \b
    Examples:
      headgate rules check
      headgate rules check rules/orders.yml --strict
      headgate -o json rules check
    """
    from headgate.errors import DeclarationError
    from headgate.settings import load_settings
    from headgate.spec.rules_loader import rule_files

    settings = load_settings()
    chosen = files or rule_files(settings.root)
    checked = check_files(settings, chosen, strict)
    if console.format != "text":
        console.data(checked)
    else:
        for note in checked.notes:
            console.warn(note)
    if checked.faults:
        raise DeclarationError(checked.faults)
    words = f"{len(checked.tables)} tables, {checked.rules} rules, no faults"
    console.done(f"{', '.join(checked.files) or 'no rule set'}: {words}")


def check_files(settings: Settings, files: tuple[Path, ...], strict: bool) -> Checked:
    """The faults and notes of these files, and of names that several of them use."""
    from headgate.errors import DeclarationError

    judged: list[JudgedFile] = []
    faults: list[Fault] = []
    for path in files:
        try:
            with faults_below(settings.root):
                judged.append(load_judged_file(settings, path))
        except DeclarationError as error:
            faults += error.faults
    notes = tuple(note for file in judged for note in file.notes)
    return Checked(
        files=tuple(below(path, settings.root) for path in files),
        tables=tuple(table.table.name for file in judged for table in file.tables),
        rules=sum(len(table.rules) for file in judged for table in file.tables),
        faults=tuple(faults),
        notes=notes,
        passed=not faults and not (strict and notes),
    )


def load_judged_file(settings: Settings, path: Path) -> JudgedFile:
    """A rule set with `${TOPIC}` as it is for the dataset that the file is named after."""
    from headgate.compile.rules.judge import load_judged

    return load_judged(path, settings.topics_of(path.stem))
