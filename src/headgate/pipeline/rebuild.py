"""Recover the ledger rows of datasets from the commits of bronze, silver and the dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.engine.batch import Result, span
from headgate.core.engine.recovery import (
    RecoveredRow,
    RecoveredRows,
    begin_of_history,
    commits_oldest_first,
    describe_expired_history,
    recover_row,
)
from headgate.core.lake.commits import intent_of
from headgate.core.lake.table import ManagedTable
from headgate.core.ledger.model import Intent
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import DEAD_LETTERS, job_name, table_name
from headgate.declarations.project import available_datasets
from headgate.pipeline.backfill import account_backfill
from headgate.pipeline.bronze import account_bronze
from headgate.pipeline.revision import DatasetRevision, declared_revision
from headgate.pipeline.silver import account_silver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def recover_datasets(
    session: SparkSession, settings: Settings, store: OpsStore
) -> Iterator[RecoveredRows]:
    """The ledger rows of each declared dataset, from the markers that expiry has left."""
    for name in available_datasets(settings.root):
        yield recover_dataset(session, declared_revision(settings, name))


def recover_dataset(session: SparkSession, dataset: DatasetRevision) -> RecoveredRows:
    """The ledger rows of bronze, silver and backfill of one dataset."""
    raw = ManagedTable(session, table_name(dataset.bronze_table))
    clean = ManagedTable(session, table_name(dataset.silver_table))
    refused = ManagedTable(session, DEAD_LETTERS)
    rows: list[RecoveredRow] = []
    unknown = [*describe_expired_history(raw), *describe_expired_history(clean)]
    for commit in commits_oldest_first(raw, job_name("bronze", dataset.name)):
        intent = intent_of(commit.marker)
        result = account_bronze(raw, refused, intent)
        if _is_rest_unknown(refused, intent, result):
            unknown.append(_describe_lost_refusals(intent))
        else:
            rows += recover_row(commit, intent, result)
    rows += _recover_rows(clean, job_name("silver", dataset.name), account_silver)
    rows += _recover_rows(clean, job_name("backfill", dataset.name), account_backfill)
    return RecoveredRows(tuple(rows), tuple(unknown))


def _recover_rows(
    table: ManagedTable, job: str, account: Callable[[ManagedTable, Intent], Result | None]
) -> Iterator[RecoveredRow]:
    for commit in commits_oldest_first(table, job):
        intent = intent_of(commit.marker)
        yield from recover_row(commit, intent, account(table, intent))


def _is_rest_unknown(refused: ManagedTable, intent: Intent, result: Result | None) -> bool:
    """Whether not all was accepted and the count of the rest may be expired with its dead letters."""
    if result is None or intent.is_accepted_gap or refused.name in result.snapshots:
        return False
    if result.read == span(intent.range):
        return False
    begun = begin_of_history(refused)
    return begun is not None and begun > intent.batch_time


def _describe_lost_refusals(intent: Intent) -> str:
    start, end = dict(intent.range.start), dict(intent.range.end)
    return f"{intent.job}: how many of offsets {start} to {end} were refused is expired"
