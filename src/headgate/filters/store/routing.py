"""Desired filters (written by the control plane), their status and sets (written by the router), replay ranges.

A change of desired filters raises the generation of its source: between batches the router reads that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, Select, delete, insert, select, update

from headgate.core.ledger import batches as intents
from headgate.core.ledger import batches as ledger
from headgate.core.ledger.database import writing
from headgate.core.ledger.model import Intent, canonical, fingerprint
from headgate.core.ledger.offset_ranges import Spans
from headgate.core.ledger.tables import revisions
from headgate.errors import BatchRefusedError
from headgate.filters.store import routed
from headgate.filters.store.model import (
    Boundary,
    Member,
    Owed,
    Owing,
    RevisionCount,
    Routed,
    RoutedBatch,
    Seen,
    Standing,
    TopicEnd,
    Wanted,
)
from headgate.filters.store.tables import (
    owed_ranges,
    routing_sets,
    seen_filters,
    wanted_changes,
    wanted_filters,
)

FILTER, FILTER_SET = "filter", "filter-set"
TAKEN_AWAY = "the filter was taken away"
# That a filter has left one source says nothing about how it stands on the other.
_NEWEST_LAST = (seen_filters.c.standing != Standing.OFF.value, seen_filters.c.id)


class RoutingStore:
    """Wanted and seen filters, the sets they make, and what each has judged; one transaction each."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine, self._clock = engine, clock

    # What is wanted: written by the control plane only

    def want(self, wanted: Wanted) -> None:
        """From the next batch on, or while nothing comes within seconds; the same again is no change."""
        with writing(self._engine) as db:
            before = _wanted_filter(db, wanted.filter)
            if before == wanted:
                return
            _keep(db, wanted.revision, FILTER, wanted.filter, wanted.content, self._clock())
            db.execute(delete(wanted_filters).where(wanted_filters.c.filter == wanted.filter))
            db.execute(insert(wanted_filters).values(**_wanted_row(wanted), at=self._clock()))
            _changed(db, {wanted.source, *([before.source] if before else [])})

    def unwant(self, filter: str) -> None:
        """No longer route it; what it has judged stays on record."""
        with writing(self._engine) as db:
            before = _wanted_filter(db, filter)
            if before is not None:
                db.execute(delete(wanted_filters).where(wanted_filters.c.filter == filter))
                _changed(db, {before.source})

    def wanted(self, source: str | None = None) -> tuple[Wanted, ...]:
        query = select(wanted_filters).order_by(wanted_filters.c.filter)
        if source is not None:
            query = query.where(wanted_filters.c.source == source)
        with self._engine.connect() as db:
            return tuple(_wanted(row) for row in db.execute(query).mappings())

    def wanted_filter(self, filter: str) -> Wanted | None:
        with self._engine.connect() as db:
            return _wanted_filter(db, filter)

    def generation(self, source: str) -> int:
        """How often what is wanted of this source has changed."""
        with self._engine.connect() as db:
            return _generation(db, source)

    # What is seen: written by the router only

    def see(self, seen: Sequence[Seen]) -> None:
        """How filters stand now; how they stood before stays on record."""
        with writing(self._engine) as db:
            _see(db, seen, self._clock())

    def seen(self, source: str | None = None) -> tuple[Seen, ...]:
        """How each filter stands that was ever wanted, or was of this source."""
        query = select(seen_filters).where(seen_filters.c.newest)
        if source is not None:
            query = query.where(seen_filters.c.source == source)
        rows = self._seen(query.order_by(seen_filters.c.filter, *_NEWEST_LAST))
        return tuple({one.filter: one for one in rows}.values())

    def seen_filter(self, filter: str) -> Seen | None:
        query = select(seen_filters).where(seen_filters.c.newest, seen_filters.c.filter == filter)
        found = self._seen(query.order_by(*_NEWEST_LAST))
        return found[-1] if found else None

    def history(self, filter: str) -> tuple[Seen, ...]:
        """Every standing of a filter, in the order it had them."""
        query = select(seen_filters).where(seen_filters.c.filter == filter)
        return self._seen(query.order_by(seen_filters.c.id))

    def _seen(self, query: Select[Any]) -> tuple[Seen, ...]:
        with self._engine.connect() as db:
            return tuple(_seen(row) for row in db.execute(query).mappings())

    # Sets

    def take_over(
        self,
        source: str,
        members: Sequence[Member],
        seen: Sequence[Seen],
        owed: Sequence[Owed],
        boundary: Boundary | None = None,
    ) -> str:
        """This set judges from now on; with it goes how its filters stand, and what they owe.

        BatchRefusedError when the job is no longer between these two batches.
        """
        with writing(self._engine) as db:
            if boundary is not None:
                _refuse_unless_at(db, boundary)
            set_id = _keep_set(db, source, members, self._clock())
            _see(db, [replace(one, set_id=set_id) for one in seen], self._clock())
            _end_owed(db, seen, self._clock())
            _owe(db, owed, self._clock())
        return set_id

    def suspend(self, intent: Intent, members: Sequence[Member], seen: Sequence[Seen]) -> Intent:
        """The same batch under a set that lacks those who made it fail."""
        source = intent.range.source.partition(":")[2]
        with writing(self._engine) as db:
            set_id = _keep_set(db, source, members, self._clock())
            _see(db, [replace(one, set_id=set_id) for one in seen], self._clock())
            return intents.amend(db, intent, (set_id,))

    def keep_set(self, source: str, members: Sequence[Member]) -> str:
        """The id of this set, which is on record from now on."""
        with writing(self._engine) as db:
            return _keep_set(db, source, members, self._clock())

    def members(self, set_id: str) -> tuple[Member, ...]:
        query = select(routing_sets).where(routing_sets.c.set_id == set_id)
        with self._engine.connect() as db:
            rows = db.execute(query.order_by(routing_sets.c.filter))
            return tuple(Member(row.filter, row.revision, row.topic) for row in rows)

    def topics(self, source: str) -> tuple[str, ...]:
        """Every topic that filters of this source ever sent to."""
        mine = select(seen_filters.c.filter).where(seen_filters.c.source == source)
        query = select(routing_sets.c.topic).where(routing_sets.c.filter.in_(mine)).distinct()
        with self._engine.connect() as db:
            return tuple(db.scalars(query.order_by(routing_sets.c.topic)))

    # What was judged

    def routed(self, filter: str) -> Routed:
        """Every range that a filter has judged, live or beside, and how much it sent on."""
        with self._engine.connect() as db:
            return routed.of_filter(db, filter)

    def revision_counts(self, filter: str) -> tuple[RevisionCount, ...]:
        """How many records each revision of a filter judged, sent on and refused."""
        with self._engine.connect() as db:
            return routed.revision_counts(db, filter)

    def judged_within(self, filter: str, source: str, source_id: str, within: Spans) -> Spans:
        """What the filter has judged of these offsets of its source."""
        jobs = (f"router-{source}", f"replay-{filter}")
        with self._engine.connect() as db:
            return routed.judged_within(db, filter, jobs, source_id, within)

    def routed_sums(self, job: str | None = None) -> Mapping[str, tuple[int, int]]:
        """Per filter: records sent on and records refused."""
        with self._engine.connect() as db:
            return routed.sums(db, job)

    def routed_between(self, after: int, until: int) -> Mapping[tuple[str, str], tuple[int, int]]:
        """Per job and filter, what the batches of these rows of the ledger sent on and refused."""
        with self._engine.connect() as db:
            return routed.sums_between(db, after, until)

    def routed_batches(self, job: str) -> Mapping[int, RoutedBatch]:
        """The set and counts of a job's batches, by the number of their ledger row."""
        with self._engine.connect() as db:
            return routed.batches(db, job)

    def reached(self, job: str) -> Mapping[str, Mapping[str, int]]:
        """How far a job has settled each topic that it ever read, by the topic's id."""
        with self._engine.connect() as db:
            return routed.reached(db, job)

    # What is owed

    def owed(
        self, filter: str | None = None, states: Collection[Owing] | None = None
    ) -> tuple[Owed, ...]:
        query = select(owed_ranges).order_by(owed_ranges.c.id)
        if filter is not None:
            query = query.where(owed_ranges.c.filter == filter)
        if states is not None:
            query = query.where(owed_ranges.c.state.in_([state.value for state in states]))
        with self._engine.connect() as db:
            return tuple(_owed(row) for row in db.execute(query).mappings())

    def give_up(self, owed: Sequence[Owed], reason: str) -> None:
        """Put on record that these offsets will not be judged."""
        with writing(self._engine) as db:
            lost = [replace(one, state=Owing.GIVEN_UP, reason=reason) for one in owed]
            _owe(db, lost, self._clock())

    def settle_owed(self, owed: Owed, state: Owing, reason: str = "") -> None:
        with writing(self._engine) as db:
            values = {"state": state.value, "reason": reason, "at": self._clock()}
            db.execute(update(owed_ranges).where(owed_ranges.c.id == owed.id).values(**values))


