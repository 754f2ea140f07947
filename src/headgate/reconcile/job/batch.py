"""One batch of a reconciled pair: states staged and judged, dead letters, then all tables published in order.

Order of publication: dead letters, states, partials, results. Results come last, so their commit says that the
batch is whole. A batch done again behind its published states judges those states, not the records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headgate.conditions.literals import spark_literal
from headgate.core.engine.batch import BatchProtocol, Point, Result
from headgate.core.engine.staging import BOUND, publish_letters, publish_once, set_clock, stage
from headgate.core.engine.stream import read_ranges
from headgate.core.lake.dead_letters import send_dead_letters
from headgate.core.lake.spark import Snapshot, session_id
from headgate.core.lake.table import ManagedTable, Reached, topic_reached
from headgate.core.ledger.model import Intent
from headgate.core.ledger.ranges import PairRange, expect_range
from headgate.core.sql.script import Script
from headgate.errors import OperationError
from headgate.quality.job.batch import REFUSED, bind_committed, closed_before, set_batch
from headgate.quality.revision import RulesRevision
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.compile.states import SIDES, STATE
from headgate.reconcile.job.cross_window import Ahead, Moment, Straddling, moment_of, one_of
from headgate.reconcile.job.states import (
    Spread,
    batch_states,
    bind_sources,
    bind_views,
    has_late,
    inside,
    is_late,
    judged_states,
    last_told,
    late_states,
    only_changes,
    spread_of,
    steady,
    window_of,
)
from headgate.reconcile.job.target import Counted, Hint, ReconcileTarget, Records, Seen


@dataclass(frozen=True)
class Touched:
    """The states that a micro-batch touches: to be carried out exactly once.

    `hint` tells what was observed meanwhile; `ahead` has keys of which earlier windows have newer versions.
    """

    frame: DataFrame
    hint: Callable[[], Hint | None]
    moment: Moment
    ahead: Ahead


@dataclass(frozen=True)
class Kept:
    """The states of a batch as their table has them, `staged` where they are not published yet.

    `moment` is None where they are of records alone. Of `late` records the windows were dropped.
    """

    states: DataFrame
    staged: Snapshot | None
    moment: Moment | None = None
    hint: Hint | None = None
    late: int = 0


class ReconcileBatch:
    """The work of one batch, as the protocol asks for it.

    Without `touched` states those that an earlier attempt has published are judged again, as they were.
    Where there are none it is of records alone, and every key is merged with what the table has of it.
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
        kept = self._keep_states(writing)
        straddling = self._straddling(writing, kept)
        results, seen = self._judge(writing, kept, straddling)
        known = kept.states.select(*STATE)
        if straddling is not None:
            known = straddling.with_others(known)
        counted = records.count(kept.hint, seen, known)
        counted = counted.with_one("late_records", kept.late)
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
        if kept.staged is not None:
            publish_once(self._states, intent, kept.staged)
        self._protocol.faults.at(Point.AFTER_STATES)
        publish_once(self._partials, intent, partials)
        self._protocol.faults.at(Point.AFTER_PARTIALS)
        return self._protocol.published(self, intent, lambda: self._results.publish(results))

    def _keep_states(self, writing: Writing) -> Kept:
        self._protocol.faults.during(Point.MID_WRITE, self._states.write_begun)
        if self._touched is not None:
            return self._of_stream(writing, self._touched)
        return self._as_published(writing) or self._kept(writing, writing.states())

    def _of_stream(self, writing: Writing, touched: Touched) -> Kept:
        """The touched states, and beside them those that the stream has dropped.

        A record is dropped where it comes too late for its window.
        """
        moment, kept = touched.moment, self._kept(writing, touched.frame, touched.moment)
        self.carried_out = True
        kept = replace(kept, hint=touched.hint())
        if not moment.dropped_by:
            return kept
        hint = kept.hint
        if hint is not None and not has_late(hint.earliest, writing.limits, moment.dropped_by):
            return kept
        late, records = writing.late(moment)
        if not records:
            return kept
        columns = (*STATE, "records")
        both = kept.states.select(*columns).unionByName(late.select(*columns))
        return replace(self._kept(writing, both, moment), hint=hint, late=records)

    def _as_published(self, writing: Writing) -> Kept | None:
        """What an attempt that knew its stream has published; its windows may be counted since."""
        intent = writing.intent
        found = self._states.commit_of(intent)
        moment = moment_of(found.marker.counters) if found is not None else None
        if moment is None:
            return None
        at = spark_literal(intent.batch_time)
        states = self._session.table(self._target.states).where(f"batch_time = {at}")
        _, late = writing.late(moment)
        return Kept(states, None, moment, late=late)

    def _kept(self, writing: Writing, states: DataFrame, moment: Moment | None = None) -> Kept:
        kept = states.withColumn("batch_time", F.expr(steady("session.batch_time")))
        kept.createOrReplaceTempView(writing.rules.names.window_states)
        counters = moment.counters if moment is not None else None
        staged = stage(
            self._states, writing.intent, writing.script.one("states"), counters=counters
        )
        return Kept(self._states.appended(staged), staged, moment)

    def _straddling(self, writing: Writing, kept: Kept) -> Straddling | None:
        """What other windows may know of the touched keys; None where they can know nothing."""
        others, moment = self._session.table(self._target.states), kept.moment
        if moment is None:
            return Straddling(others, None)
        spread = self._spread(kept)
        reached = moment.watermark * 1000 + writing.limits.wait // timedelta(microseconds=1)
        newest = window_of(max(spread.latest, reached), writing.limits)
        if moment.amid is not None and newest <= moment.amid:
            return Straddling(others, None)
        is_behind = window_of(spread.earliest, writing.limits) < newest
        known_ahead = self._touched.ahead if self._touched is not None else Ahead()
        ahead = known_ahead.of(self._before(writing.intent), newest, is_behind)
        if is_behind:
            return Straddling(others, newest if ahead is not None else None, ahead or ())
        older = others.where(f"window_start < timestamp_micros({newest}L)")
        if ahead is None:
            return Straddling(older, None)
        if ahead and not kept.states.where(one_of(ahead)).isEmpty():
            return Straddling(older, newest, ahead)
        looked_up = spread.repeated or (spread.doubtful and not older.isEmpty())
        return Straddling(older, newest) if looked_up else None

    def _spread(self, kept: Kept) -> Spread:
        """By what was observed, or by the states: both say the same, so that a batch done again does."""
        hint = kept.hint
        if hint is None:
            return spread_of(kept.states)
        return Spread(hint.earliest, hint.latest, hint.doubtful, hint.repeated)

    def _before(self, intent: Intent) -> DataFrame:
        """The states from before this batch; its own may be there too, after a kill."""
        at = spark_literal(intent.batch_time)
        return self._session.table(self._target.states).where(f"batch_time < {at}").select(*STATE)

    def _judge(
        self, writing: Writing, kept: Kept, straddling: Straddling | None
    ) -> tuple[Snapshot, Seen]:
        """Verdicts on what has changed, staged; and what was seen of the states meanwhile."""
        intent, names = writing.intent, writing.rules.names
        late = is_late(writing.limits, kept.moment.dropped_by if kept.moment else 0)
        judged = judged_states(kept.states, writing.range, late, straddling)
        seen = Observation()
        judged = judged.observe(seen, *_observed(writing.range)).where("changed")
        judged.createOrReplaceTempView(names.states)
        results = self._session.table(names.results)
        if straddling is not None:
            keys, at = straddling.keys(kept.states), spark_literal(intent.batch_time)
            results = only_changes(
                results, last_told(self._session.table(self._target.table), keys, at)
            )
        results.createOrReplaceTempView(names.changes)
        staged = stage(self._results, intent, writing.script.one("accept"))
        found = seen.get
        return staged, Seen(*(int(found.get(name) or 0) for name in Seen._fields))


