"""`headgate filters compile`: the SQL that a filter is, for Spark and for Flink."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings

USUAL_BROKER = "localhost:9092"


@dataclass(frozen=True)
class CompiledText:
    """The SQL of one filter, filled with the settings."""

    filter: str
    revision: str
    sql_hash: str
    topic: str
    sql: str


@click.command()
@click.argument("filters", nargs=-1, metavar="[ID|FILE]...")
@click.option("--flink", is_flag=True, help="As Flink SQL for Confluent Cloud.")
@click.option("--write", is_flag=True, help="Write build/sql/filters/<id>.sql instead.")
def filters_compile(filters: tuple[str, ...], flink: bool, write: bool) -> None:
    """Compile filters to SQL and print it: two statements each, the sink and the insert.

    The Spark file runs in a plain spark-sql; the router asks the same of every record. Without an
    argument all filters are compiled.

    \b
    Examples:
      headgate filters compile service-by-dealer-001
      headgate filters compile service-by-dealer-001 --flink
      headgate filters compile --write
    """
    from headgate.config.settings import load_settings

    settings = load_settings()
    found = [compiled_text(settings, path, flink=flink) for path in chosen_files(settings, filters)]
    if not write:
        console.data(found, text="\n".join(text.sql for text in found).rstrip("\n"))
        return
    for text in found:
        console.done(f"written: {_written(settings, text, flink=flink)}")


def chosen_files(settings: Settings, filters: tuple[str, ...]) -> tuple[Path, ...]:
    """The files of these ids and paths; of all filters of the project where none is given."""
    from headgate.filters.loader import filter_files, find_filter

    if not filters:
        return filter_files(settings.root)
    return tuple(
        Path(name) if name.endswith(".json") else find_filter(settings.root, name)
        for name in filters
    )


def compiled_text(settings: Settings, path: Path, *, flink: bool = False) -> CompiledText:
    """The SQL of the filter in a file."""
    from headgate.core.sql.render import Template
    from headgate.filters.cli.filters_check import load_compiled
    from headgate.filters.compile.alone import alone_sql
    from headgate.filters.compile.flink import flink_sql
    from headgate.filters.loader import load_filter

    compiled = load_compiled(path)
    if flink:
        sql = flink_sql(load_filter(path))
    else:
        broker = settings.bootstrap_servers or USUAL_BROKER
        template = Template(f"{compiled.id}.sql", alone_sql(compiled))
        sql = template.render({"BOOTSTRAP_SERVERS": broker})
    return CompiledText(compiled.id, compiled.revision, compiled.sql_hash, compiled.topic, sql)


def _written(settings: Settings, text: CompiledText, *, flink: bool) -> Path:
    from headgate.config.env_files import write_atomically

    name = f"{text.filter}.flink.sql" if flink else f"{text.filter}.sql"
    path = settings.build_dir / "sql" / "filters" / name
    write_atomically(path, text.sql.encode())
    return path
