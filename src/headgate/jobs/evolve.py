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
from headgate.compile.evolution import (
    MOST_COLUMNS,
    Seen,
    evolved_columns,
    folded,
    new_columns,
)
from headgate.engine.iceberg import ManagedTable
from headgate.engine.jvm import TableColumn
from headgate.jobs import declaration
from headgate.jobs.columns import add, fit_bronze
from headgate.jobs.declaration import DatasetRevision
from headgate.spec.dataset import Column, from_plain
from headgate.store.model import Intent
from headgate.store.ops import OpsStore


class Evolution:
    """The columns of one run's bronze table."""

    def __init__(self, session: SparkSession, store: OpsStore, table: str, declared: str) -> None:
        self._session = session
        self._store = store
        self._table = ManagedTable(session, table)
        self._declared = declaration.fetch(store, declared)
        columns = fit_bronze(self._table, from_plain(self._declared.manifest))
        self.revision = self._fitted(self._declared, columns)

    def evolve(self, intent: Intent, seen: Sequence[Seen]) -> Intent | None:
        """The intent under a revision with columns for these fields; None when none of them gets one."""
        judged_by = declaration.fetch(self._store, intent.revisions[0])
        if not can_evolve(judged_by):
            return None
        added = new_columns(seen, *self._room(judged_by))
        if not added:
            return None
        columns = add(self._table, added)
        self.revision = self._fitted(self._declared, columns)
        amended = self._store.amend(intent, (self._fitted(judged_by, columns),))
        return replace(amended, run=intent.run)

    def _room(self, revision: DatasetRevision) -> tuple[list[str], int]:
        """The names that are taken, and how many more columns may come."""
        columns = self._table.look().columns()
        taken = [column.name for column in columns]
        taken += [column["name"] for column in revision.manifest["columns"]]
        return taken, MOST_COLUMNS - len(_evolved(columns))

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
