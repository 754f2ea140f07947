"""Mending a bronze checkpoint: the table knows how far it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from headgate.compile.fragments import DEAD_LETTERS, table_name
from headgate.engine.checkpoint import Checkpoint
from headgate.engine.context import RunContext
from headgate.engine.iceberg import ManagedTable
from headgate.engine.protocol import ledger_row
from headgate.engine.reach import topic_reached
from headgate.engine.topics import Topics
from headgate.jobs import declaration
from headgate.jobs.bronze_batch import account_bronze
from headgate.jobs.reading import Reading
from headgate.jobs.requests import job_name
from headgate.jobs.resume import repair_checkpoint
from headgate.settings import Settings
from headgate.store.model import Intent, Progress
from headgate.store.ops import OpsStore

REPAIR = "repair"


@dataclass(frozen=True)
class Repaired:
    """Where the job goes on, and where the old checkpoint was put."""

    job: str
    aside: str
    offsets: Mapping[str, int]


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
    job = job_name("bronze", dataset)
    table = ManagedTable(session, table_name(revision.bronze_table))
    announced: list[Intent] = []
    for intent in store.open_intents(job):
        if intent.range.source_id == topic.topic_id:
            announced.append(intent)
        else:
            _close(session, table, store, intent)
    checkpoint = Checkpoint(session, f"{settings.checkpoints.rstrip('/')}/{job}", name)
    reached = topic_reached(table, store, job)
    aside, offsets = repair_checkpoint(checkpoint, topic, reached, announced)
    return Repaired(job, aside, offsets)


def _close(session: SparkSession, table: ManagedTable, store: OpsStore, intent: Intent) -> None:
    """A batch of a topic that is gone: settled if its rows stand, otherwise given up."""
    letters = ManagedTable(session, DEAD_LETTERS)
    result = account_bronze(table, letters, intent) if table.exists() else None
    if result is None:
        store.withdraw(intent)
    else:
        store.settle(intent, ledger_row(intent, result))
