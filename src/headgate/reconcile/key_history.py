"""The history of one key: the messages of both sides, when each arrived first, and every verdict with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake, quoted
from headgate.declarations.types import in_words
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.decision_table import Verdict, judge
from headgate.reconcile.results import (
    flags_sql,
    moment,
    results_table,
    states_table,
    sure,
)
from headgate.reconcile.row_diff import shown_key
from headgate.reconcile.state import (
    DELETE,
    SIDES,
    First,
    Reading,
    Side,
    SideState,
    State,
    merge_all,
)

CONFLICT = "in conflict: one version of a side has said two things; the greatest partition and offset decides"


@dataclass(frozen=True)
class Event:
    """One line of the story; `kind` is reading, verdict or now."""

    at: datetime
    kind: str
    what: str
    why: str
    version: datetime | None = None
    hash: str | None = None


@dataclass(frozen=True)
class Told:
    """A change that was told, and the verdict below its status."""

    event: Event
    verdict: str


@dataclass(frozen=True)
class Story:
    """All that is known of a key, in the order of time, and its verdict at this moment."""

    table: str
    pk: str
    status: str
    since: datetime
    reason: str
    provisional: str | None
    deadline: datetime
    events: tuple[Event, ...]
    # Whether the newest version of a side has said two things.
    conflict: bool = False


def read_story(
    settings: Settings, table: str, pk: str, limits: Limits, now: datetime
) -> Story | None:
    """The key's story; None when no side has said anything of it."""
    with Lake.open(settings) as lake:
        states = _states(lake, table, pk)
        return _story(lake, table, pk, states, limits, now) if states else None


def _story(
    lake: Lake, table: str, pk: str, states: list[State], limits: Limits, now: datetime
) -> Story:
    told = _verdicts(lake, table, pk)
    verdict = judge(merge_all(states), now, limits)
    current = standing_of(told, verdict, now)
    events = sorted([*readings(states), *(each.event for each in told)], key=lambda e: e.at)
    return Story(
        table=table,
        pk=pk,
        status=current.what,
        since=current.at,
        reason=current.why,
        provisional=verdict.provisional,
        deadline=verdict.deadline,
        events=(*events, *([current] if current.kind == "now" else [])),
        conflict=_is_conflict(lake, table, pk, limits),
    )


def _is_conflict(lake: Lake, table: str, pk: str, limits: Limits) -> bool:
    own = f"(SELECT * FROM {lake.scan_sql(states_table(table))} WHERE pk = {quoted(pk)})"
    ((found,),) = lake.query(f"SELECT conflict FROM ({flags_sql(own, limits.window)})")
    return bool(found)


def standing_of(told: Sequence[Told], verdict: Verdict, now: datetime) -> Event:
    """What was told last where the verdict is still that one: a rule may have given it its status."""
    if told and told[-1].verdict == verdict.status:
        return told[-1].event
    return Event(now, "now", verdict.status, verdict.reason)


def readings(states: Sequence[State]) -> list[Event]:
    """Each version that a side is known to have had, by its first arrival.

    Of a version that has said several things, the last reading of each batch too: the greatest partition
    and offset decides.
    """
    events: dict[tuple[Side, int, int], Event] = {}
    for side in SIDES:
        by_version: dict[datetime, list[SideState]] = {}
        for state in states:
            if found := state.side(side):
                by_version.setdefault(found.newest.version, []).append(found)
        for known in by_version.values():
            first, *others = known
            for other in others:
                first = other if other.first.comes_before(first.first) else first
            newest = [found.newest for found in known]
            said = {reading.said for reading in newest}
            is_plain = len(said) == 1 and first.first.hash == first.newest.hash
            action = first.newest.action if is_plain else None
            place = side, first.first.partition, first.first.offset
            events[place] = _reading(side, first.first, action)
            for reading in () if is_plain else newest:
                place = side, reading.partition, reading.offset
                events[place] = _reading(side, reading, reading.action)
    return list(events.values())


def _reading(side: Side, read: First | Reading, action: str | None) -> Event:
    what = "no row or no hash" if read.hash is None else "a hash"
    what = "a delete" if action == DELETE else what
    where = f"partition {read.partition}, offset {read.offset}"
    return Event(read.read_at, "reading", side, f"{what}, {where}", read.version, read.hash)


def _verdicts(lake: Lake, table: str, pk: str) -> list[Told]:
    """Each change, when it was told; the same twice in a row is none."""
    rows = lake.query(
        "SELECT epoch_us(processing_time), dq_status, dq_reason, id, verdict"
        f" FROM {lake.scan_sql(results_table(table))} WHERE pk = {quoted(pk)}"
        " ORDER BY processing_time, onprem_version, cloud_version, settled"
    )
    changed = [row for at, row in enumerate(rows) if at == 0 or rows[at - 1][3] != row[3]]
    return [
        Told(Event(sure(row[0]), "verdict", str(row[1]), str(row[2])), str(row[4]))
        for row in changed
    ]


def _states(lake: Lake, table: str, pk: str) -> list[State]:
    name = states_table(table)
    if not lake.exists(name):
        return []
    columns = ", ".join(_columns(side) for side in SIDES)
    rows = lake.query(f"SELECT {columns} FROM {lake.scan_sql(name)} WHERE pk = {quoted(pk)}")
    return [_state(pk, row) for row in rows]


def _columns(side: Side) -> str:
    """Times as microseconds: one field a column, so that none has to be found in a structure."""
    s, f = side, f"{side}_first"
    return (
        f"epoch_us({s}.version), {s}.partition, {s}.offset, {s}.hash, {s}.hash_version, {s}.action,"
        f" epoch_us({s}.read_at), {s}.row, epoch_us({f}.read_at), {f}.partition, {f}.offset, {f}.hash,"
        f" {s}_end.partition, {s}_end.offset"
    )


_WIDTH = 14


def _state(pk: str, row: tuple[Any, ...]) -> State:
    sides = [_side(row[at * _WIDTH : (at + 1) * _WIDTH]) for at in range(len(SIDES))]
    return State(pk, *sides)


def _side(row: tuple[Any, ...]) -> SideState | None:
    version = moment(row[0])
    if version is None:
        return None
    newest = Reading(version, *row[1:6], read_at=sure(row[6]), row=cast("str | None", row[7]))
    first = First(version, sure(row[8]), *row[9:12])
    return SideState(newest, first, (int(row[12]), int(row[13])))


def story_text(story: Story, limits: Limits) -> str:
    """For a person."""
    waits = f", provisionally {story.provisional}" if story.provisional else ""
    lines = [
        f"{shown_key(story.pk)} of {story.table} is {story.status}{waits}: {story.reason}",
        f"deadline {story.deadline:%Y-%m-%d %H:%M:%S}Z"
        f" (window {in_words(limits.window)}, grace {in_words(limits.grace)})",
        *([CONFLICT] if story.conflict else []),
        "",
    ]
    return "\n".join([*lines, *(_line(event) for event in story.events)])


def _line(event: Event) -> str:
    at = _to_the_millisecond(event.at)
    version = f"  version {_to_the_millisecond(event.version)}" if event.version else ""
    digest = f"  {shown_key(event.hash[:12])}…" if event.hash else ""
    return f"{at}  {event.kind:<8} {event.what:<15} {event.why}{version}{digest}"


def _to_the_millisecond(time: datetime) -> str:
    """A time as far as versions are compared."""
    return f"{time:%Y-%m-%d %H:%M:%S}.{time.microsecond // 1000:03d}Z"
