"""`headgate sql`: query the running engine over Spark Connect."""

from __future__ import annotations

from pathlib import Path

import click

from headgate.cli.console import console


@click.command()
@click.argument("statement", required=False)
@click.option(
    "-f", "--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A SQL file."
)
@click.option("-n", "limit", default=100, show_default=True, help="Rows to show at the most.")
def command(statement: str | None, file: Path | None, limit: int) -> None:
    """Run SQL on the engine and print the rows of the last statement.

    \b
    Examples:
      headgate sql "SHOW TABLES IN lake.bronze"
      headgate -o json sql "SELECT reason_code, count(*) FROM lake.headgate.dead_letters GROUP BY 1"
      headgate sql -f build/sql/orders/06_silver.sql
    """
    from headgate.compile.script import parse_script
    from headgate.errors import UsageError

    if (statement is None) == (file is None):
        raise UsageError("give either a statement or -f FILE", fix="headgate sql --help")
    text = file.read_text() if file else statement or ""
    steps = parse_script(str(file or "statement"), text).steps
    console.data(_rows([step.sql for step in steps], limit))


def _rows(statements: list[str], limit: int) -> list[dict[str, object]]:
    from headgate.engine.connect import connect
    from headgate.engine.statements import sql

    with connect() as session:
        frame = None
        for statement in statements:
            frame = sql(session, statement)
        return [row.asDict(recursive=True) for row in frame.limit(limit).collect()] if frame else []
