"""Bronze's columns and the revision that fills them: declared ones, and those that the topic brought.

A column of the table whose comment says so came from the topic. The revision that runs is always
the declared one compiled with exactly those columns, so that it can be found again from the table
alone: whoever goes on after a kill between two steps comes to the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from headgate.core.lake.iceberg import ManagedTable
from headgate.core.lake.jvm import TableColumn
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Intent
from headgate.declarations.spec_columns import Column
from headgate.declarations.spec_types import BIGINT
from headgate.pipeline import declaration
from headgate.pipeline import jobs_drift as drift
from headgate.pipeline.columns import add, drop, fit_bronze
from headgate.pipeline.compile.compile_dataset import BRONZE_BATCH, BRONZE_STREAMING, evolved_bronze
from headgate.pipeline.compile.evolution import (
    MOST_COLUMNS,
    Seen,
    evolved_columns,
    folded,
    new_columns,
    type_of,
    with_fractions,
)
from headgate.pipeline.declaration import DatasetRevision
from headgate.pipeline.spec import from_plain


class Evolution:
    """The columns of one run's bronze table."""

    def __init__(self, session: SparkSession, store: OpsStore, table: str, declared: str) -> None:
        self._session = session
        self._store = store
        self._table = ManagedTable(session, table)
        self._declared = declaration.fetch(store, declared)
        columns = fit_bronze(self._table, from_plain(self._declared.manifest))
        self.revision = self._fitted(self._declared, columns)
        self._added: tuple[Column, ...] = ()
        # Fields whose columns would have refused records; they are not tried again in this run.
        self._left: set[str] = set()

    def evolve(self, intent: Intent, seen: Sequence[Seen], records: DataFrame) -> Intent | None:
        """The intent under a revision with columns for these fields; None when none of them gets one."""
        judged_by = declaration.fetch(self._store, intent.revisions[0])
        if not can_evolve(judged_by):
            return None
        taken, room = self._room(judged_by)
        self._added = new_columns(seen, taken, room)
        if not self._added:
            return None
        self._added = new_columns(self._as_written(seen, records), taken, room)
        columns = add(self._table, self._added)
        self.revision = self._fitted(self._declared, columns)
        amended = self._store.amend(intent, (self._fitted(judged_by, columns),))
        return replace(amended, run=intent.run)

    def take_back(self, intent: Intent, revisions: tuple[str, ...]) -> Intent:
        """The intent as it was before the columns that were added last, and the table without them."""
        names = [column.name for column in self._added]
        self._left.update(names)
        columns = drop(self._table, names)
        self.revision = self._fitted(self._declared, columns)
        return replace(self._store.amend(intent, revisions), run=intent.run)

    def _as_written(self, seen: Sequence[Seen], records: DataFrame) -> tuple[Seen, ...]:
        """The fields to be columns of whole numbers, looked up once more in the records themselves."""
        chosen = {column.name for column in self._added}
        whole = [f.field for f in seen if f.field in chosen and type_of(f) == BIGINT]
        return with_fractions(seen, drift.fractions(records, whole))

    def _room(self, revision: DatasetRevision) -> tuple[list[str], int]:
        """The names that are taken, and how many more columns may come."""
        columns = self._table.look().columns()
        taken = [*(column.name for column in columns), *self._left]
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
