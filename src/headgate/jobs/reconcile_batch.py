"""One batch of a reconciled pair: states staged and judged, then all it says published in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headgate.compile.reconcile.limits import Limits
from headgate.compile.reconcile.tables import SIDES, STATE
from headgate.compile.script import Script
from headgate.engine.dead_letters import send_dead_letters
from headgate.engine.faults import Point
from headgate.engine.followed import topic_ranges
from headgate.engine.iceberg import ManagedTable
from headgate.engine.jvm import Snapshot, session_id
from headgate.engine.protocol import BatchProtocol, Result
from headgate.engine.reach import Reached, topic_reached
from headgate.engine.stream import read_ranges
from headgate.errors import OperationError
from headgate.jobs.binding import BOUND, set_clock
from headgate.jobs.quality_batch import bind_committed, closed_before, set_batch
from headgate.jobs.quality_target import REFUSED
from headgate.jobs.reconcile_counts import Counted, Hint, Records
from headgate.jobs.reconcile_states import (
    batch_states,
    bind_sources,
    bind_views,
    has_late,
    inside,
    judged_states,
    late_states,
)
from headgate.jobs.reconcile_target import ReconcileTarget
from headgate.jobs.refusals import publish_letters, publish_once, stage
from headgate.jobs.rules_revision import RulesRevision
from headgate.store.model import TOPIC_SOURCE, Intent


@dataclass(frozen=True)
class Touched:
    """The states that a micro-batch touches: to be carried out exactly once.

    `hint` tells what was observed meanwhile; windows that ended by `watermark` were dropped.
    """

    frame: DataFrame
    hint: Callable[[], Hint | None]
    watermark: int


class ReconcileBatch:
    """The work of one batch, as the protocol asks for it.

    Without `touched` states it is of records alone: what stands of their keys elsewhere is merged later.
    """

    def __init__(
        self,
        session: SparkSession,
        target: ReconcileTarget,
        protocol: BatchProtocol,
        touched: Touched | None = None,
    ) -> None:
        self._session, self._target, self._protocol = session, target, protocol
        self._touched = touched
        self._results = ManagedTable(session, target.table)
        self._states = ManagedTable(session, target.states)
        self._partials = ManagedTable(session, target.partials)
        self.carried_out = False

    def reached(self, intent: Intent) -> Reached | None:
        return topic_reached(self._results, self._protocol.store, intent.job)

    def account(self, intent: Intent) -> Result | None:
        return self._target.account(self._session, intent)

    def write(self, intent: Intent) -> Result:
        writing = Writing(self._session, self._target, self._protocol, intent)
        records = writing.bind()
        states, hint = self._stage_states(writing)
        results, firsts = self._judge(writing, states)
        counted = records.count(hint, firsts, self._states.appended(states))
        counted = self._with_late(writing, counted, states)
        bind_committed(
            self._session, writing.script, writing.rules, self._results.appended(results)
        )
        partials = stage(
            self._partials,
            intent,
            writing.script.one("partials"),
            counted.outcomes,
            counted.counters,
        )
        self._protocol.faults.at(Point.AFTER_STAGING)
        writing.refuse(counted)
        publish_once(self._states, intent, states)
        self._protocol.faults.at(Point.AFTER_STATES)
        publish_once(self._partials, intent, partials)
        self._protocol.faults.at(Point.AFTER_PARTIALS)
        return self._protocol.published(self, intent, lambda: self._results.publish(results))

    def _stage_states(self, writing: Writing) -> tuple[Snapshot, Hint | None]:
        """The touched states, and beside them those that the stream has dropped as too late."""
        self._protocol.faults.during(Point.MID_WRITE, self._states.write_begun)
        touched = self._touched
        if touched is None:
            return self._keep(writing, writing.states()), None
        staged = self._keep(writing, touched.frame)
        self.carried_out = True
        hint = touched.hint()
        if not touched.watermark:
            return staged, hint
        if hint is not None and not has_late(hint.earliest, writing.limits, touched.watermark):
            return staged, hint
        late = late_states(writing.states(), writing.limits, touched.watermark)
        if late.isEmpty():
            return staged, hint
        both = self._states.appended(staged).select(*STATE).unionByName(late.select(*STATE))
        return self._keep(writing, both), None

    def _keep(self, writing: Writing, states: DataFrame) -> Snapshot:
        states.createOrReplaceTempView(writing.rules.names.batch_states)
        return stage(self._states, writing.intent, writing.script.one("states"))

    def _judge(self, writing: Writing, states: Snapshot) -> tuple[Snapshot, int | None]:
        """Verdicts on what has changed, staged; and how many sides came first in this batch."""
        intent, watermark = writing.intent, self._touched.watermark if self._touched else 0
        found = self._states.appended(states)
        judged = judged_states(found, intent.range, writing.limits, watermark)
        first = (f"IF({inside(f'{s}_first', s, intent.range)}, 1, 0)" for s in SIDES)
        both = " + ".join(f"coalesce({part}, 0)" for part in first)
        seen = Observation()
        judged = judged.observe(seen, F.sum(F.expr(both)).alias("firsts"))
        judged.createOrReplaceTempView(writing.rules.names.states)
        staged = stage(self._results, intent, writing.script.one("accept"))
        firsts = seen.get.get("firsts")
        return staged, int(firsts) if firsts is not None else None

    def _with_late(self, writing: Writing, counted: Counted, states: Snapshot) -> Counted:
        watermark = self._touched.watermark if self._touched else 0
        if not watermark:
            return counted
        late = late_states(self._states.appended(states), writing.limits, watermark)
        found = late.agg(F.sum("records").alias("n")).first()
        n = int((found["n"] if found else 0) or 0)
        return replace(counted, counters={**counted.counters, "late_records": n}) if n else counted


@dataclass(frozen=True)
class Writing:
    """A batch that is being written: its file, bound to its records, in its session."""

    session: SparkSession
    target: ReconcileTarget
    protocol: BatchProtocol
    intent: Intent

    @cached_property
    def rules(self) -> RulesRevision:
        return self.target.revisions.of(self.intent.revisions[0])

    @cached_property
    def script(self) -> Script:
        return self.target.revisions.script(self.intent.revisions[0])

    @property
    def limits(self) -> Limits:
        if self.rules.limits is None:
            raise OperationError(f"{self.rules.name} is no reconciled pair")
        return self.rules.limits

    @cached_property
    def frames(self) -> Mapping[str, DataFrame]:
        return read_ranges(self.session, self.target.bootstrap, self.intent.range)

    def bind(self) -> Records:
        """The records under the names that the file reads, and its views, unless they are there."""
        bind_sources(self.frames, {source.side: source.bound for source in self.rules.sources})
        bound = f"{BOUND}{self.intent.job}"
        made_for = f"{self.intent.revisions[0]} {session_id(self.session)}"
        if self.session.conf.get(bound, "") != made_for:
            bind_views(self.session, self.script)
            self.session.conf.set(bound, made_for)
        set_clock(self.session, self.intent)
        closed = closed_before(self.protocol, self.session, self.rules, self.intent)
        set_batch(self.session, self.intent, closed)
        frames = tuple(self.frames.values())
        return Records(self.session, self.script, self.rules.names, self.intent.range, frames)

    def states(self) -> DataFrame:
        """The states of these records alone."""
        return batch_states(self.session, self.script, self.rules.names)

    def refuse(self, counted: Counted) -> None:
        """Dead letters first: once the results are published, the batch is wholly accounted for."""
        letters = counted.outcomes.get(REFUSED, 0)
        if not letters:
            return
        statement = self.script.one("refuse")
        publish_letters(
            self.session, self.protocol, self.intent, statement, counted.outcomes, letters
        )
        topics = self.target.dlq_topics or {}
        for own in topic_ranges(self.intent.range).values():
            topic = own.source.removeprefix(TOPIC_SOURCE)
            one = replace(self.intent, range=own)
            send_dead_letters(
                self.session, one, self.target.bootstrap, topics.get(topic, f"{topic}.dlq")
            )
