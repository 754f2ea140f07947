"""Windows of a quality job: closed by what its partials say."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.engine.context import RunContext
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.core.metrics.emit import Emitter
from headgate.core.metrics.metrics_windows import WindowShape
from headgate.quality.job.quality_partials import Partials
from headgate.quality.revision import RulesRevision

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def shape_of(job: str, rules: RulesRevision, settings: Settings) -> WindowShape:
    """The dimensions come from the first source."""
    first = rules.first
    return WindowShape(
        job=job,
        table_name=f"{rules.name}_{first.side}",
        topic_name=rules.topic_of(first, settings) if first.topic else str(first.iceberg),
        env=rules.env,
        dc=first.dc,
        namespace=rules.namespace,
        window=rules.window,
        watermark=first.watermark,
        metrics=tuple(dict.fromkeys(rule.metric for rule in rules.rules)),
        anew=not rules.follows_a_topic,
    )


def emitter_of(context: RunContext, rules: RulesRevision) -> Emitter:
    """Closes the windows of this run's job, with sums from its partials."""
    return emitter(context.session, context.store, context.settings, context.run.job, rules)


def emitter(
    session: SparkSession,
    store: OpsStore,
    settings: Settings,
    job: str,
    rules: RulesRevision,
    clock: Callable[[], datetime] = utc_now,
) -> Emitter:
    """The same for any job, whether or not a run of it is under way."""
    partials = Partials(session, rules.partials)
    shape = shape_of(job, rules, settings)
    return Emitter(store, shape, lambda starts: partials.sums(rules, starts), clock)
