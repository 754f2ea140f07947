"""`headgate rules check`: every fault of the rule sets at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console
from headgate.terminal.project import below

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.errors import Fault
    from headgate.quality.compile.judge import JudgedFile


_MOST_NOTES = 20


@dataclass(frozen=True)
class Checked:
    """What `rules check` found."""

    files: tuple[str, ...]
    tables: tuple[str, ...]
    rules: int
    aggregates: int
    faults: tuple[Fault, ...]
    notes: tuple[Fault, ...]
    passed: bool


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Notes count as faults.")
def rules_check(files: tuple[Path, ...], strict: bool) -> None:
    """Check rule sets, all of them or those given: every fault at once, each with its line.

    A note is something that is valid but hardly meant: a rule that matches every row, repeats another,
    or can never give a row its status. Nothing is run: no Spark, no broker.

    \b
    Examples:
      headgate rules check
      headgate rules check rules/orders.yml --strict
      headgate -o json rules check
    """
    from headgate.config.settings import load_settings
    from headgate.errors import DeclarationError

    checked = check_files(load_settings(), files, strict=strict)
    if console.format != "text":
        console.data(checked)
    else:
        for note in checked.notes[:_MOST_NOTES]:
            console.warn(note.sentence())
        if len(checked.notes) > _MOST_NOTES:
            console.warn(f"{len(checked.notes) - _MOST_NOTES} more notes: -o json shows all")
    if checked.faults:
        raise DeclarationError(checked.faults)
    if strict and checked.notes:
        raise DeclarationError(checked.notes)
    console.done(_words(checked))


def check_files(settings: Settings, files: tuple[Path, ...], *, strict: bool = False) -> Checked:
    """What is to be said of these files; of all rule sets where none is given."""
    from headgate.errors import DeclarationError
    from headgate.quality.spec.rules_loader import rule_files

    chosen = tuple(path.resolve() for path in files) or rule_files(settings.root)
    judged: list[JudgedFile] = []
    faults: list[Fault] = []
    for path in chosen:
        try:
            judged.append(load_judged_file(settings, path))
        except DeclarationError as error:
            faults += error.faults
    faults += _twice(settings.root, chosen)
    notes = [note for file in judged for note in file.notes]
    return Checked(
        files=tuple(below(path, settings.root) for path in chosen),
        tables=tuple(table.table.name for file in judged for table in file.tables),
        rules=sum(len(table.rules) for file in judged for table in file.tables),
        aggregates=sum(len(table.aggregates) for file in judged for table in file.tables),
        faults=_below(faults, settings.root),
        notes=_below(notes, settings.root),
        passed=not faults and not (strict and notes),
    )


def load_judged_file(settings: Settings, path: Path) -> JudgedFile:
    """A rule set with `${TOPIC}` as it is for the dataset that the file is named after."""
    from headgate.quality.compile.judge import load_judged

    return load_judged(path, settings.topics_of(path.stem))


def _twice(root: Path, chosen: tuple[Path, ...]) -> Iterator[Fault]:
    """Tables are known by name alone, so no two files may have one of the same name.

    A file that stands elsewhere, as a draft does, is held against those given with it alone.
    """
    from headgate.errors import DeclarationError, Fault
    from headgate.quality.spec.rules_loader import places_of_tables, rule_files

    shipped = rule_files(root)
    beside = shipped if set(chosen) & set(shipped) else ()
    seen: dict[str, str] = {}
    for path in dict.fromkeys((*beside, *chosen)):
        try:
            places = places_of_tables(path)
        except DeclarationError:
            continue
        for at, (name, line) in enumerate(places):
            first = seen.setdefault(name.lower(), below(path, root))
            if first != below(path, root) and path in chosen:
                what = f"`{name}` is a table of {first} as well"
                yield Fault(str(path), line, f"tables[{at}].name", what, "Name it otherwise.")


def _below(faults: list[Fault], root: Path) -> tuple[Fault, ...]:
    return tuple(replace(fault, file=below(Path(fault.file), root)) for fault in faults)


def _words(checked: Checked) -> str:
    if not checked.files:
        return "there is no rule set"
    counts = [_counted(len(checked.tables), "table"), _counted(checked.rules, "rule"), "no faults"]
    counts += [_counted(len(checked.notes), "note")] if checked.notes else []
    return f"{', '.join(checked.files)}: {', '.join(counts)}"


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
