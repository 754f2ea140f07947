"""Bronze: a topic into an Iceberg table, raw and complete. What cannot be a row is a dead letter."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from headgate.config.settings import Settings
from headgate.core.engine.context import RunContext
from headgate.core.engine.engine_stream import Pace
from headgate.core.engine.jobs_topic_run import TopicRun
from headgate.core.engine.reading import Reading
from headgate.core.engine.repair import REPAIR, Place, Repaired, repaired
from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.followed import Followed
from headgate.core.lake.iceberg import ManagedTable
from headgate.core.lake.statements import create
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Progress
from headgate.core.sql.compile_fragments import DEAD_LETTERS, job_name, table_name, view_stem
from headgate.pipeline import declaration
from headgate.pipeline.bronze_batch import BronzeBatch, BronzeTarget, account_bronze
from headgate.pipeline.compile.compile_dataset import BRONZE_BATCH, BRONZE_STREAMING
from headgate.pipeline.evolve import Evolution


def run_bronze(context: RunContext) -> None:
    """Read the topic to its end, or for ever, batch by batch."""
    # A session of its own: while a batch is staged, every commit of its session is.
    context = replace(context, session=context.session.newSession())
    if context.run.options.get("form") == REPAIR:
        run_repair(context)
        return
    target, topic = bronze_target(context)
    create(context.session, target.script(context.run.revision).named("table"))
    BronzeRun(context, target).follow(topic)


def bronze_target(context: RunContext) -> tuple[BronzeTarget, Followed]:
    """Where this run reads and writes."""
    settings, run = context.settings, context.run
    revision = declaration.fetch(context.store, run.revision)
    reads = Reading.of(run, revision, settings)
    name = reads.topic
    bootstrap = settings.need("bootstrap_servers")
    topic = Followed.one(Topics(bootstrap).found(name))
    target = BronzeTarget(
        job=run.job,
        scripts=declaration.Scripts(context.store, settings),
        file=BRONZE_BATCH if run.mode == "batch" else BRONZE_STREAMING,
        view=f"{view_stem(revision.name)}_source",
        table=table_name(revision.bronze_table),
        dlq_topic=reads.dlq_topic,
        bootstrap=bootstrap,
    )
    return target, topic


def _pace(context: RunContext) -> Pace:
    revision = declaration.fetch(context.store, context.run.revision)
    reads = Reading.of(context.run, revision, context.settings)
    return Pace(reads.trigger_seconds, reads.max_offsets)


class BronzeRun(TopicRun):
    """Takes the micro-batches of one run through the protocol."""

    def __init__(self, context: RunContext, target: BronzeTarget) -> None:
        super().__init__(context, target, _pace(context))
        self._bronze = target
        self._evolution = Evolution(
            context.session, context.store, target.table, context.run.revision
        )

    @property
    def revision(self) -> str:
        return self._evolution.revision

    def _batch(self, frame: DataFrame) -> BronzeBatch:
        return BronzeBatch(frame, self._bronze, self._protocol, self._evolution)


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
    topic = Followed.one(Topics(settings.need("bootstrap_servers")).found(name))
    table = ManagedTable(session, table_name(revision.bronze_table))
    letters = ManagedTable(session, DEAD_LETTERS)
    place = Place(session, settings, store, job_name("bronze", dataset))
    return repaired(place, table, topic, lambda intent: account_bronze(table, letters, intent))
