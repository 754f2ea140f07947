"""`headgate engine`, `headgate serve`, `headgate sql`: run the engine and the API server, query the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.console import as_table, console, stderr_log_handler

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.core.sql.script import Script, Step


@click.group()
def group() -> None:
    """Run the engine that hosts the jobs."""


@group.command()
def prepare() -> None:
    """Fetch the JVM bundles, compile the Spark functions and make the engine's class archive, once."""
    from headgate.core.runtime.bundles import bundle
    from headgate.core.runtime.class_archive import Preparation, prepare_spark_archive

    for name in ("kafka", "spark"):
        bundle(name)
    console.say("preparing the engine's class archive, once (about 30 s)")
    outcomes = {
        Preparation.MADE: "the engine starts quicker now",
        Preparation.PRESENT: "the engine was prepared already",
        Preparation.UNSUPPORTED: "the jars are there; this Java keeps no class archive",
    }
    console.done(outcomes[prepare_spark_archive()])


@group.command()
def run() -> None:
    """Host jobs until stopped; a second engine stands by.

    \b
    Examples:
      headgate engine run
      SPARK_MASTER='local[4]' headgate engine run
    """
    from headgate.config.settings import load_settings

    settings = load_settings()
    # Wrong settings are refused before PySpark is loaded.
    from headgate.core.engine.host import serve

    serve(settings, console.say)


LOOPBACK = "127.0.0.1"


@click.command()
@click.option("--host", default=LOOPBACK, show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port; 0 takes any. [API_PORT, or the next free one]",
)
@click.option("--quiet", is_flag=True, help="No line for each request.")
def serve_command(host: str, port: int | None, quiet: bool) -> None:
    """Answer the API until stopped, and bring what is deployed to what is wanted.

    While no key exists it listens on this machine alone, answers reads and refuses every change:
    `headgate keys create` makes the first key. A second server on the same ops store answers too;
    only one of them reconciles.

    \b
    Examples:
      headgate serve
      headgate serve --port 9000
      headgate serve --host 0.0.0.0 --quiet
    """
    from headgate.api.server import Address, serve
    from headgate.config.settings import load_settings
    from headgate.core.runtime.ports import choose_port

    settings = load_settings()
    _log(quiet)
    chosen = choose_port(settings.api_port, "API_PORT") if port is None else port
    serve(settings, Address(host, chosen), _told, reload=load_settings)
    console.done("stopped; nothing was left half done")


def _told(url: str) -> None:
    console.data({"url": url}, text=url)
    console.done(f"answers at {url}; Ctrl-C stops it")


def _log(quiet: bool) -> None:
    import logging

    handler = stderr_log_handler("%(levelname)s %(name)s %(message)s")
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    if not quiet:
        logging.getLogger("headgate.api.access").setLevel(logging.INFO)


# What is asked for its rows; everything else is done for its effect.
QUERIES = (
    "select",
    "with",
    "from",
    "values",
    "table",
    "show",
    "describe",
    "desc",
    "explain",
    "call",
)
TITLE = 100


@dataclass(frozen=True)
class Answer:
    """The rows of one query."""

    statement: str
    rows: list[dict[str, object]]


@click.command()
@click.argument("statement", required=False)
@click.option(
    "-f", "--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A SQL file."
)
@click.option("-n", "limit", default=100, show_default=True, help="Rows to show of each query.")
def sql_command(statement: str | None, file: Path | None, limit: int) -> None:
    """Run SQL on the engine, statement by statement, and print the rows of each query.

    All statements run in one session, so that temporary views and variables of a file are there for
    what follows. With several queries, each one's rows stand under its first line.

    \b
    Examples:
      headgate sql "SHOW VIEWS"
      headgate sql "SELECT dq_status, count(*) FROM dq_results_customer GROUP BY 1"
      headgate -o json sql "SELECT reason_code, count(*) FROM lake.headgate.dead_letters GROUP BY 1"
      headgate sql -f build/sql/orders/06_silver.sql
    """
    from headgate.core.sql.script import parse_script
    from headgate.errors import UsageError

    if (statement is None) == (file is None):
        raise UsageError("give either a statement or -f FILE", fix="headgate sql --help")
    text = file.read_text() if file else statement or ""
    answers = list(_answers(parse_script(str(file or "statement"), text), limit))
    if len(answers) == 1:
        console.data(answers[0].rows)
    else:
        console.data(answers, text="\n\n".join(_text(answer) for answer in answers))


def is_query(statement: str) -> bool:
    """Whether a statement is run for its rows, by its first word."""
    first = statement.lstrip("( \n\t").split(None, 1)
    return bool(first) and first[0].lower() in QUERIES


def title(statement: str) -> str:
    """The statement in one line, as far as that is told."""
    words = " ".join(statement.split())
    return words if len(words) <= TITLE else f"{words[: TITLE - 1]}…"


def _text(answer: Answer) -> str:
    return f"-- {answer.statement}\n{as_table(answer.rows)}"


def _answers(script: Script, limit: int) -> Iterator[Answer]:
    from headgate.core.engine.connect import connect

    with connect() as session:
        for step in script.steps:
            rows = _run(session, script.file, step, limit)
            if rows is not None:
                yield Answer(title(step.sql), rows)


def _run(
    session: SparkSession, file: str, step: Step, limit: int
) -> list[dict[str, object]] | None:
    """Run one statement; its rows if it is a query."""
    from pyspark.errors import PySparkException

    from headgate.core.engine.connect import is_gone
    from headgate.core.lake.spark import sql
    from headgate.errors import OperationError

    try:
        frame = sql(session, step.sql)
        if not (is_query(step.sql) and frame.columns):
            return None
        return [row.asDict(recursive=True) for row in frame.limit(limit).collect()]
    except PySparkException as error:
        if is_gone(error):  # no fault of the statement
            raise
        first = next(iter(str(error).strip().splitlines()), repr(error))
        raise OperationError(
            f"{file}:{step.line}: {title(step.sql)}",
            why=first,
            fix="correct the statement; those before it have been carried out",
        ) from error
