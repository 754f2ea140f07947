"""Recover from the tables what was lost beside them: a job's checkpoint, or rows of the ledger.

Both rest on the metadata that commits carry. A repaired checkpoint begins behind all that is committed or
announced; batches of a topic that is gone are settled where their rows stand, else given up and
taken back. The old checkpoint is moved aside, never deleted. A rebuilt ledger has every row whose
snapshot is still kept; batches whose snapshots are expired are listed as unknown.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from headgate.app import load
from headgate.conditions.literals import spark_literal
from headgate.config.settings import Settings
from headgate.core.engine.batch import Result, TopicTarget, ledger_row
from headgate.core.engine.checkpoint import Checkpoint, repair_checkpoint
from headgate.core.engine.job_kind import KINDS
from headgate.core.engine.lease import EngineLease
from headgate.core.engine.run import RunContext
from headgate.core.kafka.offsets import Followed
from headgate.core.lake.commits import fence_properties, intent_of, properties
from headgate.core.lake.spark import sql
from headgate.core.lake.table import SUMMARY, Committed, ManagedTable, topic_reached
from headgate.core.ledger.model import Intent, LedgerExtra, LedgerRow
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import DEAD_LETTERS
from headgate.errors import ConflictError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Account = Callable[[Intent], Result | None]
GiveUp = Callable[[Intent], None]
RecoveredRow = tuple[LedgerRow, Sequence[LedgerExtra]]


@dataclass(frozen=True)
class Repaired:
    """Where the job goes on, and where the old checkpoint was put."""

    job: str
    aside: str
    offsets: Mapping[str, int]


@dataclass(frozen=True)
class Place:
    """Whose checkpoint it is, and where; `shape` is that of the state which it is to keep."""

    session: SparkSession
    settings: Settings
    store: OpsStore
    job: str
    shape: str = ""


def repair_topic(context: RunContext, target: TopicTarget, topic: Followed) -> Repaired:
    """Begin a new checkpoint at the committed end of a job that follows a topic."""
    session = context.session
    place = Place(session, context.settings, context.store, target.job, target.shape)
    return repaired(
        place,
        ManagedTable(session, target.table),
        topic,
        lambda intent: target.account(session, intent),
        lambda intent: take_back(session, target, intent),
    )


def repaired(
    place: Place,
    table: ManagedTable,
    topic: Followed,
    account: Account,
    give_up: GiveUp = lambda _: None,
) -> Repaired:
    announced: list[Intent] = []
    for intent in place.store.open_intents(place.job):
        if intent.range.source_id == topic.topic_id:
            announced.append(intent)
        else:
            _close(table, place.store, intent, account, give_up)
    location = f"{place.settings.checkpoints.rstrip('/')}/{place.job}"
    checkpoint = Checkpoint(place.session, location, topic.names)
    reached = topic_reached(table, place.store, place.job)
    aside, offsets = repair_checkpoint(checkpoint, topic, reached, announced, place.shape)
    return Repaired(place.job, aside, offsets)


def _close(
    table: ManagedTable, store: OpsStore, intent: Intent, account: Account, give_up: GiveUp
) -> None:
    """A batch of a topic that is gone: settled if its rows stand, otherwise given up."""
    result = account(intent) if table.exists() else None
    if result is None:
        give_up(intent)
        store.withdraw(intent)
    else:
        store.settle(intent, ledger_row(intent, result), result.extras)


def take_back(session: SparkSession, target: TopicTarget, intent: Intent) -> None:
    """What a batch that is given up has published of rows that now nobody has: counts and keys.

    Its dead letters stay: they are all that is left of their records.
    """
    for name in target.before:
        table = ManagedTable(session, name)
        commit = table.commit_of(intent) if name != DEAD_LETTERS and table.exists() else None
        if commit is not None:
            at = spark_literal(commit.marker.batch_time)
            # Files that are dropped whole leave a commit without our mark; the second test forbids it.
            rows = f"batch_time = {at} AND unix_micros(batch_time) = unix_micros({at})"
            with _as_fence(session, intent):
                sql(session, f"DELETE FROM {name} WHERE {rows}")


@contextmanager
def _as_fence(session: SparkSession, intent: Intent) -> Generator[None]:
    """Commits made inside bear the mark of a batch that is given up."""
    told = fence_properties(properties(intent, uuid.uuid4().hex))
    for name, value in told.items():
        session.conf.set(SUMMARY + name, value)
    try:
        yield
    finally:
        for name in told:
            session.conf.unset(SUMMARY + name)


@dataclass(frozen=True)
class RecoveredRows:
    """What the tables still tell: ledger rows, and in words what their history no longer has."""

    rows: tuple[RecoveredRow, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class Rebuilt:
    """How many ledger rows were missing and are there again, and what cannot be known any more."""

    added: int
    unknown: tuple[str, ...]


def rebuild_ledger(settings: Settings, store: OpsStore) -> Rebuilt:
    """Add the ledger rows that are missing."""
    from headgate.core.engine.session import start_session, stop_session

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
    found: list[RecoveredRows] = []
    for entry in (kind.rebuild for kind in KINDS.values() if kind.rebuild):
        found += load(entry)(session, settings, store)
    added = store.rebuild(row for each in found for row in each.rows)
    return Rebuilt(added, tuple(words for each in found for words in each.unknown))


def recover_target(session: SparkSession, target: TopicTarget) -> RecoveredRows:
    """The ledger rows of one job, from the commits of its table."""
    table = ManagedTable(session, target.table)
    rows: list[RecoveredRow] = []
    for commit in commits_oldest_first(table, target.job):
        intent = intent_of(commit.marker)
        rows += recover_row(commit, intent, target.account(session, intent))
    return RecoveredRows(tuple(rows), tuple(describe_expired_history(table)))


def describe_expired_history(table: ManagedTable) -> Iterator[str]:
    """Words for a table whose oldest snapshots were expired: with them went their markers."""
    begun = begin_of_history(table)
    if begun is not None:
        yield f"{table.name}: batches before {begun:%Y-%m-%d %H:%M:%S} UTC are expired"


def begin_of_history(table: ManagedTable) -> datetime | None:
    """When the oldest snapshot that is left was made; None when the whole history is there."""
    oldest = deque(table.look().history(), maxlen=1) if table.exists() else ()
    for snapshot in oldest:
        if snapshot.parent is not None:
            return snapshot.at
    return None


def commits_oldest_first(table: ManagedTable, job: str) -> list[Committed]:
    return list(table.commits(job))[::-1] if table.exists() else []


def recover_row(commit: Committed, intent: Intent, result: Result | None) -> Iterator[RecoveredRow]:
    """The ledger row of a commit, with its extra rows; none where the tables do not account for it."""
    if result is not None:
        yield replace(ledger_row(intent, result), committed_at=commit.snapshot.at), result.extras
