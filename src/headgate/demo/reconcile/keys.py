"""A planted key: its row on both sides, its messages on both topics, its hash by contract, the expected verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal, TypeAlias, cast

import numpy as np
import orjson

from headgate.hashing.contract import HashContract
from headgate.hashing.python import row_hash

# Keys are planted in waves: a few early, so that the job has warmed up; most of them; what comes
# within the window; what comes after it.
Phase = Literal["early", "first", "soon", "late"]
PHASES: tuple[Phase, ...] = ("early", "first", "soon", "late")
Cell: TypeAlias = str | Decimal | datetime | float | None
COLUMNS = ("col1", "col2", "col3", "col4")


@dataclass(frozen=True)
class BusinessRow:
    """One row of business_table, on either side."""

    pk: str
    col1: str | None
    col2: Decimal | None
    col3: datetime | None
    col4: float | None
    last_updated: datetime

    def values(self) -> dict[str, Cell]:
        """What is hashed, by column."""
        return {name: getattr(self, name) for name in COLUMNS}


@dataclass(frozen=True)
class Message:
    """One record for the topic of a side; no value is a tombstone."""

    phase: Phase
    key: bytes | None
    value: bytes | None
    side: Literal["onprem", "cloud"] = "onprem"


@dataclass(frozen=True)
class Write:
    """A row that the cloud holds from this wave on."""

    phase: Phase
    row: BusinessRow


@dataclass(frozen=True)
class Expected:
    """What must come of a key once everything has settled.

    Without a status the key is nowhere; `stale` is None where the order of two readers decides. `path` are statuses that must stand in its history, in this
    order; `letter` is the reason of its dead letter; of its on-prem records `again` are repeated and
    `deletes` are deletes.
    """

    status: str | None
    kind: str | None = None
    column: str | None = None
    stale: bool | None = False
    conflict: bool = False
    path: tuple[str, ...] = ()
    letter: str | None = None
    again: int = 0
    deletes: int = 0


@dataclass(frozen=True)
class Plan:
    """What is sent and stored of one key; `onprem` is its row there, if it has one."""

    messages: tuple[Message, ...] = ()
    writes: tuple[Write, ...] = ()
    onprem: BusinessRow | None = None


@dataclass(frozen=True)
class Planned:
    """One key with its role."""

    pk: str
    role: str
    expected: Expected
    plan: Plan = field(repr=False)

    def is_in(self, phase: Phase) -> bool:
        """Whether the wave brings anything of this key."""
        return any(part.phase == phase for part in (*self.plan.messages, *self.plan.writes))


HashOf = Callable[[Mapping[str, Cell], int], str]
NEWEST = 2
# A row that reaches the cloud keeps the version that it has on-prem.
REPLICATED = timedelta()


@dataclass(frozen=True)
class Key:
    """One key of the plant: its sound row, its number, and how rows are hashed (by version)."""

    number: int
    row: BusinessRow
    whole: BusinessRow
    hash_of: HashOf

    def says(
        self,
        row: BusinessRow | None = None,
        *,
        action: str | None = None,
        after: timedelta = timedelta(),
        version: int | None = NEWEST,
        **fields: object,
    ) -> Message:
        """An on-prem message of this row; `fields` take the place of what it would say."""
        told = row or self.row
        body: dict[str, object] = {
            "event_id": f"E-{told.pk}-{after // timedelta(milliseconds=1)}",
            "action": action,
            "hash_onprem": self.hash_of(told.values(), version or NEWEST),
            "hash_version": version,
            "partitionColumns": [{"type": "PK", "value": told.pk}],
            "event_ts": instant(self.row.last_updated + after),
        }
        body |= fields
        given = {name: value for name, value in body.items() if value is not None}
        return self.raw(orjson.dumps(given))

    def raw(self, value: bytes | None, phase: Phase = "first") -> Message:
        """A record of the on-prem topic, whatever it says; None is a tombstone."""
        return Message(phase, self.row.pk.encode(), value)

    def gone_in_the_cloud(self) -> Message:
        return Message("first", self.row.pk.encode(), None, "cloud")

    def holds(
        self, row: BusinessRow | None = None, phase: Phase = "first", after: timedelta = REPLICATED
    ) -> Write:
        """What the cloud holds of the key; rows of later waves get the time of writing as version."""
        told = row or self.row
        return Write(phase, replace(told, last_updated=self.row.last_updated + after))


def instant(at: datetime) -> str:
    """ISO-8601 in UTC with milliseconds and a Z."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def hash_by(contract: HashContract) -> HashOf:
    """What an on-prem side that follows the contract would send."""
    versions = {number: replace(contract, hash_version=_version(number)) for number in (1, 2)}

    def hashed(values: Mapping[str, Cell], version: int) -> str:
        return row_hash(versions[version], values)

    return hashed


def _version(number: int) -> Literal[1, 2]:
    return cast("Literal[1, 2]", number)


Stream: TypeAlias = np.random.Generator
SPAN = timedelta(minutes=8)
# Every name has a letter that can be written in two ways, and capitals beside small letters.
NAMES = (
    *("Renée Dubois", "Łucja Żak", "Jürgen Weiß", "Søren Åberg", "Beyoncé Núñez"),
    *("François Lefèvre", "Zoë Müller", "Ángel Peña", "Čeněk Dvořák", "İbrahim Çelik"),
)
EMPTY = 0.02


class SoundRows:
    """Draws all rows at once; the version of each is its event time."""

    def __init__(self, seed: int, keys: int, start: datetime) -> None:
        stream = np.random.default_rng([seed, 1])
        self._seed, self._keys, self._start = seed, keys, start
        self._names = stream.integers(0, len(NAMES), keys)
        # The last digit is never 0, so that a lost digit always shows.
        self._cents = stream.integers(1_000, 9_000_000, keys) * 10 + stream.integers(1, 10, keys)
        self._moments = stream.integers(0, 86_400_000 * 365, keys)
        self._ratios = stream.integers(10**9, 10**10, keys) * 10 + stream.integers(1, 10, keys)
        self._nulls = stream.random((keys, 4)) < EMPTY

    def pk(self, number: int) -> str:
        return f"K{self._seed}-{number:07d}"

    def whole(self, number: int) -> BusinessRow:
        """The row with all its values."""
        return BusinessRow(
            pk=self.pk(number),
            col1=f"{NAMES[self._names[number]]} {number:07d}",
            col2=Decimal(int(self._cents[number])).scaleb(-2),
            col3=self._start - timedelta(milliseconds=int(self._moments[number])),
            col4=int(self._ratios[number]) / 10**6,
            last_updated=self._start + SPAN * number / self._keys,
        )

    def drawn(self, number: int) -> BusinessRow:
        """The row with some of its values missing, as on both sides."""
        row, nulls = self.whole(number), self._nulls[number]
        return BusinessRow(
            pk=row.pk,
            col1=None if nulls[0] else row.col1,
            col2=None if nulls[1] else row.col2,
            col3=None if nulls[2] else row.col3,
            col4=None if nulls[3] else row.col4,
            last_updated=row.last_updated,
        )
