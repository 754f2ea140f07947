"""One batch of the router: judge, send to the output topics, write dead letters, account; isolate failing filters.

A filter that raises, or whose topic takes no records, is found by halving the set, suspended, and the batch is
judged again without it. Dead letters come last: once they are committed, the batch is accounted for, because the
commit carries all counts. The router has no table of its own, so the ledger says how far it has come.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from headgate.conditions.literals import spark_literal
from headgate.core.engine.batch import BatchProtocol, Point, Result, TopicTarget
from headgate.core.engine.staging import publish_letters
from headgate.core.engine.stream import explain, send_each
from headgate.core.kafka.offsets import is_data_loss
from headgate.core.lake.dead_letters import send_dead_letters
from headgate.core.lake.table import ManagedTable, Reached
from headgate.core.ledger.model import Intent
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import DEAD_LETTERS
from headgate.errors import HeadgateError, OperationError
from headgate.filters.router.sets import FilterSet, FilterSets, OutputTopics
from headgate.filters.router.views import RouterViews, Sums, counters, letters
from headgate.filters.store.model import Member, RoutedBatch, RoutedCount
from headgate.filters.store.routed import RoutedRows
from headgate.filters.store.routing import RoutingStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUTED, UNROUTED, REFUSED, TOMBSTONE = "routed", "unrouted", "refused", "tombstone"
# A record that the router has refused; the replay of a filter comes across it a second time.
UNREADABLE = "unreadable"


@dataclass(frozen=True)
class RouterTarget(TopicTarget):
    """`table` holds its dead letters, which come last: a batch that has a commit there is sent."""

    store: OpsStore
    source: str

    @property
    def before(self) -> tuple[str, ...]:
        return ()

    def account(self, session: SparkSession, intent: Intent) -> Result | None:
        """From the dead letters of the batch; one without any is not accounted for by a table."""
        commit = ManagedTable(session, DEAD_LETTERS).commit_of(intent)
        outcomes = commit.marker.outcomes if commit else None
        if commit is None or outcomes is None:
            return None
        marker = commit.marker
        set_id = marker.revisions[0]
        members = self.store.part(RoutingStore).members(set_id)
        revisions = {one.filter: one.revision for one in members}
        counts: dict[str, dict[str, int]] = {}
        for name, n in (marker.counters or {}).items():
            filter, what = json.loads(name)
            counts.setdefault(filter, {})[what] = n
        found = (
            RoutedCount(filter, revisions[filter], own.get("n", 0), own.get("refused", 0))
            for filter, own in sorted(counts.items())
        )
        return Result(
            sum(outcomes.values()),
            outcomes,
            {DEAD_LETTERS: commit.snapshot.id},
            marker.revisions,
            extras=(RoutedRows(RoutedBatch(set_id, tuple(found))),),
        )


def ledger_reached(store: OpsStore, job: str) -> Reached | None:
    """How far the job has come, by the ledger alone."""
    settled = store.settled_range(job)
    return Reached(settled.source_id, settled.end) if settled else None


# What a filter's fault looks like must be seen so often before it is taken for one.
TRIES = 2
Fails = Callable[[Sequence[Member]], str]


class PoisonedFilterError(OperationError):
    """A filter raises, or its topic cannot be written; trying again does not help."""

    code = "HG-1007"


def culprits(members: Sequence[Member], fails: Fails) -> dict[str, str]:
    """The filters that fail, each with the words of its failure; `fails` is empty where all is well."""
    words = fails(members) if members else ""
    if not words:
        return {}
    if len(members) == 1:
        return {members[0].filter: words}
    half = len(members) // 2
    return culprits(members[:half], fails) | culprits(members[half:], fails)


def refuse_unless_ours(error: Exception) -> None:
    """Raise what is no filter's fault: something away, records gone, or an error of our own."""
    if isinstance(error, HeadgateError) or is_data_loss(error):
        raise error
    explained = explain(error)
    if explained.retryable:
        raise explained from error


def words_of(error: Exception) -> str:
    """The failure in one line."""
    return explain(error).one_line


class Isolation(Protocol):
    """What is done about filters that make a batch fail."""

    def suspend(self, intent: Intent, set_: FilterSet, why: Mapping[str, str]) -> Intent:
        """The batch without them, each with the reason."""
        ...


@dataclass(frozen=True)
class Judged:
    """The records of a batch with the filters that match them, kept while they are sent."""

    intent: Intent
    set: FilterSet
    rows: DataFrame
    sums: Sums


@dataclass(frozen=True)
class Means:
    """What all batches of a run share; the letters of unreadable records are the router's alone."""

    target: RouterTarget
    sets: FilterSets
    views: RouterViews
    topics: OutputTopics
    protocol: BatchProtocol
    unreadable: bool = True


