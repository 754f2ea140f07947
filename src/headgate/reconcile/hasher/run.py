"""Opens what a hasher needs, runs it until it is stopped or has read all, and reports what it did."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial

from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.metrics.delivery import in_background
from headgate.core.runtime.journal import interruption
from headgate.errors import SettingsError
from headgate.reconcile.cassandra.session import Cassandra, Place, session_at
from headgate.reconcile.hasher.consumer import LagWatch
from headgate.reconcile.hasher.lookups import Lookups
from headgate.reconcile.hasher.metrics import Counts, HasherMetrics, metering
from headgate.reconcile.hasher.plan import HasherPlan
from headgate.reconcile.hasher.publisher import EPOCH, Publisher
from headgate.reconcile.hasher.readings import Reading
from headgate.reconcile.hasher.requests import (
    Asked,
    Record,
    Skipped,
    asked_of,
    changed_of,
    request_of,
    reread_topic,
)
from headgate.reconcile.hasher.service import Ends, Hasher, Watcher
from headgate.reconcile.hasher.table import Drift, DriftMemory, HashedTable

CLOUD_PARTITIONS, LETTER_PARTITIONS = 6, 3
TOPIC_DAYS, LETTER_DAYS = 3, 7


@dataclass(frozen=True)
class Hashed:
    """What a run did."""

    table: str
    mode: str
    records: int
    readings: int
    not_found: int
    tombstones: int
    partial: int
    skipped: dict[str, int]
    dead_letters: int
    rereads: int
    changed: int
    rereads_left: int
    lookups: int
    elapsed_seconds: float
    stopped: bool
    new_columns: int = 0
    removed_columns: int = 0
    pauses: int = 0
    outcomes: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def per_second(self) -> float:
        return self.lookups / self.elapsed_seconds if self.elapsed_seconds else 0.0


def run_hasher(
    plan: HasherPlan, place: Place, watcher: Watcher, dogstatsd: str | None = None
) -> Hashed:
    """Look rows up until stopped (or, with `--once`, through); everything counted is acknowledged."""
    begun = time.monotonic()
    ends = _ready(plan)
    # Registers the schema of readings, where there is one: no registry is asked from here on.
    plan.closed(plan.cloud.fields(Reading("", None, EPOCH)))
    counts = Counts()
    with session_at(place, plan.given.timeout) as cassandra, interruption() as stopped:
        table = _table(plan, cassandra, counts, watcher)
        publisher = Publisher(plan.bootstrap, plan.job)
        lookups = Lookups(table, plan.limits)
        asked = partial(asked_by, plan)
        hasher = Hasher(plan, table, lookups, publisher, counts, watcher, asked)
        lag = LagWatch(plan.bootstrap, plan.topics, lambda: hasher.reached)
        metrics = HasherMetrics(plan.table, plan.job, counts, lookups, hasher.rereads, lag.lags)
        with metering(metrics, plan.given, dogstatsd, watcher), in_background(lag.run, "lag"):
            hasher.run(stopped, ends if plan.given.once else None)
        return _summed(plan, counts, lookups, len(hasher.rereads), begun, stopped=stopped())


def asked_by(plan: HasherPlan, record: Record) -> Asked | Skipped:
    """What a record of any topic that is read asks for."""
    if plan.given.mode == "cdc":
        return changed_of(record, plan.key)
    if record.topic == reread_topic(plan.topic):
        return request_of(record)
    return asked_of(record, plan.events, plan.opened)


def _ready(plan: HasherPlan) -> Ends:
    """Make the topics that are missing, and note where those that are read end."""
    topics = Topics(plan.bootstrap)
    topics.need()
    wanted = [
        TopicSpec(plan.cloud_topic, CLOUD_PARTITIONS, TOPIC_DAYS),
        TopicSpec(plan.letters_topic, LETTER_PARTITIONS, LETTER_DAYS),
    ]
    topics.create(wanted)
    _require_times(plan, topics)
    partitions = topics.found(plan.topic).partitions
    more = [TopicSpec(name, partitions, TOPIC_DAYS) for name in plan.topics if name != plan.topic]
    topics.create(more)
    found = [topics.found(name) for name in plan.topics]
    return Ends({(state.name, p): end for state in found for p, end in state.end.items()})


def _require_times(plan: HasherPlan, topics: Topics) -> None:
    """A tombstone's version is its record's time: that of the delete, which the topic must keep."""
    if plan.tombstones and not topics.keeps_times(plan.cloud_topic):
        raise SettingsError(
            f"{plan.cloud_topic} does not keep the times that records are sent with",
            why="a tombstone would have the time of its arrival as its version, and a row that was"
            " made anew before then would stay a ZOMBIE",
            fix="set message.timestamp.type=CreateTime on the topic, or use no tombstones",
        )


def _table(plan: HasherPlan, cassandra: Cassandra, counts: Counts, watcher: Watcher) -> HashedTable:
    def note(drift: Drift, is_drift: bool) -> None:
        counts.new_columns += len(drift.new) * is_drift
        counts.removed_columns += len(drift.removed) * is_drift
        for line in drift.lines(plan.cassandra_table):
            watcher.say(line)

    name, fields = plan.cassandra_table, plan.fields
    memory = DriftMemory(plan.columns_file, note)
    return HashedTable(cassandra, name, plan.key, fields, plan.version, memory, plan.kinds)


def _summed(
    plan: HasherPlan,
    counts: Counts,
    lookups: Lookups,
    left: int,
    begun: float,
    *,
    stopped: bool,
) -> Hashed:
    return Hashed(
        table=plan.table,
        mode=plan.given.mode,
        records=counts.read,
        readings=counts.readings,
        not_found=counts.not_found,
        tombstones=counts.tombstones,
        partial=counts.partial,
        skipped=dict(counts.skipped),
        dead_letters=counts.records["dead_letter"],
        rereads=counts.rereads,
        changed=counts.changed,
        rereads_left=left,
        lookups=lookups.timing.lookups,
        elapsed_seconds=round(time.monotonic() - begun, 2),
        stopped=stopped,
        new_columns=counts.new_columns,
        removed_columns=counts.removed_columns,
        pauses=counts.pauses,
        outcomes=dict(counts.records),
    )
