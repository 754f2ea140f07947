"""Where the two tables are: a table of the lake or Parquet files, and a session to read them in."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from headgate.conditions.expr_literals import spark_identifier
from headgate.config.settings import Settings
from headgate.core.engine.connect import connect
from headgate.core.engine.engine_session import start_session, stop_session
from headgate.core.lake.statements import sql
from headgate.core.sql.compile_fragments import table_name
from headgate.declarations.refusal import Refusal
from headgate.errors import UsageError
from headgate.reconcile.table_compare.model import Column, Table

CATALOG = "lake."


@contextmanager
def query_session(settings: Settings) -> Generator[SparkSession]:
    """The running engine's, over Connect; without one a session of this process, which only reads."""
    if settings.connect_url and settings.connect_token:
        with connect(settings) as session:
            yield session
        return
    session = start_session(settings)
    try:
        yield session
    finally:
        stop_session(session)


def open_table(session: SparkSession, name: str) -> Table:
    """The table that a person names: `schema.table` of the lake, or a path of Parquet files."""
    source = source_of(name)
    try:
        fields = sql(session, f"SELECT * FROM {source} LIMIT 0").schema.fields
    except AnalysisException as error:
        raise UsageError(
            f"{name} cannot be read",
            why=next(iter(str(error).strip().splitlines()), repr(error)),
            fix="give schema.table of the lake, or the path of a Parquet file or folder",
        ) from error
    columns = tuple(Column(field.name, field.dataType.simpleString()) for field in fields)
    return Table(name, source, columns)


def source_of(name: str) -> str:
    """What stands behind FROM."""
    try:
        if is_path(name):
            return f"parquet.{spark_identifier(str(Path(name).absolute()))}"
        plain = name.removeprefix(CATALOG)
        if plain.count(".") == 1 and all(plain.split(".")):
            return table_name(plain)
    except Refusal as refused:
        raise UsageError(refused.what, fix=refused.fix) from refused
    raise UsageError(
        f"`{name}` names neither a table nor a file",
        fix="give schema.table of the lake, or the path of a Parquet file or folder",
    )


def is_path(name: str) -> bool:
    return "/" in name or name.endswith(".parquet") or Path(name).exists()
