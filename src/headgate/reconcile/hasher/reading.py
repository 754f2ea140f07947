"""What the cloud has of a key: its row's hash and version, as Topic-2 carries it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headgate.reconcile.cassandra.rows import Row
from headgate.reconcile.hasher.asked import Asked, Known

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
