"""One batch of a reconciled pair: states staged and judged, then all it says published in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from pyspark.sql import Column, DataFrame, Observation, SparkSession
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
from headgate.expr.literals import spark_literal
from headgate.jobs.binding import BOUND, set_clock
from headgate.jobs.quality_batch import bind_committed, closed_before, set_batch
from headgate.jobs.quality_target import REFUSED
from headgate.jobs.reconcile_ahead import Ahead
from headgate.jobs.reconcile_counts import Counted, Hint, Records, Seen
from headgate.jobs.reconcile_states import (
    Straddling,
    batch_states,
    bind_sources,
    bind_views,
    has_late,
    inside,
    is_late,
    judged_states,
    late_states,
    one_of,
    window_of,
)
from headgate.jobs.reconcile_target import ReconcileTarget
from headgate.jobs.refusals import publish_letters, publish_once, stage
from headgate.jobs.rules_revision import RulesRevision
from headgate.store.model import TOPIC_SOURCE, Intent


@dataclass(frozen=True)
class Touched:
    """The states that a micro-batch touches: to be carried out exactly once.

    `hint` tells what was observed meanwhile; windows that ended by `watermark` were dropped. Of windows
    `amid` which the state began, up to that start, the table knows more. `ahead` has keys of which
    earlier windows have newer versions.
    """

    frame: DataFrame
    hint: Callable[[], Hint | None]
    watermark: int
    ahead: Ahead
    amid: int | None = None


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
        states, hint, late = self._stage_states(writing)
        straddling = self._straddling(writing, hint, states)
        before = self._before(intent) if hint is None or hint.conflicted else None
        results, seen = self._judge(writing, states, straddling, before)
        known = self._states.appended(states).select(*STATE)
        if straddling is not None:
            known = straddling.with_others(known)
        counted = records.count(hint, seen, known)
        counted = counted.with_one("late_records", late)
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

    def _stage_states(self, writing: Writing) -> tuple[Snapshot, Hint | None, int]:
        """The touched states, beside them those that the stream has dropped, and of how many records.

        A record is dropped where it comes too late for its window.
        """
        self._protocol.faults.during(Point.MID_WRITE, self._states.write_begun)
        touched = self._touched
        if touched is None:
            return self._keep(writing, writing.states()), None, 0
        staged = self._keep(writing, touched.frame)
        self.carried_out = True
        hint = touched.hint()
        if not touched.watermark:
            return staged, hint, 0
        if hint is not None and not has_late(hint.earliest, writing.limits, touched.watermark):
            return staged, hint, 0
        late = late_states(writing.states(), writing.limits, touched.watermark)
        found = late.agg(F.sum("records").alias("n")).first()
        records = int((found["n"] if found else 0) or 0)
        if not records:
            return staged, hint, 0
        both = self._states.appended(staged).select(*STATE).unionByName(late.select(*STATE))
        return self._keep(writing, both), hint, records

    def _keep(self, writing: Writing, states: DataFrame) -> Snapshot:
        states.createOrReplaceTempView(writing.rules.names.batch_states)
        return stage(self._states, writing.intent, writing.script.one("states"))

    def _straddling(
        self, writing: Writing, hint: Hint | None, states: Snapshot
    ) -> Straddling | None:
        """What other windows may know of the touched keys; None where they can know nothing."""
        others, touched = self._session.table(self._target.states), self._touched
        if touched is None or hint is None:
            return Straddling(others, None)
        reached = touched.watermark * 1000 + writing.limits.wait // timedelta(microseconds=1)
        newest = window_of(max(hint.latest, reached), writing.limits)
        if touched.amid is not None and newest <= touched.amid:
            return Straddling(others, None)
        is_behind = window_of(hint.earliest, writing.limits) < newest
        ahead = touched.ahead.of(others, newest, is_behind)
        if is_behind:
            return Straddling(others, newest if ahead is not None else None, ahead or ())
        older = others.where(f"window_start < timestamp_micros({newest}L)")
        if ahead is None:
            return Straddling(older, None)
        if ahead and not self._states.appended(states).where(one_of(ahead)).isEmpty():
            return Straddling(older, newest, ahead)
        return Straddling(older, newest) if hint.doubtful and not older.isEmpty() else None

    def _before(self, intent: Intent) -> DataFrame:
        """The states from before this batch; its own may be there too, after a kill."""
        at = spark_literal(intent.batch_time)
        return self._session.table(self._target.states).where(f"batch_time < {at}").select(*STATE)

    def _judge(
        self,
        writing: Writing,
        states: Snapshot,
        straddling: Straddling | None,
        before: DataFrame | None,
    ) -> tuple[Snapshot, Seen]:
        """Verdicts on what has changed, staged; and what was seen of the states meanwhile."""
        intent, watermark = writing.intent, self._touched.watermark if self._touched else 0
        found, late = self._states.appended(states), is_late(writing.limits, watermark)
        judged = judged_states(found, intent.range, late, straddling, before)
        seen = Observation()
        judged = judged.observe(seen, *_observed(intent))
        judged.createOrReplaceTempView(writing.rules.names.states)
        staged = stage(self._results, intent, writing.script.one("accept"))
        found = seen.get
        return staged, Seen(*(int(found.get(name) or 0) for name in Seen._fields))


def _observed(intent: Intent) -> tuple[Column, ...]:
    """What is counted of states while they are judged, as `Seen` has it."""
    first = (f"IF({inside(f'{s}_first', s, intent.range)}, 1, 0)" for s in SIDES)
    counts = {
        "states": "count(*)",
        "firsts": f"sum({' + '.join(f'coalesce({part}, 0)' for part in first)})",
    }
    return tuple(F.expr(sql).alias(name) for name, sql in counts.items())


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
