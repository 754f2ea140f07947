"""`headgate rules show`: the compiled SQL of one rule table."""

from __future__ import annotations

import click

from headgate.terminal.cli_console import console


@click.command()
@click.argument("table")
@click.option("--engine", is_flag=True, help="Show engine.sql: what the job does with the views.")
def rules_show(table: str, engine: bool) -> None:
    """Show the SQL that TABLE compiles to: views from the source to results and metrics.

    \b
    Examples:
      headgate rules show customer
      headgate rules show customer --engine
    """
    from headgate.config.settings import load_settings
    from headgate.quality.cli.rules_compile import compiled_texts
    from headgate.quality.spec.rules_loader import find_table

    settings = load_settings()
    texts = compiled_texts(settings, find_table(settings.root, table))
    shown = next(text for text in texts if text.table == table)
    console.data(shown, text=(shown.engine if engine else shown.sql).rstrip("\n"))
