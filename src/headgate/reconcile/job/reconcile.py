"""Reconcile: both sides of a pair, key by key, as their topics go on; a batch is the same to their end."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from headgate.core.engine.context import RunContext
from headgate.core.engine.reading import TOPIC_OF
from headgate.core.engine.repair import REPAIR, repair_topic
from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.followed import FIRST_SIDE, Followed
from headgate.core.lake.iceberg import ManagedTable
from headgate.core.lake.statements import create, sql
from headgate.core.ledger.store_model import Progress
from headgate.errors import OperationError
from headgate.quality.job.quality import pace_of
from headgate.quality.revision import Revisions, RulesRevision, SourceRevision
from headgate.reconcile.compile.tables import CHANGES, STATES
from headgate.reconcile.job.reconcile_run import ReconcileRun
from headgate.reconcile.job.reconcile_states import AGGREGATED
from headgate.reconcile.job.reconcile_target import ReconcileTarget

# Options of the query's own session. A batch without a record would only let go of old state, which
# the next batch does too; and few versions of the state are ever gone back to.
OPTIONS = {
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
}


def run_reconcile(context: RunContext) -> None:
    """Judge both topics to their ends, or for ever."""
    # A session of its own: while a batch is staged, every commit of its session is.
    context = replace(context, session=context.session.newSession())
    for name, value in OPTIONS.items():
        context.session.conf.set(name, value)
    revisions = Revisions(context.store, context.settings)
    rules = revisions.of(context.run.revision)
    create(context.session, rules.tables())
    target = reconcile_target(context, rules, revisions)
    fit_columns(ManagedTable(context.session, target.states), STATES)
    fit_columns(ManagedTable(context.session, target.table), CHANGES)
    topic = _followed(context, rules)
    if context.run.options.get("form") == REPAIR:
        done = repair_topic(context, target, topic)
        words = f"goes on at {dict(done.offsets)}; the old checkpoint is {done.aside}"
        context.report(Progress(words=words))
        return
    ReconcileRun(context, target, pace_of(context)).follow(topic)


def reconcile_target(
    context: RunContext, rules: RulesRevision, revisions: Revisions
) -> ReconcileTarget:
    """Where this run reads and writes."""
    settings = context.settings
    if rules.limits is None:
        raise OperationError(
            f"{rules.name} has one source, and nothing to be reconciled with",
            fix=f"headgate job run quality-{rules.name}",
        )
    letters = {rules.topic_of(s, settings): rules.dlq_topic_of(s, settings) for s in rules.sources}
    shape = revisions.script(rules.hash).one(AGGREGATED)
    return ReconcileTarget(
        job=context.run.job,
        table=rules.results,
        dlq_topic=rules.dlq_topic_of(rules.first, settings),
        bootstrap=str(settings.need("bootstrap_servers")),
        name=rules.name,
        revisions=revisions,
        dlq_topics=letters,
        state_shape=hashlib.sha256(shape.encode()).hexdigest()[:16],
    )


def fit_columns(table: ManagedTable, columns: Mapping[str, str]) -> None:
    """Add the columns that a table lacks because it was made before all of them were known."""
    there = {column.name for column in table.look().columns()}
    lacking = [f"{name} {kind}" for name, kind in columns.items() if name not in there]
    if lacking:
        sql(table.session, f"ALTER TABLE {table.name} ADD COLUMNS ({', '.join(lacking)})")


def _followed(context: RunContext, rules: RulesRevision) -> Followed:
    topics = Topics(str(context.settings.need("bootstrap_servers")))

    def found(source: SourceRevision) -> tuple[str, str]:
        kept = context.run.options.get(TOPIC_OF.format(side=source.side))
        return source.side, kept or rules.topic_of(source, context.settings)

    sides = sorted(map(found, rules.sources), key=lambda side: side[0] != FIRST_SIDE)
    return Followed({side: topics.found(name) for side, name in sides})