def _refuse_unless_at(db: Connection, boundary: Boundary) -> None:
    """A standing that is written beside a batch would speak of offsets that another set judges."""
    settled = ledger.settled_range(db, boundary.job)
    same = settled is not None and settled.source_id == boundary.source_id
    reached = dict(settled.end) if settled is not None and same else {}
    announced = [
        one
        for one in intents.open_of(db, boundary.job)
        if one.range.source_id == boundary.source_id
    ]
    if announced or reached != dict(boundary.reached):
        raise BatchRefusedError(
            f"the set of {boundary.job} cannot change now",
            why="a batch was announced or settled since it was planned: another engine works on it",
            fix=f"headgate job restart {boundary.job}, if this engine is the only one",
        )


def _wanted_filter(db: Connection, filter: str) -> Wanted | None:
    query = select(wanted_filters).where(wanted_filters.c.filter == filter)
    row = db.execute(query).mappings().one_or_none()
    return _wanted(row) if row else None


def _generation(db: Connection, source: str) -> int:
    query = select(wanted_changes.c.generation).where(wanted_changes.c.source == source)
    return db.scalar(query) or 0


def _changed(db: Connection, sources: Collection[str]) -> None:
    for source in sources:
        generation = _generation(db, source) + 1
        db.execute(delete(wanted_changes).where(wanted_changes.c.source == source))
        db.execute(insert(wanted_changes).values(source=source, generation=generation))


