"""`headgate filters check`: every fault of the filters' documents at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console
from headgate.terminal.project import below

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.errors import Fault
    from headgate.filters.compile.analysis import Finding
    from headgate.filters.compile.model import CompiledFilter


@dataclass(frozen=True)
class Checked:
    """What `filters check` found."""

    files: tuple[str, ...]
    filters: tuple[str, ...]
    faults: tuple[Fault, ...]
    findings: tuple[Finding, ...]
    passed: bool


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Findings count as faults.")
def filters_check(files: tuple[Path, ...], strict: bool) -> None:
    """Check filters, all of them or those given: every fault at once, each with its line.

    A finding is something that is valid but hardly meant: a filter that can match no event, every
    event, or only what another filter matches too. Nothing is run: no Spark, no broker.

    \b
    Examples:
      headgate filters check
      headgate filters check schemas/v1/filters/service-by-dealer-001.json --strict
      headgate -o json filters check
    """
    from headgate.config.settings import load_settings
    from headgate.errors import DeclarationError

    checked = check_files(load_settings(), files, strict=strict)
    if console.format != "text":
        console.data(checked)
    else:
        for finding in checked.findings:
            console.warn(finding.words)
    if checked.faults:
        raise DeclarationError(checked.faults)
    if not checked.passed:
        raise DeclarationError(list(_as_faults(checked.findings)))
    console.done(_words(checked))


def check_files(settings: Settings, files: tuple[Path, ...], *, strict: bool = False) -> Checked:
    """What is to be said of these documents; of all filters where none is given."""
    from headgate.errors import DeclarationError
    from headgate.filters.compile.analysis import findings_of
    from headgate.filters.loader import filter_files

    chosen = tuple(path.resolve() for path in files) or filter_files(settings.root)
    compiled: list[CompiledFilter] = []
    faults: list[Fault] = []
    for path in chosen:
        try:
            compiled.append(load_compiled(path))
        except DeclarationError as error:
            faults += error.faults
    faults += _misplaced(settings, chosen, compiled)
    findings = tuple(found for one in compiled for found in findings_of(one, compiled))
    return Checked(
        files=tuple(below(path, settings.root) for path in chosen),
        filters=tuple(one.id for one in compiled),
        faults=tuple(
            replace(fault, file=below(Path(fault.file), settings.root)) for fault in faults
        ),
        findings=findings,
        passed=not faults and not (strict and findings),
    )


def load_compiled(path: Path) -> CompiledFilter:
    """The filter in a file, compiled; its faults have their lines."""
    from headgate.errors import DeclarationError
    from headgate.filters.compile.compile import compile_filter
    from headgate.filters.document_text import lines_of
    from headgate.filters.loader import filter_text, line_at, load_filter

    declared = load_filter(path)
    try:
        return compile_filter(declared, str(path))
    except DeclarationError as error:
        lines = lines_of(filter_text(path), [fault.field for fault in error.faults]).found
        placed = [replace(fault, line=line_at(lines, fault.field)) for fault in error.faults]
        raise DeclarationError(placed) from None


def _misplaced(
    settings: Settings, chosen: Sequence[Path], compiled: Sequence[CompiledFilter]
) -> Iterator[Fault]:
    """A filter's file bears its id, and no two filters write to one topic of their own accord."""
    from headgate.errors import Fault
    from headgate.filters.loader import FOLDER

    known = {one.id for one in compiled}
    for path in chosen:
        if path.parent == settings.root / FOLDER and path.stem not in known:
            ids = ", ".join(sorted(known)) or "none"
            what = f"no filter has the id `{path.stem}` (there are: {ids})"
            yield Fault(str(path), None, "/id", what, "Name the file after the filter's id.")


def _as_faults(findings: Sequence[Finding]) -> Iterator[Fault]:
    from headgate.errors import Fault

    for found in findings:
        yield Fault(found.filter, None, "/conditions", found.words, "Correct the conditions.")


def _words(checked: Checked) -> str:
    if not checked.files:
        return "there is no filter"
    noun = "filter" if len(checked.filters) == 1 else "filters"
    told = f", {len(checked.findings)} findings" if checked.findings else ""
    return f"{len(checked.filters)} {noun}, no faults{told}: {', '.join(checked.filters)}"
