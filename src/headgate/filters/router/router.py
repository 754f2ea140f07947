"""Router: the events of a topic to the topics of all filters that match them, in one query."""

from __future__ import annotations

from dataclasses import replace

from headgate.core.engine.context import RunContext
from headgate.core.engine.engine_stream import Pace
from headgate.core.engine.reading import DLQ_TOPIC, MOST, trigger_of
from headgate.core.engine.repair import REPAIR
from headgate.core.kafka.engine_topics import Topics, TopicSpec
from headgate.core.kafka.followed import Followed
from headgate.core.lake.statements import create
from headgate.core.ledger.store_model import Progress
from headgate.core.sql.compile_fragments import DEAD_LETTERS, dead_letter_table
from headgate.filters.router.router_gap import repair_router
from headgate.filters.router.router_run import RouterRun
from headgate.filters.router.router_target import RouterTarget

DLQ_PARTITIONS, DLQ_RETENTION_DAYS = 1, 30


def run_router(context: RunContext) -> None:
    """Route the topic to its end, or for ever."""
    # A session of its own: while dead letters are staged, every commit of its session is.
    context = replace(context, session=context.session.newSession())
    target = router_target(context, context.run.subject)
    topic = Followed.one(Topics(target.bootstrap).found(target.source))
    if context.run.options.get("form") == REPAIR:
        done = repair_router(context, target, topic)
        words = f"goes on at {dict(done.offsets)}; the old checkpoint is {done.aside}"
        context.report(Progress(words=words))
        return
    prepare(context, target)
    RouterRun(context, target, pace_of(context)).follow(topic)


def router_target(context: RunContext, source: str) -> RouterTarget:
    """Where a job that routes this topic reads and writes."""
    return RouterTarget(
        job=context.run.job,
        table=DEAD_LETTERS,
        dlq_topic=context.run.options.get(DLQ_TOPIC) or dlq_topic_of(source),
        bootstrap=str(context.settings.need("bootstrap_servers")),
        store=context.store,
        source=source,
    )


def dlq_topic_of(source: str) -> str:
    """Where the dead letters of a topic go beside their table."""
    return f"{source}.dlq"


def prepare(context: RunContext, target: RouterTarget) -> None:
    """The dead letters' table and topic, where they are not there yet."""
    create(context.session, (text for text in dead_letter_table().split(";") if text.strip()))
    spec = TopicSpec(target.dlq_topic, DLQ_PARTITIONS, DLQ_RETENTION_DAYS)
    Topics(target.bootstrap).create([spec])


def pace_of(context: RunContext) -> Pace:
    """How the batches of this run are cut."""
    settings, kept = context.settings, context.run.options
    most = int(kept.get(MOST, settings.max_offsets_per_batch))
    return Pace(trigger_of(context.run, settings), most)
