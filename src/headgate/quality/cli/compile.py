"""`headgate rules compile`, `show` and `notebook`: what rule sets become, as SQL and as notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.compile.resolve import JudgedFile
    from headgate.quality.notebook import Form


USUAL_BROKER = "localhost:9092"


@dataclass(frozen=True)
class CompiledText:
    """The SQL of one rule table, filled with the settings."""

    table: str
    revision: str
    rules: int
    sql: str
    # What the job does with the views of `sql`.
    engine: str


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--table", metavar="TABLE", help="This table alone.")
@click.option(
    "--write",
    is_flag=True,
    help="Write dq_generated.sql and engine.sql to build/sql/rules/<table>/.",
)
def rules_compile(file: Path | None, table: str | None, write: bool) -> None:
    """Compile rule sets to Spark SQL and print it: from the source to results and metrics.

    The printed file holds temporary views alone: it runs in a plain spark-sql and changes nothing,
    and a job judges its batches by the same views. Without FILE all rule sets are compiled, or the
    one that has TABLE.

    \b
    Examples:
      headgate rules compile rules.yaml > dq_generated.sql
      headgate rules compile --table customer
      headgate rules compile --write
    """
    from headgate.config.settings import load_settings

    settings = load_settings()
    found = [
        text
        for path in _files(settings, file, table)
        for text in compiled_texts(settings, path)
        if table in (None, text.table)
    ]
    if not write:
        console.data(found, text="\n".join(text.sql for text in found).rstrip("\n"))
        return
    for text in found:
        for path in _written(settings, text):
            console.done(f"written: {path}")


def _files(settings: Settings, file: Path | None, table: str | None) -> tuple[Path, ...]:
    from headgate.errors import UsageError
    from headgate.quality.spec.loader import find_table, rule_files, tables_in

    if file is None:
        return (find_table(settings.root, table),) if table else rule_files(settings.root)
    if table is not None and table not in (known := tables_in(file)):
        raise UsageError(f"{file} has no table {table}", fix=f"it has {', '.join(known)}")
    return (file,)


def compiled_texts(settings: Settings, path: Path) -> tuple[CompiledText, ...]:
    """The SQL of each table in the file; what a person should know of the file is said aside."""
    from headgate.quality.compile.file import compile_table
    from headgate.quality.compile.tables import ENGINE_FILE, FILE
    from headgate.terminal.project import below

    judged = _judged(path)
    for note in judged.notes:
        console.warn(note.sentence())
    file = below(path.resolve(), settings.root)
    made = [(compile_table(table, file), len(table.rules)) for table in judged.tables]
    return tuple(
        CompiledText(
            c.name,
            c.revision,
            rules,
            _rendered(settings, f"{c.name}/{FILE}", c.text, path),
            _rendered(settings, f"{c.name}/{ENGINE_FILE}", c.engine, path),
        )
        for c, rules in made
    )


def _judged(path: Path) -> JudgedFile:
    from headgate.core.sql.script import PLACEHOLDERS
    from headgate.quality.compile.resolve import load_judged

    return load_judged(path, PLACEHOLDERS)


def _rendered(settings: Settings, file: str, text: str, path: Path) -> str:
    from headgate.core.sql.script import Template, render_values

    values = render_values(settings, path.stem)
    broker = values.get("BOOTSTRAP_SERVERS") or USUAL_BROKER
    return Template(file, text).render({**values, "BOOTSTRAP_SERVERS": broker})


def _written(settings: Settings, text: CompiledText) -> Iterator[Path]:
    from headgate.config.env_files import write_atomically
    from headgate.quality.compile.tables import ENGINE_FILE, FILE

    folder = settings.build_dir / "sql" / "rules" / text.table
    for name, sql in ((FILE, text.sql), (ENGINE_FILE, text.engine)):
        write_atomically(folder / name, sql.encode())
        yield folder / name


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
    from headgate.quality.spec.loader import find_table

    settings = load_settings()
    texts = compiled_texts(settings, find_table(settings.root, table))
    shown = next(text for text in texts if text.table == table)
    console.data(shown, text=(shown.engine if engine else shown.sql).rstrip("\n"))


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
    from headgate.quality.notebook import SUFFIXES

    settings = load_settings()
    chosen = cast("Form", form)
    end = SUFFIXES[chosen]
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
    from headgate.hashing.contract import load_contract
    from headgate.quality.compile.resolve import open_rules
    from headgate.quality.notebook import compile_notes, render_note

    judged = open_rules(settings, table)
    reconcile = judged.table.reconcile
    path = reconcile.contract if reconcile else None
    contract = load_contract(settings.root / path).value if path else None
    return {note.name: render_note(note, form) for note in compile_notes(judged, contract)}