def _observed(range_: PairRange) -> tuple[Column, ...]:
    """What is counted of states while they are judged, as `Seen` has it."""
    first = (f"IF({inside(f'{s}_first', s, range_)}, 1, 0)" for s in SIDES)
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

    @property
    def range(self) -> PairRange:
        return expect_range(self.intent.range, PairRange)

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
        return read_ranges(self.session, self.target.bootstrap, self.range)

    def bind(self) -> Records:
        """The records under the names that the file reads, and its views, unless they are there."""
        bind_sources(self.frames, {source.side: source.bound for source in self.rules.sources})
        bound = f"{BOUND}{self.intent.job}"
        made_for = f"{self.intent.revisions[0]} {session_id(self.session)}"
        if self.session.conf.get(bound, "") != made_for:
            bind_views(self.session, self.script, self.rules.names)
            self.session.conf.set(bound, made_for)
        set_clock(self.session, self.intent)
        closed = closed_before(self.protocol, self.session, self.rules, self.intent)
        set_batch(self.session, self.intent, closed)
        frames = tuple(self.frames.values())
        return Records(self.session, self.script, self.rules.names, self.range, frames)

    def states(self) -> DataFrame:
        """The states of these records alone."""
        return batch_states(self.session, self.script, self.rules.names, self.limits)

    def late(self, moment: Moment) -> tuple[DataFrame, int]:
        """The states of records that the stream has dropped, and how many records these are."""
        states = late_states(self.states(), self.limits, moment.dropped_by)
        found = states.agg(F.sum("records").alias("n")).first()
        return states, int((found["n"] if found else 0) or 0)

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
        for own in self.range.sides.values():
            one = replace(self.intent, range=own)
            send_dead_letters(
                self.session, one, self.target.bootstrap, topics.get(own.topic, f"{own.topic}.dlq")
            )
