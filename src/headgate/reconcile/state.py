"""The state of one key, and the facts that the decision table tests of it.

A state is made of maxima and minima over the key's messages, so that merging is commutative, associative and
idempotent: the order of arrival, the cut of batches and replays change nothing. This is the reference in Python;
`compile/states.py` has the same as SQL.

A fact has its description, its Python and its SQL side by side; a test compares the two forms. The SQL is over one
row of a view of states: `onprem`, `onprem_first`, `onprem_end`, `onprem_greatest`, `onprem_least` and the same of the
cloud, as the table of states has them; `whole`, which says whether nothing of the key can stand elsewhere, and
`ended`, whether its input has ended. No fact but a hash is ever NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce

from headgate.conditions.evaluator.values import Value
from headgate.declarations.types import BOOLEAN, STRING, SqlType
from headgate.quality.spec.reconcile_checks import Limits
from headgate.quality.spec.rule_set import Side

SIDES: tuple[Side, ...] = ("onprem", "cloud")
DELETE, UPSERT = "DELETE", "UPSERT"
# What a message of the first side may say was done; what says nothing is an upsert.
ACTIONS = ("CREATE", "UPDATE", UPSERT, DELETE)
# What a version says, as far as a verdict asks: its hash, whether it is a delete, the contract's version.
Said = tuple[str | None, bool, int | None]


@dataclass(frozen=True)
class Reading:
    """One message of one side, as the state keeps it."""

    version: datetime
    partition: int
    offset: int
    hash: str | None
    hash_version: int | None
    action: str | None
    read_at: datetime
    row: str | None = None

    @property
    def rank(self) -> tuple[datetime, int, int]:
        return self.version, self.partition, self.offset

    @property
    def said(self) -> Said:
        return self.hash, self.action == DELETE, self.hash_version


@dataclass(frozen=True)
class First:
    """The first arrival of the newest version: verdicts take their times from it.

    So a replay neither delays a verdict nor makes it older.
    """

    version: datetime
    read_at: datetime
    partition: int
    offset: int
    hash: str | None

    def comes_before(self, other: First) -> bool:
        """Of a newer version, or of the same one earlier."""
        if self.version != other.version:
            return self.version > other.version
        return self._arrival < other._arrival

    @property
    def _arrival(self) -> tuple[datetime, int, int]:
        return self.read_at, self.partition, self.offset


@dataclass(frozen=True)
class SideState:
    """One side of a key: its newest reading, that version's first, and the ends of what was read.

    `hashes` are the least and the greatest of what the newest version has said; one where they are equal.
    """

    newest: Reading
    first: First
    end: tuple[int, int]
    hashes: tuple[Said, ...] = ()

    @property
    def told(self) -> tuple[Said, ...]:
        """The same where nothing but two readings is known."""
        _, deleted, version = self.newest.said
        return self.hashes or _ends((self.newest.said, (self.first.hash, deleted, version)))


@dataclass(frozen=True)
class State:
    """A key as far as it is known."""

    pk: str
    onprem: SideState | None = None
    cloud: SideState | None = None

    def side(self, side: Side) -> SideState | None:
        return self.onprem if side == "onprem" else self.cloud


def of_message(side: Side, pk: str, reading: Reading) -> State:
    """The state of a key of which one message is known."""
    first = First(reading.version, reading.read_at, reading.partition, reading.offset, reading.hash)
    place = reading.partition, reading.offset
    found = SideState(reading, first, place, (reading.said,))
    return State(pk, found if side == "onprem" else None, found if side == "cloud" else None)


def merge(one: State, other: State) -> State:
    """Both states of a key in one; in any order, any grouping, any number of times."""
    return State(
        one.pk,
        _merge_side(one.onprem, other.onprem),
        _merge_side(one.cloud, other.cloud),
    )


def merge_all(states: Iterable[State]) -> State:
    """All states of one key in one; there must be at least one."""
    return reduce(merge, states)


def _merge_side(one: SideState | None, other: SideState | None) -> SideState | None:
    if one is None or other is None:
        return one or other
    return SideState(
        newest=max(one.newest, other.newest, key=lambda reading: reading.rank),
        first=other.first if other.first.comes_before(one.first) else one.first,
        end=max(one.end, other.end),
        hashes=_merge_hashes(one, other),
    )


def _merge_hashes(one: SideState, other: SideState) -> tuple[Said, ...]:
    if one.newest.version != other.newest.version:
        return max(one, other, key=lambda side: side.newest.version).told
    return _ends((*one.told, *other.told))


def _ends(said: Iterable[Said]) -> tuple[Said, ...]:
    """The least and the greatest; what is not given is less than anything."""
    found = sorted(set(said), key=_order)
    return tuple(found) if len(found) == 1 else (found[0], found[-1])


def _order(said: Said) -> tuple[bool, str, bool, int]:
    hash_, deleted, version = said
    return hash_ is not None, hash_ or "", deleted, -1 if version is None else version


_HASH = re.compile(r"[0-9a-f]{64}")
_HEX = r"\\A[0-9a-f]{64}\\z"


@dataclass(frozen=True)
class Known:
    """What a verdict may look at: the state, the time, and whether the state is all there is."""

    state: State
    at: datetime
    limits: Limits
    whole: bool = True
    ended: bool = False

    @property
    def deadline(self) -> datetime:
        """Both sides have been waited for by then."""
        sides = (self.state.onprem, self.state.cloud)
        return max(side.first.read_at for side in sides if side) + self.limits.wait

    @property
    def pair(self) -> tuple[SideState, SideState] | None:
        onprem, cloud = self.state.onprem, self.state.cloud
        return (onprem, cloud) if onprem and cloud else None


@dataclass(frozen=True)
class Fact:
    """`sql` may name {at}, the time of the verdict, and the limits {window} and {wait}."""

    name: str
    words: str
    of: Callable[[Known], Value]
    sql: str
    type: SqlType = BOOLEAN


def interval(length: timedelta) -> str:
    """A length of time as SQL."""
    return f"INTERVAL {length // timedelta(seconds=1)} SECONDS"


DEADLINE = "greatest(onprem_first.read_at, cloud_first.read_at) + {wait}"
# How far apart the first arrivals of both newest versions are; NULL where one side is missing.
_APART = "abs(onprem_first.read_at - cloud_first.read_at)"


def fact_sql(fact: Fact, limits: Limits, at: str) -> str:
    return placed(fact.sql, limits, at)


def placed(sql: str, limits: Limits, at: str) -> str:
    return (
        sql.replace("{at}", at)
        .replace("{window}", interval(limits.window))
        .replace("{wait}", interval(limits.wait))
    )


def _is_deleted(side: SideState | None) -> bool:
    return side is not None and side.newest.action == DELETE


def _is_absent(side: SideState | None) -> bool:
    return side is not None and not _is_deleted(side) and side.newest.hash is None


def _is_invalid(side: SideState | None) -> bool:
    given = None if side is None or _is_deleted(side) else side.newest.hash
    return given is not None and not _HASH.fullmatch(given)


def _is_skewed(known: Known) -> bool:
    pair = known.pair
    versions = [side.newest.hash_version for side in pair] if pair else [None]
    return None not in versions and len(set(versions)) == 2


def _is_older(known: Known) -> bool:
    """Cassandra's times have milliseconds, so a version may come back without what is finer."""
    pair = known.pair
    if pair is None:
        return False
    onprem, cloud = (_milliseconds(side.newest.version) for side in pair)
    return cloud < onprem


