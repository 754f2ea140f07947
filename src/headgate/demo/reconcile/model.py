"""A planted key: its row on-prem, what both topics say of it, what the cloud holds, what must come of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal, TypeAlias

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
