"""Which keys are sent again and how: a pure function of the verdicts and of the source's rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from headgate.reconcile.model import WholeRow
from headgate.reconcile.repair.model import REPAIRABLE, Broken, Item, Outcome, RepairPlan

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
