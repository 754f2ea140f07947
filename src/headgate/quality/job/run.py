"""The quality job as an engine hosts it: a run of a rule table, and the permanent views of deployed tables."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.engine.recovery import repair_topic
from headgate.core.engine.run import RunContext
from headgate.core.engine.run_options import TopicRunForm
from headgate.core.kafka.offsets import Followed
from headgate.core.kafka.topics import Topics
from headgate.core.lake.spark import Views, create
from headgate.core.ledger.model import Progress
from headgate.core.ledger.ops_store import OpsStore
from headgate.quality.job.batch import QualityTarget
from headgate.quality.job.snapshot import SnapshotRun
from headgate.quality.job.topic import QualityRun, with_keys
from headgate.quality.job_kind import QualityRunOptions
from headgate.quality.revision import Revisions, RulesRevision
from headgate.quality.store import RuleStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def kept_views(session: SparkSession, store: OpsStore, settings: Settings) -> Generator[None]:
    """The views of all that is deployed, as long as the engine is there."""
    views = views_of(session, store, settings)
    views.start()
    try:
        yield
    finally:
        views.stop()


def views_of(session: SparkSession, store: OpsStore, settings: Settings) -> Views:
    """The tables that views read are made with them: a view can be listed before the first batch."""
    revisions, rule_store = Revisions(store, settings), store.part(RuleStore)

    def deployed() -> Mapping[str, str]:
        rows = rule_store.deployed_revisions()
        return {row.table: f"{row.revision} {row.at}" for row in rows}

    def statements(table: str) -> Sequence[str]:
        revision = rule_store.deployed_revision(table)
        if revision is None:
            return ()
        rules = revisions.of(revision)
        return (*rules.tables(), *rules.permanent_views(revisions.script(revision)))

    return Views(session, deployed, statements)


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
    options = QualityRunOptions.of(context.run)
    topic = Followed.one(Topics(target.bootstrap).found(options.topic))
    if options.form is TopicRunForm.REPAIR:
        done = repair_topic(context, target, topic)
        words = f"goes on at {dict(done.offsets)}; the old checkpoint is {done.aside}"
        context.report(Progress(words=words))
        return
    QualityRun(context, target, options).follow(topic)


def quality_target(
    context: RunContext, rules: RulesRevision, revisions: Revisions
) -> QualityTarget:
    """Where this run writes; a table has neither a broker nor a topic for its dead letters."""
    settings, run = context.settings, context.run
    return QualityTarget(
        job=run.job,
        table=rules.results,
        dlq_topic=QualityRunOptions.of(run).dlq_topic,
        bootstrap=str(settings.need("bootstrap_servers")) if rules.follows_a_topic else "",
        name=rules.name,
        revisions=revisions,
    )
