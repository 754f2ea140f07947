"""The dead letters of a batch: staged, published before its rows, and sent to their topic."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from headgate.core.engine.faults import Point
from headgate.core.engine.protocol import BatchProtocol
from headgate.core.lake.conflicts import AlreadyPublishedError
from headgate.core.lake.iceberg import ManagedTable, Staging, nothing
from headgate.core.lake.jvm import Snapshot
from headgate.core.lake.statements import sql
from headgate.core.ledger.store_model import Intent
from headgate.core.sql.compile_fragments import DEAD_LETTERS
from headgate.errors import BatchRefusedError, OperationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stage(
    table: ManagedTable,
    intent: Intent,
    statement: str,
    outcomes: Mapping[str, int] | None = None,
    counters: Mapping[str, int] | None = None,
) -> Snapshot:
    """The statement's commit to this table, under the batch's marker and not yet published."""
    staging = Staging(table.session, intent, outcomes, counters)
    with staging.open():
        sql(table.session, statement)
    return staging.staged(table)


def publish_once(table: ManagedTable, intent: Intent, staged: Snapshot) -> None:
    """Publish what a batch writes beside its rows; an earlier attempt at the batch may have."""
    with suppress(AlreadyPublishedError):
        table.publish(staged)
    found = table.commit_of(intent)
    if found is None or found.marker.revisions != intent.revisions:
        raise BatchRefusedError(
            f"{table.name} already holds another form of this batch of {intent.job}",
            why=f"a commit starts at {dict(intent.range.start)}, but with another end or revision",
            fix=f"run {intent.job} again: it goes on under the revision that wrote it",
        )


def publish_letters(
    session: SparkSession,
    protocol: BatchProtocol,
    intent: Intent,
    statement: str,
    outcomes: Mapping[str, int],
    letters: int,
    counters: Mapping[str, int] | None = None,
) -> None:
    """So many dead letters; without one the commit is empty and only carries the outcomes."""
    table = ManagedTable(session, DEAD_LETTERS)
    statement = statement if letters else nothing(DEAD_LETTERS)
    staged = stage(table, intent, statement, outcomes, counters)
    if staged.added != letters:
        raise OperationError(
            f"a batch of {intent.job} does not add up",
            why=f"{dict(outcomes)}, but {staged.added} dead letters",
        )
    publish_once(table, intent, staged)
    protocol.faults.at(Point.AFTER_DEAD_LETTERS)
