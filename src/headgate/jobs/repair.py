"""Mending a checkpoint: the table knows how far its topic was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from headgate.compile.fragments import DEAD_LETTERS, table_name
from headgate.engine.checkpoint import Checkpoint
from headgate.engine.context import RunContext
from headgate.engine.iceberg import ManagedTable
from headgate.engine.protocol import Result, ledger_row
from headgate.engine.reach import topic_reached
from headgate.engine.topics import Topics, TopicState
from headgate.jobs import declaration
from headgate.jobs.bronze_batch import account_bronze
from headgate.jobs.reading import Reading
from headgate.jobs.requests import job_name
from headgate.jobs.resume import repair_checkpoint
from headgate.jobs.topic_target import TopicTarget
from headgate.settings import Settings
from headgate.store.model import Intent, Progress
from headgate.store.ops import OpsStore

REPAIR = "repair"
Account = Callable[[Intent], Result | None]


@dataclass(frozen=True)
class Repaired:
    """Where the job goes on, and where the old checkpoint was put."""

    job: str
    aside: str
    offsets: Mapping[str, int]


@dataclass(frozen=True)
class Place:
    """Whose checkpoint it is, and where."""

    session: SparkSession
    settings: Settings
    store: OpsStore
    job: str


def run_repair(context: RunContext) -> None:
    """A run of the job that reads nothing: while it lasts, no other run of the job can begin."""
    run, settings = context.run, context.settings
    topic = Reading.of(run, declaration.fetch(context.store, run.revision), settings).topic
    done = repair_bronze(context.session, settings, context.store, run.subject, topic)
    words = f"goes on at {dict(done.offsets)}; the old checkpoint is {done.aside}"
    context.report(Progress(words=words))


def repair_bronze(
    session: SparkSession,
    settings: Settings,
    store: OpsStore,
    dataset: str,
    name: str | None = None,
) -> Repaired:
    """Begin a new checkpoint at the table's committed end, on this topic or the declared one."""
    revision = declaration.declared_revision(settings, dataset)
    name = name or revision.topic_names(settings)[0]
    topic = Topics(settings.need("bootstrap_servers")).found(name)
    table = ManagedTable(session, table_name(revision.bronze_table))
    letters = ManagedTable(session, DEAD_LETTERS)
    place = Place(session, settings, store, job_name("bronze", dataset))
    return repaired(place, table, topic, lambda intent: account_bronze(table, letters, intent))


def repair_topic(context: RunContext, target: TopicTarget, topic: TopicState) -> Repaired:
    """The same for any job that follows a topic."""
    place = Place(context.session, context.settings, context.store, target.job)
    table = ManagedTable(context.session, target.table)
    return repaired(place, table, topic, lambda intent: target.account(context.session, intent))


def repaired(place: Place, table: ManagedTable, topic: TopicState, account: Account) -> Repaired:
    announced: list[Intent] = []
    for intent in place.store.open_intents(place.job):
        if intent.range.source_id == topic.topic_id:
            announced.append(intent)
        else:
            _close(table, place.store, intent, account)
    location = f"{place.settings.checkpoints.rstrip('/')}/{place.job}"
    checkpoint = Checkpoint(place.session, location, topic.name)
    reached = topic_reached(table, place.store, place.job)
    aside, offsets = repair_checkpoint(checkpoint, topic, reached, announced)
    return Repaired(place.job, aside, offsets)


def _close(table: ManagedTable, store: OpsStore, intent: Intent, account: Account) -> None:
    """A batch of a topic that is gone: settled if its rows stand, otherwise given up."""
    result = account(intent) if table.exists() else None
    if result is None:
        store.withdraw(intent)
    else:
        store.settle(intent, ledger_row(intent, result), result.judged)