def _milliseconds(time: datetime) -> datetime:
    return time.replace(microsecond=time.microsecond // 1_000 * 1_000)


def _is_late(known: Known) -> bool:
    pair = known.pair
    if pair is None:
        return False
    return abs(pair[0].first.read_at - pair[1].first.read_at) > known.limits.window


def _is_within(known: Known) -> bool:
    pair = known.pair
    if pair is None:
        return _is_deleted(known.state.onprem)
    near = abs(pair[0].first.read_at - pair[1].first.read_at) <= known.limits.wait
    return near or _is_deleted(known.state.onprem)


def _is_due(known: Known) -> bool:
    return known.whole and (known.ended or known.at >= known.deadline)


def _is_stale(side: SideState | None) -> bool:
    return side is not None and side.end > (side.newest.partition, side.newest.offset)


def _is_conflict(side: SideState | None) -> bool:
    return side is not None and len(side.told) > 1


def _hash(side: SideState | None) -> str | None:
    return None if side is None else side.newest.hash


def _either(test: Callable[[SideState | None], bool]) -> Callable[[Known], bool]:
    return lambda known: test(known.state.onprem) or test(known.state.cloud)


def _onprem(test: Callable[[SideState | None], Value]) -> Callable[[Known], Value]:
    return lambda known: test(known.state.onprem)


def _cloud(test: Callable[[SideState | None], Value]) -> Callable[[Known], Value]:
    return lambda known: test(known.state.cloud)


def _deleted_sql(side: str) -> str:
    return f"coalesce({side}.action = '{DELETE}', FALSE)"


def conflict(side: str) -> str:
    """Whether the newest version of one side has said several things, as SQL over a state."""
    return f"coalesce({side}_greatest.content <> {side}_least.content, FALSE)"


FACTS: tuple[Fact, ...] = (
    Fact(
        "onprem_seen",
        "on-prem has said something of the key",
        _onprem(lambda side: side is not None),
        "onprem IS NOT NULL",
    ),
    Fact(
        "cloud_seen",
        "the cloud has said something of the key",
        _cloud(lambda side: side is not None),
        "cloud IS NOT NULL",
    ),
    Fact(
        "onprem_deleted",
        "on-prem's newest version is a delete",
        _onprem(_is_deleted),
        _deleted_sql("onprem"),
    ),
    Fact(
        "cloud_deleted",
        "the cloud's newest version is a delete",
        _cloud(_is_deleted),
        _deleted_sql("cloud"),
    ),
    Fact(
        "cloud_absent",
        "the cloud was read, and has no row or no hash",
        _cloud(_is_absent),
        f"cloud IS NOT NULL AND NOT {_deleted_sql('cloud')} AND cloud.hash IS NULL",
    ),
    Fact(
        "onprem_invalid",
        "on-prem's row is alive and has no hash, or none of 64 lower-case hexadecimal digits",
        _onprem(lambda side: _is_invalid(side) or _is_absent(side)),
        f"onprem IS NOT NULL AND NOT {_deleted_sql('onprem')}"
        f" AND NOT coalesce(onprem.hash RLIKE '{_HEX}', FALSE)",
    ),
    Fact(
        "cloud_invalid",
        "the cloud's row is alive, and its hash is not 64 lower-case hexadecimal digits",
        _cloud(_is_invalid),
        f"NOT {_deleted_sql('cloud')} AND NOT coalesce(cloud.hash RLIKE '{_HEX}', TRUE)",
    ),
    Fact(
        "hash_onprem", "on-prem's hash of its newest version", _onprem(_hash), "onprem.hash", STRING
    ),
    Fact(
        "hash_cloud",
        "the cloud's hash of its newest version",
        _cloud(_hash),
        "cloud.hash",
        STRING,
    ),
    Fact(
        "version_skew",
        "both sides name the contract's version, and not the same",
        _is_skewed,
        "coalesce(onprem.hash_version <> cloud.hash_version, FALSE)",
    ),
    Fact(
        "cloud_older",
        "the cloud's newest version is older than on-prem's, in whole milliseconds",
        _is_older,
        "coalesce(unix_millis(cloud.version) < unix_millis(onprem.version), FALSE)",
    ),
    Fact(
        "late",
        "the first arrivals of both newest versions lie further apart than the window",
        _is_late,
        f"coalesce({_APART} > {{window}}, FALSE)",
    ),
    Fact(
        "whole",
        "nothing of the key can stand elsewhere: it is not one window's state alone",
        lambda known: known.whole,
        "whole",
    ),
    Fact(
        "due",
        "the key is whole, and its deadline is reached (the later first arrival, plus window and grace)"
        " or its input has ended",
        _is_due,
        f"whole AND (ended OR {{at}} >= {DEADLINE})",
    ),
    Fact(
        "within_grace",
        "both sides were heard, no further apart than window and grace; or on-prem has deleted the row",
        _is_within,
        f"{_deleted_sql('onprem')} OR coalesce({_APART} <= {{wait}}, FALSE)",
    ),
    Fact(
        "stale",
        "a side's newest offset is not its newest version",
        _either(_is_stale),
        "coalesce(onprem_end <> struct(onprem.partition, onprem.offset), FALSE)\n"
        "  OR coalesce(cloud_end <> struct(cloud.partition, cloud.offset), FALSE)",
    ),
    Fact(
        "conflict",
        "one version of a side has said two things: by its hash, the contract's version or a delete",
        _either(_is_conflict),
        f"{conflict('onprem')} OR {conflict('cloud')}",
    ),
)
TYPES: dict[str, SqlType] = {fact.name: fact.type for fact in FACTS}


def facts_of(known: Known) -> dict[str, Value]:
    """Every fact by its name, as conditions see them."""
    return {fact.name: fact.of(known) for fact in FACTS}