class RouterBatch:
    """The work of one batch, as the protocol asks for it."""

    def __init__(
        self, frame: DataFrame, means: Means, isolation: Isolation, *, again: bool = False
    ) -> None:
        self._frame, self._isolation, self._again = frame, isolation, again
        self._means, self._target, self._views = means, means.target, means.views
        self._kept = ExitStack()

    def reached(self, intent: Intent) -> Reached | None:
        if not self._means.unreadable:
            return None  # a replay fills what others left
        return ledger_reached(self._means.protocol.store, intent.job)

    def account(self, intent: Intent) -> Result | None:
        """Only a batch that is done again can have been sent before."""
        if not self._again:
            return None
        found = self._target.account(self._frame.sparkSession, intent)
        if found is not None:
            self._tell_letters(intent)
        return found

    def write(self, intent: Intent) -> Result:
        with ExitStack() as self._kept:
            judged = self._sent(self._judged(intent))
            self._means.protocol.faults.at(Point.AFTER_ROUTING)
            outcomes = self._outcomes(judged.sums)
            snapshots = self._refuse(judged, outcomes)
        done = judged.intent
        return Result(
            judged.sums.read,
            outcomes,
            snapshots,
            done.revisions,
            amended=None if done is intent else done,
            extras=(RoutedRows(RoutedBatch(done.revisions[0], _counts(judged))),),
        )

    def _judged(self, intent: Intent) -> Judged:
        """The batch judged, by as many filters as can."""
        failed = 0
        while True:
            set_ = self._means.sets.of(intent.revisions[0])
            why = self._means.topics.missing(set_.members)
            if not why:
                try:
                    return self._evaluated(intent, set_)
                except Exception as error:
                    refuse_unless_ours(error)
                    failed += 1
                    if failed < TRIES:
                        continue
                    why = self._culprits(intent, set_, error)
            intent, failed = self._isolation.suspend(intent, set_, why), 0

    def _evaluated(self, intent: Intent, set_: FilterSet) -> Judged:
        self._views.bind(self._frame, set_)
        self._keep(self._views.read())
        rows = self._keep(self._views.judged(intent, set_, self._largest(set_.members)))
        return Judged(intent, set_, rows, self._views.sums(rows))

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist()
        self._kept.callback(kept.unpersist)
        return kept

    def _largest(self, members: Sequence[Member]) -> Mapping[str, int]:
        return self._means.topics.largest(members)

    def _culprits(self, intent: Intent, set_: FilterSet, error: Exception) -> dict[str, str]:
        """Judge with ever fewer filters, into nowhere; raises when no single one is to blame."""

        def fails(members: Sequence[Member]) -> str:
            part = self._means.sets.made(members)
            self._views.bind(self._frame, part)
            return _failing(self._views.judged(intent, part, self._largest(members)))

        self._views.bind(self._frame, set_)
        # Records that cannot even be read are nobody's fault.
        found = {} if _failing(self._views.read()) else culprits(set_.members, fails)
        if not found:
            raise error
        return found

    def _sent(self, judged: Judged) -> Judged:
        """Sent to the topics that take it; filters whose topic does not are left out."""
        for _ in range(TRIES):
            try:
                self._send(judged, judged.rows)
                return judged
            except Exception as error:
                gone = self._means.topics.missing(judged.set.members)
                if gone:
                    return self._sent(self._without(judged, gone))
                refuse_unless_ours(error)
        failing = self._send_one_by_one(judged)
        return self._without(judged, failing) if failing else judged

    def _without(self, judged: Judged, why: Mapping[str, str]) -> Judged:
        return self._judged(self._isolation.suspend(judged.intent, judged.set, why))

    def _send_one_by_one(self, judged: Judged) -> dict[str, str]:
        """Each topic alone; the filters whose topic does not take its records, with the reason."""
        failing: dict[str, str] = {}
        for topic in sorted({one.topic for one in judged.set.members}):
            try:
                self._send(judged, judged.rows.where(f"topic = {spark_literal(topic)}"))
            except Exception as error:
                refuse_unless_ours(error)
                failing[topic] = words_of(error)
        return {m.filter: failing[m.topic] for m in judged.set.members if m.topic in failing}

    def _send(self, judged: Judged, rows: DataFrame) -> None:
        if any(n for n, _ in judged.sums.filters.values()):
            most = max(self._largest(judged.set.members).values())
            send_each(rows.where("NOT too_large"), self._target.bootstrap, most)

    def _outcomes(self, sums: Sums) -> Mapping[str, int]:
        rest = sums.read - sums.routed - sums.refused - sums.tombstones
        unreadable = REFUSED if self._means.unreadable else UNREADABLE
        found = {ROUTED: sums.routed, UNROUTED: rest, unreadable: sums.refused}
        return {name: n for name, n in {**found, TOMBSTONE: sums.tombstones}.items() if n}

    def _refuse(self, judged: Judged, outcomes: Mapping[str, int]) -> dict[str, int]:
        """Dead letters come last: once they are published, the batch is wholly accounted for."""
        unreadable, intent = self._means.unreadable, judged.intent
        count = judged.sums.too_large + (judged.sums.refused if unreadable else 0)
        if not count:
            return {}
        self._views.bind(self._frame, judged.set)
        session, statement = self._frame.sparkSession, letters(intent, DEAD_LETTERS, unreadable)
        told = counters(judged.set, judged.sums)
        publish_letters(
            session, self._means.protocol, intent, statement, outcomes, count, counters=told
        )
        self._tell_letters(intent)
        commit = ManagedTable(session, DEAD_LETTERS).commit_of(intent)
        return {DEAD_LETTERS: commit.snapshot.id} if commit else {}

    def _tell_letters(self, intent: Intent) -> None:
        session, target = self._frame.sparkSession, self._target
        send_dead_letters(session, intent, target.bootstrap, target.dlq_topic)


def _failing(rows: DataFrame) -> str:
    """What goes wrong when these are worked out, into nowhere; empty where nothing does."""
    try:
        rows.write.format("noop").mode("overwrite").save()
    except Exception as found:
        refuse_unless_ours(found)
        return words_of(found)
    return ""


def _counts(judged: Judged) -> tuple[RoutedCount, ...]:
    found = ((judged.set.members[i], own) for i, own in sorted(judged.sums.filters.items()))
    return tuple(RoutedCount(one.filter, one.revision, *own) for one, own in found)
