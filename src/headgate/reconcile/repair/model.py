"""What is to be repaired, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

REPAIRABLE = ("MISSING_CLOUD", "MISMATCH", "LATE_MISMATCH", "ZOMBIE")
Action = Literal["upsert", "delete"]
Result = Literal["applied", "skipped"]


@dataclass(frozen=True)
class Broken:
    """A key whose verdict says that the cloud is wrong; `version` is on-prem's, as it was judged.

    `deleted` says that on-prem's newest action is a delete: a zombie may be either side's.
    """

    pk: str
    status: str
    version: datetime
    deleted: bool


@dataclass(frozen=True)
class Item:
    """One key to send again, at the source's version."""

    pk: str
    status: str
    action: Action
    version: datetime


@dataclass(frozen=True)
class Outcome:
    """What became of one key, and why it was left alone."""

    pk: str
    result: Result
    why: str = ""


@dataclass(frozen=True)
class RepairPlan:
    """The keys to send again, by source version, and those that are left alone from the start."""

    table: str
    target: str
    items: tuple[Item, ...]
    skipped: tuple[Outcome, ...] = ()

    @property
    def actions(self) -> dict[str, int]:
        return dict(Counter(f"{item.action} {item.status}" for item in self.items))


@dataclass(frozen=True)
class Followed:
    """What is said of the keys that were sent, some time later: by status, and those still wrong."""

    seconds: float
    statuses: Mapping[str, int]
    wrong: Mapping[str, str]


@dataclass(frozen=True)
class RepairReport:
    """How a repair ended; what is left can be resumed."""

    table: str
    target: str
    repair: str
    applied: int
    skipped: dict[str, int]
    left: int
    journal: str
    followed: Followed | None = None

    @property
    def whole(self) -> bool:
        return not self.left


def counted(outcomes: Iterable[Outcome]) -> tuple[int, dict[str, int]]:
    """How many were applied, and why the others were not."""
    every = list(outcomes)
    skipped = Counter(outcome.why for outcome in every if outcome.result == "skipped")
    return sum(outcome.result == "applied" for outcome in every), dict(skipped)


def nothing_sent(plan: RepairPlan) -> RepairReport:
    """The report of a plan in which every key is left alone."""
    _, skipped = counted(plan.skipped)
    return RepairReport(plan.table, plan.target, "", 0, skipped, 0, "")
