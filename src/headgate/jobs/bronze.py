"""Bronze: a topic into an Iceberg table, raw and complete. What cannot be a row is a dead letter."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from headgate.compile.dataset import BRONZE_BATCH, BRONZE_STREAMING
from headgate.compile.fragments import DEAD_LETTERS, table_name, view_stem
from headgate.engine.checkpoint import Checkpoint
from headgate.engine.context import RunContext
from headgate.engine.expiry import is_data_loss, refuse_expired, refuse_shorter
from headgate.engine.iceberg import ManagedTable, precedes
from headgate.engine.markers import intent_of
from headgate.engine.protocol import span
from headgate.engine.reach import Reached, topic_reached
from headgate.engine.statements import create
from headgate.engine.stream import Pace, TopicQuery, read_range
from headgate.engine.topics import Topics, TopicState
from headgate.jobs import declaration
from headgate.jobs.bronze_batch import BronzeBatch, BronzeTarget
from headgate.jobs.evolve import Evolution
from headgate.jobs.gap import ACCEPT_GAP, BronzeGap, accept_gap
from headgate.jobs.group import GroupOffsetsOf
from headgate.jobs.progress import RunProgress
from headgate.jobs.reading import Reading
from headgate.jobs.repair import REPAIR, run_repair
from headgate.jobs.resume import goes_on_at, prepare_checkpoint
from headgate.store.model import Intent, Range


def run_bronze(context: RunContext) -> None:
    """Read the topic to its end, or for ever, batch by batch."""
    # A session of its own: while a batch is staged, every commit of its session is.
    context = replace(context, session=context.session.newSession())
    if context.run.options.get("form") == REPAIR:
        run_repair(context)
        return
    target, topic = bronze_target(context)
    create(context.session, target.script(context.run.revision).named("table"))
    location = f"{context.settings.checkpoints.rstrip('/')}/{target.job}"
    checkpoint = Checkpoint(context.session, location, topic.name)
    bronze = BronzeRun(context, target)
    bronze.adopt_half_done(topic)
    if context.run.options.get("form") == ACCEPT_GAP:
        accept_gap(context, target, topic, checkpoint)
        return
    try:
        bronze.read(topic, checkpoint)
    except Exception as error:
        if is_data_loss(error):
            bronze.refuse_what_is_gone(checkpoint)
        raise
    finally:
        bronze.close()


def bronze_target(context: RunContext) -> tuple[BronzeTarget, TopicState]:
    """Where this run reads and writes."""
    settings, run = context.settings, context.run
    revision = declaration.fetch(context.store, run.revision)
    reads = Reading.of(run, revision, settings)
    name = reads.topic
    bootstrap = settings.need("bootstrap_servers")
    topic = Topics(bootstrap).found(name)
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


class BronzeRun:
    """Takes the micro-batches of one run through the protocol."""

    def __init__(self, context: RunContext, target: BronzeTarget) -> None:
        self._context = context
        self._target = target
        self._protocol = context.protocol()
        self._progress = RunProgress(context)
        self._group = GroupOffsetsOf(context, target)
        self._evolution = Evolution(
            context.session, context.store, target.table, context.run.revision
        )

    def read(self, topic: TopicState, checkpoint: Checkpoint) -> None:
        """What a killed run left open, then the topic, to its end or until stopped."""
        context, target = self._context, self._target
        self.finish_open_intents(topic)
        prepare_checkpoint(checkpoint, topic, self._reached(), target.job)
        self._group.catch_up(topic)
        query = TopicQuery(context.session, target.bootstrap, topic, checkpoint, _pace(context))
        query.run(self.handle, context.run.mode, context.stop, context.waits, context.goes_on)

    def close(self) -> None:
        self._group.close()

    def _reached(self) -> Reached | None:
        table = ManagedTable(self._context.session, self._target.table)
        return topic_reached(table, self._context.store, self._target.job)

    def refuse_what_is_gone(self, checkpoint: Checkpoint) -> None:
        """Spark missed records: say which have left the topic since it was last looked at."""
        _, topic = bronze_target(self._context)
        next_ = goes_on_at(topic, self._reached(), checkpoint.start())
        if next_ is not None:
            refuse_shorter(topic, next_, self._target.job)
            refuse_expired(topic, next_, self._target.job)

    def adopt_half_done(self, topic: TopicState) -> None:
        """A batch whose dead letters stand but whose rows do not, announced again if that was lost."""
        session, job = self._context.session, self._target.job
        refusal = ManagedTable(session, DEAD_LETTERS).committed(job)
        if refusal is None or refusal.marker.range.source_id != topic.topic_id:
            return
        rows = ManagedTable(session, self._target.table).committed(job)
        if rows is None or precedes(rows.marker.range, refusal.marker.range):
            self._context.store.begin(intent_of(refusal.marker))

    def finish_open_intents(self, topic: TopicState) -> None:
        """What a killed run announced is done first, with exactly its range."""
        for found in self._context.store.open_intents(self._target.job):
            if found.range.source_id != topic.topic_id:
                continue  # its records are gone; what to do about that is said where it is noticed
            if found.is_accepted_gap:
                gap = BronzeGap(self._context.session, self._target, self._protocol)
                self._protocol.finish(replace(found, run=self._context.run.number), gap)
                continue
            intent = self._judged_now(found)
            frame = read_range(self._context.session, self._target.bootstrap, intent.range)
            self._progress.begin(span(intent.range))
            mine = replace(intent, run=self._context.run.number)
            row = self._protocol.finish(mine, self._batch(frame))
            self._progress.batch(row)

    def _batch(self, frame: DataFrame) -> BronzeBatch:
        return BronzeBatch(frame, self._target, self._protocol, self._evolution)

    def _judged_now(self, intent: Intent) -> Intent:
        """The intent under the revision that wrote for it already, else under this run's."""
        revisions = (self._evolution.revision,)
        for name in (self._target.table, DEAD_LETTERS):
            commit = ManagedTable(self._context.session, name).commit_of(intent)
            if commit is not None:
                revisions = commit.marker.revisions
                break
        if intent.revisions == revisions:
            return intent
        return self._context.store.amend(intent, revisions)

    def handle(self, frame: DataFrame, range_: Range, batch_id: int) -> None:
        run = self._context.run
        revisions = (self._evolution.revision,)
        self._progress.begin(span(range_))
        row = self._protocol.process(
            run.job, run.number, range_, revisions, batch_id, self._batch(frame)
        )
        self._progress.batch(row)
        self._group.follow(range_)
