"""`headgate rules notebook`: a notebook over the views of a rule table."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from headgate.cli.console import console

FORMS = ("jupyter", "zeppelin")


@click.command()
@click.argument("table")
@click.option("--form", type=click.Choice(FORMS), default="jupyter", show_default=True)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Default: notebooks/<table>."
)
def command(table: str, form: str, out: Path | None) -> None:
    """Write a notebook with the first questions to a rule table's results and metrics.

    jupyter speaks to the running engine over Connect, zeppelin with %jdbc. The same rule set
    always gives the same file.

    \b
    Examples:
      headgate rules notebook customer
      headgate rules notebook orders --form zeppelin --out orders.zpln
    """
    from headgate.cli.feed_rules import open_rules
    from headgate.compile.rules import notebooks
    from headgate.settings import load_settings

    settings = load_settings()
    chosen = cast("notebooks.Form", form)
    text = notebooks.notebook(open_rules(settings, table), chosen)
    file = out or settings.root / "notebooks" / f"{table}{notebooks.SUFFIXES[chosen]}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    console.done(f"written: {file}")
    if console.format != "text":
        console.data({"table": table, "form": form, "file": str(file)})
