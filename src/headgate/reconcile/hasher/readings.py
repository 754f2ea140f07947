"""A reading: the hash and version of a key's row in the cloud; and second readings of keys that differed.

The offset of a record that asks for a second reading is not committed before that reading is made, so a kill loses
none. Usually that record is a request to read the key again, on a topic of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import orjson

from headgate.reconcile.cassandra.rows import Row
from headgate.reconcile.hasher.requests import Asked, Known

RowHash = Callable[[Mapping[str, object]], str]
ONE_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Reading:
    """One answer: `hash` is None when there is no row; its version is then the one asked for."""

    key: str
    hash: str | None
    version: datetime
    partial: bool = False

    @property
    def absent(self) -> bool:
        return self.hash is None

    @property
    def known(self) -> Known:
        return Known(self.hash, self.version)


@dataclass(frozen=True)
class CloudForm:
    """The names of Topic-2's fields, and the version of the hash."""

    pk: str
    hash: str
    hash_version: str | None
    event_time: str
    number: int

    def fields(self, reading: Reading) -> dict[str, object]:
        """The message: key, hash, its version, and the row's version."""
        fields: dict[str, object] = {self.pk: reading.key, self.hash: reading.hash}
        if self.hash_version:
            fields[self.hash_version] = self.number
        fields[self.event_time] = written(reading.version)
        return fields

    def schema(self) -> dict[str, object]:
        """Its JSON Schema, where a registry keeps one."""
        kinds: dict[str, object] = {
            self.pk: {"type": "string"},
            self.hash: {"type": ["string", "null"]},
            **({self.hash_version: {"type": "integer"}} if self.hash_version else {}),
            self.event_time: {"type": "string", "format": "date-time"},
        }
        return {"type": "object", "properties": kinds, "required": list(kinds)}


def written(moment: datetime) -> str:
    """ISO 8601 in UTC, to the microsecond where there is one."""
    utc = moment.astimezone(UTC)
    precision = "microseconds" if utc.microsecond % 1000 else "milliseconds"
    return utc.isoformat(timespec=precision).replace("+00:00", "Z")


def newest(asked: tuple[Asked, ...]) -> Asked:
    """Of those who asked for one key, the one with the newest version; the last of equals."""
    return max(reversed(asked), key=lambda one: one.version)


def reading_of(asked: Asked, row: Row | None, row_hash: RowHash, there: frozenset[str]) -> Reading:
    """The answer; `there` are the hashed columns that the table has: a null in one is partial."""
    if row is None:
        return Reading(asked.key, None, _no_older(asked, asked.version))
    partial = any(row.values.get(name) is None for name in there)
    version = _no_older(asked, _version(asked, row))
    return Reading(asked.key, row_hash(row.values), version, partial)


def _no_older(asked: Asked, version: datetime) -> datetime:
    """A later reading of a key never loses to an earlier one, which may have missed the row.

    Its hash is compared all the same, so that nothing matches that differs.
    """
    return max(version, asked.least) if asked.least else version


def _version(asked: Asked, row: Row) -> datetime:
    """The row's own; within one millisecond the one asked for, of which Cassandra kept the beginning.

    Else a row that came after it was missed would be older than the reading that missed it.
    """
    own = row.cloud_ts
    if own is None:
        return asked.version
    cut = not own.microsecond % 1000
    return asked.version if cut and timedelta() <= asked.version - own < ONE_MILLISECOND else own


def differs(asked: Asked, reading: Reading, number: int) -> bool:
    """Whether it is not (yet) what on-prem has: it is then read once more before the deadline."""
    if not asked.expects:
        return False
    if asked.deleted:
        return not reading.absent
    if reading.absent or is_older(reading.version, asked.version):
        return True
    if asked.hash is None or (asked.hash_version or number) != number:
        return False  # nothing to compare with: reading it again would tell nothing
    return reading.hash != asked.hash


def is_older(cloud: datetime, onprem: datetime) -> bool:
    """By milliseconds: Cassandra's timestamps have no more."""
    return onprem - cloud >= ONE_MILLISECOND


MOST = 200_000
REASON = "second look"


def request_for(asked: Asked, before: Reading, due: datetime) -> bytes:
    """The request by which a second look survives the process that planned it."""
    said = {"hash": before.hash, "version": written(before.version)}
    look = {"event_ts": written(asked.version), "before": said, "due": written(due)}
    deleted = {"deleted": True} if asked.deleted else {}
    return orjson.dumps({"pk": asked.key, "reason": REASON, **look, **deleted})


class Rereads:
    """One for each key, of its newest version; `delay` in seconds after the first reading.

    `let_go` hears of those that will not be made.
    """

    def __init__(
        self,
        delay: float,
        say: Callable[[str], None] = lambda _: None,
        most: int = MOST,
        let_go: Callable[[Asked], None] = lambda _: None,
    ) -> None:
        self.delay, self._say, self._most, self._let_go = delay, say, most, let_go
        self._by_key: dict[str, tuple[float, Asked]] = {}
        self._due: list[tuple[float, str]] = []
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def plan(self, asked: Asked, before: Reading, now: float) -> None:
        """Read it again later, this process itself."""
        known = before.known
        self.keep(replace(asked, expects=False, before=known, least=known.version), now, self.delay)

    def keep(self, look: Asked, now: float, delay: float) -> None:
        """Make a second look later; beyond the most that is kept it is counted, and said once."""
        if not self.has_room(look.key):
            self.leave_out()
            self._let_go(look)
            return
        self.settle(look.key)
        moment = now + min(max(delay, 0.0), self.delay)
        self._by_key[look.key] = (moment, look)
        heapq.heappush(self._due, (moment, look.key))

    def has_room(self, key: str) -> bool:
        return key in self._by_key or len(self._by_key) < self._most

    def leave_out(self) -> None:
        self.left_out += 1
        if self.left_out == 1:
            self._say(
                f"{len(self):,} keys wait for their second look: others are left out and counted"
                " until there is room; the job settles those with their first reading"
            )

    def known(self, key: str) -> Known | None:
        """What was read of a key that waits for its second look."""
        planned = self._by_key.get(key)
        return planned[1].before if planned else None

    def settle(self, key: str) -> None:
        """It agrees by now, or is planned anew: no need to read it again."""
        planned = self._by_key.pop(key, None)
        if planned is not None:
            self._let_go(planned[1])

    def forget(self, is_gone: Callable[[Asked], bool]) -> None:
        """Others make those now."""
        gone = [key for key, (_, look) in self._by_key.items() if is_gone(look)]
        for key in gone:
            del self._by_key[key]

    def due(self, now: float) -> Iterator[Asked]:
        """Those whose time has come; each is given out once."""
        while self._due and self._due[0][0] <= now:
            moment, key = heapq.heappop(self._due)
            planned = self._by_key.get(key)
            if planned is not None and planned[0] == moment:
                del self._by_key[key]
                yield planned[1]

    def all_now(self) -> Iterator[Asked]:
        """All that wait, when there will be no later."""
        return self.due(float("inf"))
