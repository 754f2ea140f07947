"""`headgate ledger rebuild`: the ledger again, from what the tables' snapshots say of themselves."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.engine.engine_lease import EngineLease
from headgate.core.engine.engine_session import start_session, stop_session
from headgate.core.engine.protocol import Result, ledger_row, span
from headgate.core.lake.iceberg import Committed, ManagedTable
from headgate.core.lake.markers import intent_of
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Intent, Judged, LedgerRow
from headgate.core.sql.compile_fragments import DEAD_LETTERS, job_name, table_name
from headgate.errors import ConflictError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.pipeline import declaration


@dataclass(frozen=True)
class Found:
    """What the tables still tell: ledger rows, and in words what their history no longer has."""

    rows: tuple[LedgerRow, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class Rebuilt:
    """How many ledger rows were missing and are there again, and what cannot be known any more."""

    added: int
    unknown: tuple[str, ...]


def rebuild_ledger(settings: Settings, store: OpsStore) -> Rebuilt:
    """Add the ledger rows that are missing."""
    lease = EngineLease.take(store)
    if lease is None:
        raise ConflictError("an engine is active", fix="headgate local down, then rebuild")
    with lease:
        session = start_session(settings)
        try:
            return rebuild_on(session, settings, store)
        finally:
            stop_session(session)


def rebuild_on(session: SparkSession, settings: Settings, store: OpsStore) -> Rebuilt:
    """The same on a session that is already there."""
    from headgate.declarations.project import available_datasets
    from headgate.pipeline import declaration

    found = [
        what_tables_tell(session, declaration.declared_revision(settings, name))
        for name in available_datasets(settings.root)
    ]
    judged = rules_tell(session, settings, store)
    found.append(judged.found)
    added = store.rebuild((row for each in found for row in each.rows), judged.of)
    return Rebuilt(added, tuple(words for each in found for words in each.unknown))


def what_tables_tell(session: SparkSession, dataset: declaration.DatasetRevision) -> Found:
    """The ledger rows of one dataset, from the markers that expiry has left."""
    from headgate.pipeline.backfill import account_backfill
    from headgate.pipeline.bronze_batch import account_bronze
    from headgate.pipeline.silver_batch import account_silver

    raw = ManagedTable(session, table_name(dataset.bronze_table))
    clean = ManagedTable(session, table_name(dataset.silver_table))
    refused = ManagedTable(session, DEAD_LETTERS)
    rows: list[LedgerRow] = []
    unknown = [*_expired(raw), *_expired(clean)]
    for commit in _oldest_first(raw, job_name("bronze", dataset.name)):
        intent = intent_of(commit.marker)
        result = account_bronze(raw, refused, intent)
        if _rest_unknown(refused, intent, result):
            unknown.append(_lost_refusals(intent))
        else:
            rows += _row(commit, intent, result)
    for commit in _oldest_first(clean, job_name("silver", dataset.name)):
        intent = intent_of(commit.marker)
        rows += _row(commit, intent, account_silver(clean, intent))
    for commit in _oldest_first(clean, job_name("backfill", dataset.name)):
        intent = intent_of(commit.marker)
        rows += _row(commit, intent, account_backfill(clean, intent))
    return Found(tuple(rows), tuple(unknown))


@dataclass(frozen=True)
class JudgedRows:
    """The ledger rows of quality jobs, and what their rules found in each."""

    found: Found
    judged: Mapping[tuple[str, datetime], Judged]

    def of(self, row: LedgerRow) -> Judged | None:
        return self.judged.get((row.job, row.batch_time))


def rules_tell(session: SparkSession, settings: Settings, store: OpsStore) -> JudgedRows:
    """The ledger rows of every declared rule table that has results."""
    from headgate.quality.job.quality_target import table_target
    from headgate.quality.spec.rules_loader import rule_files, tables_in
    from headgate.reconcile.job.reconcile_target import pair_target

    rows, unknown, judged = list[LedgerRow](), list[str](), dict[tuple[str, datetime], Judged]()
    for name in (name for file in rule_files(settings.root) for name in tables_in(file)):
        target = pair_target(session, settings, store, name) or table_target(
            session, settings, store, name
        )
        results = ManagedTable(session, target.table)
        unknown += _expired(results) if results.exists() else ()
        for commit in _oldest_first(results, target.job):
            intent = intent_of(commit.marker)
            result = target.account(session, intent)
            rows += _row(commit, intent, result)
            if result is not None and result.judged is not None:
                judged[intent.job, intent.batch_time] = result.judged
    return JudgedRows(Found(tuple(rows), tuple(unknown)), judged)


def _expired(table: ManagedTable) -> Iterator[str]:
    """Words for a table whose oldest snapshots were expired: with them went their markers."""
    begun = _beginning(table)
    if begun is not None:
        yield f"{table.name}: batches before {begun:%Y-%m-%d %H:%M:%S} UTC are expired"


def _beginning(table: ManagedTable) -> datetime | None:
    """When the oldest snapshot that is left was made; None when the whole history is there."""
    oldest = deque(table.look().history(), maxlen=1) if table.exists() else ()
    for snapshot in oldest:
        if snapshot.parent is not None:
            return snapshot.at
    return None


def _rest_unknown(refused: ManagedTable, intent: Intent, result: Result | None) -> bool:
    """Whether not all was accepted and the count of the rest may be expired with its dead letters."""
    if result is None or intent.is_accepted_gap or refused.name in result.snapshots:
        return False
    if result.read == span(intent.range):
        return False
    begun = _beginning(refused)
    return begun is not None and begun > intent.batch_time


def _lost_refusals(intent: Intent) -> str:
    start, end = dict(intent.range.start), dict(intent.range.end)
    return f"{intent.job}: how many of offsets {start} to {end} were refused is expired"


def _oldest_first(table: ManagedTable, job: str) -> list[Committed]:
    return list(table.commits(job))[::-1] if table.exists() else []


def _row(commit: Committed, intent: Intent, result: Result | None) -> Iterator[LedgerRow]:
    if result is not None:
        yield replace(ledger_row(intent, result), committed_at=commit.snapshot.at)
