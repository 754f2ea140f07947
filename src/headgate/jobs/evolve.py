"""Bronze's columns and the revision that fills them: declared ones, and those that the topic brought.

A column of the table whose comment says so came from the topic. The revision that runs is always
the declared one compiled with exactly those columns, so that it can be found again from the table
alone: whoever goes on after a kill between two steps comes to the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from headgate.compile.dataset import BRONZE_BATCH, BRONZE_STREAMING, evolved_bronze
from headgate.compile.drift import own_columns
from headgate.compile.evolution import (
    MOST_COLUMNS,
    Seen,
    evolved_columns,
    folded,
    new_columns,
)
from headgate.engine.iceberg import ManagedTable
from headgate.engine.jvm import TableColumn
from headgate.engine.statements import sql
from headgate.errors import OperationError
from headgate.expr.literals import spark_identifier, spark_literal
from headgate.jobs import declaration
from headgate.jobs.declaration import DatasetRevision
from headgate.spec.dataset import Column, from_plain
from headgate.spec.types import STRING, SqlType
from headgate.store.model import Intent
from headgate.store.ops import OpsStore

TRIES = 5
_ICEBERG = {
    "BIGINT": "long",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamptz",
}


class Evolution:
    """The columns of one run's bronze table."""

    def __init__(self, session: SparkSession, store: OpsStore, table: str, declared: str) -> None:
        self._session = session
        self._store = store
        self._table = ManagedTable(session, table)
        self._declared = declaration.fetch(store, declared)
        self.revision = self._fitted(self._declared, self._fit())

    def evolve(self, intent: Intent, seen: Sequence[Seen]) -> Intent | None:
        """The intent under a revision with columns for these fields; None when none of them gets one."""
        judged_by = declaration.fetch(self._store, intent.revisions[0])
        if not can_evolve(judged_by):
            return None
        added = new_columns(seen, *self._room(judged_by))
        if not added:
            return None
        columns = self._add(added)
        self.revision = self._fitted(self._declared, columns)
        amended = self._store.amend(intent, (self._fitted(judged_by, columns),))
        return replace(amended, run=intent.run)

    def _room(self, revision: DatasetRevision) -> tuple[list[str], int]:
        """The names that are taken, and how many more columns may come."""
        columns = self._table.look().columns()
        taken = [column.name for column in columns]
        taken += [column["name"] for column in revision.manifest["columns"]]
        return taken, MOST_COLUMNS - len(_evolved(columns))

    def _fit(self) -> tuple[TableColumn, ...]:
        """Give the table what the declaration has and it lacks; refuse what cannot be both."""
        dataset = from_plain(self._declared.manifest)
        wanted = [*dataset.columns, *(_own(name) for name in own_columns(dataset))]
        columns = self._table.look().columns()
        refuse_unlike(self._table.name, wanted, columns)
        there = {column.name for column in columns}
        lacking = [column for column in wanted if column.name not in there]
        return self._add(lacking) if lacking else columns

    def _add(self, wanted: Sequence[Column]) -> tuple[TableColumn, ...]:
        """Add the columns, all at once; what someone else adds at the same time is taken as it is."""
        for left in reversed(range(TRIES)):
            columns = self._table.look().columns()
            there = {folded(column.name) for column in columns}
            lacking = [column for column in wanted if folded(column.name) not in there]
            if not lacking:
                return columns
            try:
                sql(self._session, add_columns(self._table.name, lacking))
            except Exception:
                if not left:
                    raise
        return self._table.look().columns()

    def _fitted(self, revision: DatasetRevision, columns: Sequence[TableColumn]) -> str:
        return declaration.keep(self._store, fitted(revision, columns))


def can_evolve(revision: DatasetRevision) -> bool:
    """An edited bronze file is what runs; nobody but its author can give it a column."""
    return revision.contract == "evolve" and not edited_bronze(revision)


def edited_bronze(revision: DatasetRevision) -> bool:
    return bool({BRONZE_BATCH, BRONZE_STREAMING} & set(revision.custom))


def fitted(revision: DatasetRevision, columns: Sequence[TableColumn]) -> DatasetRevision:
    """The revision with the columns that the topic brought and the manifest still lacks."""
    dataset = from_plain(revision.manifest)
    declared = {folded(column.name) for column in dataset.columns}
    evolved = [column for column in _evolved(columns) if folded(column.name) not in declared]
    if not evolved or not dataset.keeps_drift or edited_bronze(revision):
        return revision
    manifest = f"datasets/{dataset.name}/dataset.yml"
    made = evolved_bronze(dataset, evolved, revision.layouts, manifest)
    templates = {**revision.templates, **{template.file: template.text for template in made}}
    return revision.model_copy(update={"templates": templates})


def _evolved(columns: Sequence[TableColumn]) -> tuple[Column, ...]:
    return evolved_columns((column.name, column.comment) for column in columns)


def add_columns(table: str, columns: Sequence[Column]) -> str:
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
        if found is None:
            continue
        if found.name != column.name:
            raise OperationError(
                f"{table} has a column {found.name}, the manifest one called {column.name}",
                why="names that differ by case only are one name to readers of the table",
                fix=f"write name: {found.name}, or give the dataset another bronze_table",
            )
        if found.kind != iceberg_type(column.bronze_type):
            raise OperationError(
                f"column {column.name} of {table} is {found.kind},"
                f" but its bronze_type is {column.bronze_type}",
                why="a table keeps the types it was made with",
                fix="declare the type that the table has, and another one for silver;"
                " or give the dataset another bronze_table",
            )


def iceberg_type(kind: SqlType) -> str:
    return _ICEBERG.get(kind.name) or str(kind).lower()


def _own(name: str) -> Column:
    return Column(name, STRING, STRING, name, STRING)
