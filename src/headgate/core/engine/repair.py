"""Mending a checkpoint: the table knows how far its topic was read."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from headgate.conditions.expr_literals import spark_literal
from headgate.config.settings import Settings
from headgate.core.engine.context import RunContext
from headgate.core.engine.engine_checkpoint import Checkpoint
from headgate.core.engine.protocol import Result, ledger_row
from headgate.core.engine.resume import repair_checkpoint
from headgate.core.engine.topic_target import TopicTarget
from headgate.core.kafka.followed import Followed
from headgate.core.lake.iceberg import SUMMARY, ManagedTable
from headgate.core.lake.markers import fence_properties, properties
from headgate.core.lake.reach import topic_reached
from headgate.core.lake.statements import sql
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Intent
from headgate.core.sql.compile_fragments import DEAD_LETTERS

REPAIR = "repair"
Account = Callable[[Intent], Result | None]
GiveUp = Callable[[Intent], None]


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
        store.settle(intent, ledger_row(intent, result), result.judged)


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
