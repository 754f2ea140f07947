"""`headgate rules notebook`: a notebook over the views of a rule table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.notebook import Form

FORMS = ("jupyter", "zeppelin", "sql")


@click.command()
@click.argument("table")
@click.option("--form", type=click.Choice(FORMS), default="jupyter", show_default=True)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Default: notebooks/<table>. Of a pair, the beginning of three names.",
)
def rules_notebook(table: str, form: str, out: Path | None) -> None:
    """Write a notebook with the first questions to a rule table's results and metrics.

    jupyter speaks to the running engine over Connect, zeppelin with %jdbc, and sql is a file for
    `headgate sql -f`. A pair that is reconciled gets three: one for each data centre, which asks
    that one alone, and one for both. The same rule set always gives the same files.

    \b
    Examples:
      headgate rules notebook customer
      headgate rules notebook orders --form zeppelin --out orders.zpln
      headgate rules notebook business --form sql
    """
    from headgate.config.settings import load_settings
    from headgate.quality import notebook as notebooks

    settings = load_settings()
    chosen = cast("notebooks.Form", form)
    end = notebooks.SUFFIXES[chosen]
    target = out or settings.root / "notebooks" / f"{table}{end}"
    target.parent.mkdir(parents=True, exist_ok=True)
    files: list[str] = []
    for name, text in render_files(settings, table, chosen).items():
        file = target if name == table else target.with_name(name.replace(table, target.stem) + end)
        file.write_text(text, encoding="utf-8")
        files.append(str(file))
        console.done(f"written: {file}")
    if console.format != "text":
        console.data({"table": table, "form": form, "files": files})


def render_files(settings: Settings, table: str, form: Form) -> dict[str, str]:
    """Render the files by name: one for a rule table, three for a pair that is reconciled."""
    from headgate.hashing.hash_contract_loader import load_contract
    from headgate.quality.compile.judge import open_rules
    from headgate.quality.notebook import compile_notes, render_note

    judged = open_rules(settings, table)
    reconcile = judged.table.reconcile
    path = reconcile.contract if reconcile else None
    contract = load_contract(settings.root / path).value if path else None
    return {note.name: render_note(note, form) for note in compile_notes(judged, contract)}
