"""Quality: the rows of one source judged by rules, a topic batch by batch, a table by its snapshot."""

from __future__ import annotations

from dataclasses import replace

from headgate.core.engine.context import RunContext
from headgate.core.engine.engine_stream import Pace
from headgate.core.engine.reading import DLQ_TOPIC, MOST, TOPIC, trigger_of
from headgate.core.engine.repair import REPAIR, repair_topic
from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.followed import Followed
from headgate.core.lake.statements import create
from headgate.core.ledger.store_model import Progress
from headgate.quality.job.quality_target import QualityTarget
from headgate.quality.job.quality_topic import QualityRun, with_keys
from headgate.quality.job.snapshot import SnapshotRun
from headgate.quality.revision import Revisions, RulesRevision


def run_quality(context: RunContext) -> None:
    """Judge the topic to its end, or for ever; or the current snapshot of the table once."""
    # A session of its own: while a batch is staged, every commit of its session is.
    context = replace(context, session=context.session.newSession())
    revisions = Revisions(context.store, context.settings)
    rules = revisions.of(context.run.revision)
    create(context.session, rules.tables())
    target = with_keys(context, quality_target(context, rules, revisions))
    if not rules.follows_a_topic:
        SnapshotRun(context, target).evaluate()
        return
    name = context.run.options.get(TOPIC) or rules.topic_of(rules.first, context.settings)
    topic = Followed.one(Topics(target.bootstrap).found(name))
    if context.run.options.get("form") == REPAIR:
        done = repair_topic(context, target, topic)
        words = f"goes on at {dict(done.offsets)}; the old checkpoint is {done.aside}"
        context.report(Progress(words=words))
        return
    QualityRun(context, target, pace_of(context)).follow(topic)


def quality_target(
    context: RunContext, rules: RulesRevision, revisions: Revisions
) -> QualityTarget:
    """Where this run writes; a table has neither a broker nor a topic for its dead letters."""
    settings, run = context.settings, context.run
    dlq_topic, bootstrap = "", ""
    if rules.follows_a_topic:
        dlq_topic = run.options.get(DLQ_TOPIC) or rules.dlq_topic_of(rules.first, settings)
        bootstrap = str(settings.need("bootstrap_servers"))
    return QualityTarget(
        job=run.job,
        table=rules.results,
        dlq_topic=dlq_topic,
        bootstrap=bootstrap,
        name=rules.name,
        revisions=revisions,
    )


def pace_of(context: RunContext) -> Pace:
    """How the batches of this run are cut."""
    settings, kept = context.settings, context.run.options
    most = int(kept.get(MOST, settings.max_offsets_per_batch))
    return Pace(trigger_of(context.run, settings), most)