def _see(db: Connection, seen: Sequence[Seen], now: datetime) -> None:
    for one in seen:
        mine = (seen_filters.c.filter == one.filter) & (seen_filters.c.source == one.source)
        before = update(seen_filters).where(mine & seen_filters.c.newest)
        db.execute(before.values(newest=False))
        values = {**vars(one), "standing": one.standing.value, "cutover": dict(one.cutover)}
        values |= {"at": one.at or now, "newest": True}
        db.execute(insert(seen_filters).values(**values))


def _keep_set(db: Connection, source: str, members: Sequence[Member], now: datetime) -> str:
    content = canonical([vars(one) for one in sorted(members, key=lambda one: one.filter)])
    set_id = fingerprint(content)
    if _keep(db, set_id, FILTER_SET, source, content, now) and members:
        db.execute(insert(routing_sets), [{"set_id": set_id, **vars(one)} for one in members])
    return set_id


def _keep(db: Connection, hash: str, kind: str, name: str, content: str, now: datetime) -> bool:
    """Whether the revision is new."""
    if db.scalar(select(revisions.c.hash).where(revisions.c.hash == hash)) is not None:
        return False
    values = {"hash": hash, "kind": kind, "name": name, "content": content, "created_at": now}
    db.execute(insert(revisions).values(**values))
    return True


def _owe(db: Connection, owed: Sequence[Owed], now: datetime) -> None:
    for one in owed:
        values = {**vars(one), "state": one.state.value, "at": now}
        values |= {"start": dict(one.start), "end": dict(one.end)}
        del values["id"]
        db.execute(insert(owed_ranges).values(**values))


def _end_owed(db: Connection, seen: Sequence[Seen], now: datetime) -> None:
    """A filter that is taken away owes nothing more; one that is deployed again tries once more."""
    for one in seen:
        mine = (owed_ranges.c.filter == one.filter) & (owed_ranges.c.source == one.source)
        if one.standing is Standing.OFF:
            left = mine & owed_ranges.c.state.in_([Owing.WAITING.value, Owing.FAILED.value])
            values = {"state": Owing.GIVEN_UP.value, "reason": TAKEN_AWAY, "at": now}
            db.execute(update(owed_ranges).where(left).values(**values))
        elif one.standing is Standing.LIVE:
            failed = mine & (owed_ranges.c.state == Owing.FAILED.value)
            values = {"state": Owing.WAITING.value, "reason": "", "at": now}
            db.execute(update(owed_ranges).where(failed).values(**values))


def _wanted(row: RowMapping) -> Wanted:
    values: dict[str, Any] = {str(name): value for name, value in row.items() if name != "at"}
    values["since"] = TopicEnd(**values["since"]) if values["since"] else None
    return Wanted(**values)


def _wanted_row(wanted: Wanted) -> dict[str, Any]:
    return {**vars(wanted), "since": vars(wanted.since) if wanted.since else None}


def _seen(row: RowMapping) -> Seen:
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    del values["id"], values["newest"]
    values["standing"] = Standing(values["standing"])
    return Seen(**values)


def _owed(row: RowMapping) -> Owed:
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    values["state"] = Owing(values["state"])
    return Owed(**values)
