"""Which keys are sent again and how: a pure function of verdicts and source rows; and the values of a repair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from headgate.reconcile.rows import WholeRow

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


# A message carries milliseconds where a row may have microseconds.
STEP_MICROSECONDS = 1_000
GONE = "on-prem has no such row"
STILL_THERE = "on-prem deleted it, but its rows still have it"
SOURCE_MOVED = "the source is newer than what was judged: it will be judged again"
SOURCE_BEHIND = "the source's row is older than what was judged"
NO_VERSION = "on-prem's row has no version: `rows: onprem: version:` must name a column with a time"
DELETED_SINCE = "on-prem has deleted it since"
CLOUD_NEWER = "the cloud has a newer row"
NOT_BROKEN = "its verdict needs no repair"


def repair_plan(
    table: str,
    target: str,
    broken: Iterable[Broken],
    source: Mapping[str, WholeRow],
    cloud: Mapping[str, WholeRow],
) -> RepairPlan:
    """The plan: oldest source version first, then by key; nothing is sent over newer data."""
    items: list[Item] = []
    skipped: list[Outcome] = []
    for each in sorted(set(broken), key=lambda one: (one.version, one.pk)):
        found = _decided(each, source.get(each.pk), cloud.get(each.pk))
        if isinstance(found, Item):
            items.append(found)
        else:
            skipped.append(Outcome(each.pk, "skipped", found))
    return RepairPlan(table, target, tuple(items), tuple(skipped))


def _decided(broken: Broken, source: WholeRow | None, cloud: WholeRow | None) -> Item | str:
    """The item, or why there is none."""
    if broken.status not in REPAIRABLE:
        return NOT_BROKEN
    if broken.deleted:
        return _deleted(broken, source, cloud)
    if source is None:
        return GONE
    if source.version is None:
        return NO_VERSION
    if _coarse(source.version) > _coarse(broken.version):
        return SOURCE_MOVED
    if _coarse(source.version) < _coarse(broken.version):
        return SOURCE_BEHIND
    item = Item(broken.pk, broken.status, "upsert", source.version)
    return CLOUD_NEWER if newer(cloud, item.version) else item


def _deleted(broken: Broken, source: WholeRow | None, cloud: WholeRow | None) -> Item | str:
    """Only a key that on-prem deleted has its row taken out of the cloud, and none is written anew."""
    if source is not None:
        again = source.version is not None and _coarse(source.version) > _coarse(broken.version)
        return SOURCE_MOVED if again else STILL_THERE
    if broken.status != "ZOMBIE":
        return GONE
    return (
        CLOUD_NEWER
        if newer(cloud, broken.version)
        else Item(broken.pk, broken.status, "delete", broken.version)
    )


def newer(cloud: WholeRow | None, version: datetime) -> bool:
    """Whether the cloud's row is newer than this version: then it is left alone."""
    if cloud is None or cloud.newest is None:
        return False
    return _coarse(cloud.newest) > _coarse(version)


def _coarse(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // STEP_MICROSECONDS * STEP_MICROSECONDS)
