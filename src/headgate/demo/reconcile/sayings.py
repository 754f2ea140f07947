"""One key and how it speaks: the messages of both topics as the contracts have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import orjson

from headgate.demo.reconcile.model import BusinessRow, Cell, Message, Phase, Write

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
