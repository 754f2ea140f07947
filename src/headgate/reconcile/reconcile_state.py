"""What is known of one key: maxima and minima over its messages, so that no order can change it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

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
