"""A dead letter, the plan to send some of them again, and what became of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Headers = tuple[tuple[str, bytes | None], ...]
Result = Literal["sent", "skipped", "refused"]
FROM_TABLE = "it was a row of a table: there is no topic to send it to"
SENT_BEFORE = "it was sent again before"
SAME_RECORD = "the same record is sent for another of its letters"


@dataclass(frozen=True)
class Facts:
    """What may be told of a dead letter without showing its content."""

    id: str
    job: str
    revision: str
    reason_code: str
    reason: str
    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: datetime | None
    refused_at: datetime
    bytes: int

    @property
    def origin(self) -> str:
        """Where the record stood; empty for a row of a table."""
        return f"{self.topic}/{self.partition}/{self.offset}" if self.topic else ""


@dataclass(frozen=True)
class Letter:
    """A dead letter with the original bytes."""

    facts: Facts
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    def __repr__(self) -> str:
        return f"Letter({self.facts.id}, {self.facts.bytes} bytes)"


@dataclass(frozen=True)
class Item:
    """One letter to send, and where to."""

    id: str
    topic: str
    origin: str
    job: str
    reason_code: str


@dataclass(frozen=True)
class Outcome:
    """What became of one letter: where it stands now, or why it does not."""

    id: str
    result: Result
    place: str = ""
    why: str = ""


@dataclass(frozen=True)
class RedrivePlan:
    """What would be sent, and what is left alone from the start."""

    items: tuple[Item, ...]
    skipped: tuple[Outcome, ...] = ()
    again: bool = False

    @property
    def topics(self) -> dict[str, int]:
        return dict(Counter(item.topic for item in self.items))

    @property
    def reasons(self) -> dict[str, int]:
        return dict(Counter(f"{item.job} {item.reason_code}" for item in self.items))


@dataclass(frozen=True)
class RedriveReport:
    """How far a redrive is; what is left can be resumed."""

    redrive: str
    planned: int
    sent: int
    refused: Mapping[str, int]
    skipped: Mapping[str, int]
    left: int
    closed: bool
    journal: str = ""
