"""Bronze: a topic into an Iceberg table, raw and complete. What cannot be a row is a dead letter."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from headgate.compile.dataset import BRONZE_BATCH, BRONZE_STREAMING
from headgate.compile.fragments import table_name, view_stem
from headgate.engine.context import RunContext
from headgate.engine.followed import Followed
from headgate.engine.statements import create
from headgate.engine.stream import Pace
from headgate.engine.topics import Topics
from headgate.jobs import declaration
from headgate.jobs.bronze_batch import BronzeBatch, BronzeTarget
from headgate.jobs.evolve import Evolution
from headgate.jobs.reading import Reading
from headgate.jobs.repair import REPAIR, run_repair
from headgate.jobs.topic_run import TopicRun


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
