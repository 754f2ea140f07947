"""Fit a table's columns to the declared ones: add what is missing, refuse what has another type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.core.lake.spark import TableColumn, sql
from headgate.core.lake.table import ManagedTable
from headgate.core.sql.fragments import properties as render
from headgate.core.sql.fragments import table_name
from headgate.core.sql.strict_json import own_columns
from headgate.declarations.columns import Column
from headgate.declarations.types import STRING, SqlType
from headgate.errors import OperationError
from headgate.pipeline.compile.evolution import folded
from headgate.pipeline.compile.silver import CLUSTERED_WRITES
from headgate.pipeline.revision import DatasetRevision
from headgate.pipeline.spec import Dataset, from_plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRIES = 5
_ICEBERG = {"BIGINT": "long", "TIMESTAMP": "timestamp", "TIMESTAMP_LTZ": "timestamptz"}


def fit_bronze(table: ManagedTable, dataset: Dataset) -> tuple[TableColumn, ...]:
    """Bronze with every declared column, and those that it has for drift."""
    return fit(table, [*dataset.columns, *(_plain(name, STRING) for name in own_columns(dataset))])


def fit_silver(session: SparkSession, revision: DatasetRevision) -> None:
    """Silver with every declared column; the rebuild that a new revision brings fills them."""
    dataset = from_plain(revision.manifest)
    clean = ManagedTable(session, table_name(dataset.silver_table))
    fit(clean, [_plain(c.silver_name, c.silver_type, c.comment) for c in dataset.columns])
    set_lacking_properties(clean, CLUSTERED_WRITES)
    raw = ManagedTable(session, table_name(dataset.bronze_table))
    if raw.exists():  # silver may come to a newly declared column before bronze does
        fit_bronze(raw, dataset)


def fit(table: ManagedTable, wanted: Sequence[Column]) -> tuple[TableColumn, ...]:
    columns = table.look().columns()
    refuse_unlike(table.name, wanted, columns)
    there = {column.name for column in columns}
    lacking = [column for column in wanted if column.name not in there]
    return add(table, lacking) if lacking else columns


def add(table: ManagedTable, wanted: Sequence[Column]) -> tuple[TableColumn, ...]:
    """Add the columns, all at once; what someone else adds at the same time is taken as it is."""
    for left in reversed(range(TRIES)):
        columns = table.look().columns()
        there = {folded(column.name) for column in columns}
        lacking = [column for column in wanted if folded(column.name) not in there]
        if not lacking:
            return columns
        try:
            sql(table.session, add_columns(table.name, lacking))
        except Exception:
            if not left:
                raise
    return table.look().columns()


def set_lacking_properties(table: ManagedTable, properties: Mapping[str, str]) -> None:
    """Set the properties that a table made before them lacks; a value set by its owner stays."""
    present = table.look().metadata()["properties"]
    lacking = {key: value for key, value in properties.items() if key not in present}
    if lacking:
        sql(table.session, f"ALTER TABLE {table.name} SET TBLPROPERTIES ({render(lacking)})")


def drop(table: ManagedTable, names: Sequence[str]) -> tuple[TableColumn, ...]:
    """The table without these columns; those that it has not are no fault."""
    there = {column.name for column in table.look().columns()}
    gone = [spark_identifier(name) for name in names if name in there]
    if gone:
        sql(table.session, f"ALTER TABLE {table.name} DROP COLUMNS ({', '.join(gone)})")
    return table.look().columns()


def add_columns(table: str, columns: Iterable[Column]) -> str:
    told = (
        f"{spark_identifier(c.name)} {c.bronze_type.spark}"
        + (f" COMMENT {spark_literal(c.comment)}" if c.comment else "")
        for c in columns
    )
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(told)})"


def refuse_unlike(table: str, wanted: Sequence[Column], columns: Sequence[TableColumn]) -> None:
    """A declared column that the table has in another form would be filled wrongly or not at all."""
    there = {folded(column.name): column for column in columns}
    for column in wanted:
        found = there.get(folded(column.name))
        if found is not None and found.name != column.name:
            raise OperationError(
                f"{table} has a column {found.name}, the manifest one called {column.name}",
                why="names that differ by case only are one name to readers of the table",
                fix=f"name it {found.name}, or give the dataset another table",
            )
        if found is not None and found.kind != iceberg_type(column.bronze_type):
            raise OperationError(
                f"column {column.name} of {table} is {found.kind}, declared is {column.bronze_type}",
                why="a table keeps the types it was made with",
                fix=f"declare that type; or set the column aside, and the next run makes it anew: "
                f"ALTER TABLE {table} RENAME COLUMN {spark_identifier(column.name)} TO "
                f"{spark_identifier(f'{column.name}_before')}",
            )


def iceberg_type(kind: SqlType) -> str:
    return _ICEBERG.get(kind.name) or str(kind).lower()


def as_now(table: ManagedTable, rows: DataFrame, snapshot: int) -> DataFrame:
    """Rows of a snapshot with the columns that the table has now; NULL in those that came later.

    By id: a column that was set aside under another name since does not fill the one in its place.
    """
    from pyspark.sql import functions as F

    look = table.look()
    before, now = look.names_by_id(snapshot), look.names_by_id()
    kinds = {field.name: field.dataType for field in table.session.table(table.name).schema.fields}
    found = {
        name: F.col(spark_identifier(before[number])) if number in before else F.lit(None)
        for number, name in now.items()
    }
    return rows.select(*(value.cast(kinds[name]).alias(name) for name, value in found.items()))


def _plain(name: str, kind: SqlType, comment: str | None = None) -> Column:
    return Column(name, kind, kind, name, kind, comment=comment)
