"""`headgate rules list`: the tables of all rule sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console
from headgate.terminal.project import below

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.compile.model import JudgedTable
    from headgate.quality.spec.rule_set import RuleTable


@dataclass(frozen=True)
class Listed:
    """One table as `rules list` prints it."""

    table: str
    file: str
    kind: str
    sources: str
    rules: int
    aggregates: int
    window: str


@click.command()
def rules_list() -> None:
    """List the tables that rule sets declare, where their rows come from and how many rules they have.

    \b
    Examples:
      headgate rules list
      headgate -o json rules list
    """
    from headgate.config.settings import load_settings
    from headgate.quality.spec.rules_loader import rule_files

    settings = load_settings()
    files = rule_files(settings.root)
    console.data([listed for path in files for listed in _listed(settings, path)])


def _listed(settings: Settings, path: Path) -> Iterator[Listed]:
    from headgate.errors import DeclarationError
    from headgate.quality.cli.rules_check import load_judged_file
    from headgate.quality.spec.rules_loader import tables_in

    file = below(path, settings.root)
    try:
        for table in load_judged_file(settings, path).tables:
            yield _row(table, file)
    except DeclarationError as error:
        for name in tables_in(path):
            yield Listed(name, file, f"not valid: {error.what}", "", 0, 0, "")


def _kind(table: RuleTable) -> str:
    return "reconciliation" if table.is_pair else "quality"


def _row(judged: JudgedTable, file: str) -> Listed:
    from headgate.declarations.durations import in_words

    table = judged.table
    sources = ", ".join(str(source.topic or source.iceberg) for source in table.sources.values())
    return Listed(
        table.name,
        file,
        _kind(table),
        sources,
        len(judged.rules),
        len(judged.aggregates),
        in_words(judged.rule_set.metrics.window),
    )
