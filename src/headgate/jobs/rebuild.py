"""`headgate ledger rebuild`: the ledger again, from what the tables' snapshots say of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from headgate.compile.fragments import DEAD_LETTERS, table_name
from headgate.engine.iceberg import Committed, ManagedTable
from headgate.engine.lease import EngineLease
from headgate.engine.markers import intent_of
from headgate.engine.protocol import Result, ledger_row
from headgate.engine.session import start_session, stop_session
from headgate.errors import ConflictError
from headgate.jobs import declaration
from headgate.jobs.bronze_batch import account_bronze
from headgate.jobs.requests import job_name
from headgate.jobs.silver_batch import account_silver
from headgate.settings import Settings
from headgate.spec.loader import available_datasets
from headgate.store.model import Intent, LedgerRow
from headgate.store.ops import OpsStore


def rebuild_ledger(settings: Settings, store: OpsStore) -> int:
    """Add the ledger rows that are missing; how many there were."""
    lease = EngineLease.take(store)
    if lease is None:
        raise ConflictError("an engine is active", fix="headgate local down, then rebuild")
    with lease:
        session = start_session(settings)
        try:
            rows = tuple(
                row
                for name in available_datasets(settings.root)
                for row in _rows(session, declaration.declared_revision(settings, name))
            )
            return store.rebuild(rows)
        finally:
            stop_session(session)


def _rows(session: SparkSession, dataset: declaration.DatasetRevision) -> Iterator[LedgerRow]:
    raw = ManagedTable(session, table_name(dataset.bronze_table))
    clean = ManagedTable(session, table_name(dataset.silver_table))
    refused = ManagedTable(session, DEAD_LETTERS)
    for commit in _oldest_first(raw, job_name("bronze", dataset.name)):
        intent = intent_of(commit.marker)
        yield from _row(commit, intent, account_bronze(raw, refused, intent))
    for commit in _oldest_first(clean, job_name("silver", dataset.name)):
        intent = intent_of(commit.marker)
        yield from _row(commit, intent, account_silver(clean, intent))


def _oldest_first(table: ManagedTable, job: str) -> list[Committed]:
    return list(table.commits(job))[::-1] if table.exists() else []


def _row(commit: Committed, intent: Intent, result: Result | None) -> Iterator[LedgerRow]:
    if result is not None:
        at = datetime.fromtimestamp(commit.snapshot.timestamp_ms / 1000, UTC)
        yield replace(ledger_row(intent, result), committed_at=at)
