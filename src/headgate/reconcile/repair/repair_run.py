"""Carrying a repair out: checked again right before each batch, paced, journalled, stoppable."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headgate.core.runtime.journal_file import Pace, Watcher, batches
from headgate.reconcile.model import RowsByKey, WholeRow
from headgate.reconcile.repair.journal import Journal
from headgate.reconcile.repair.model import Item, Outcome, RepairReport, counted
from headgate.reconcile.repair.repair_plan import (
    CLOUD_NEWER,
    DELETED_SINCE,
    GONE,
    NO_VERSION,
    SOURCE_BEHIND,
    SOURCE_MOVED,
    newer,
)
from headgate.reconcile.repair.target import Rereads, Target


class Judged(NamedTuple):
    """What is said of a key now, and whether on-prem has deleted it."""

    status: str
    deleted: bool


# The verdicts of these keys as they are now.
Verdicts = Callable[[Sequence[str]], Mapping[str, Judged]]


@dataclass(frozen=True)
class Edges:
    """What a repair touches; each is handed in."""

    source: RowsByKey
    cloud: RowsByKey | None
    target: Target
    verdicts: Verdicts
    rereads: Rereads | None = None
    stopped: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def run_repair(journal: Journal, edges: Edges, per_second: int, watcher: Watcher) -> RepairReport:
    """Send what is left of the journal; stops between batches when asked to."""
    with journal.held():
        _send_left(journal, edges, Pace(per_second, edges.clock, edges.sleep), watcher)
        if not journal.left and not journal.closed:
            journal.close()
    return report(journal)


def _send_left(journal: Journal, edges: Edges, pace: Pace, watcher: Watcher) -> None:
    done = len(journal.outcomes)
    for batch in batches(journal.left, pace.batch):
        if edges.stopped():
            break
        pace.wait(len(batch))
        journal.settle(_sent(journal, edges, batch))
        done += len(batch)
        watcher.update(done)


def report(journal: Journal) -> RepairReport:
    applied, skipped = counted(journal.outcomes.values())
    return RepairReport(
        table=journal.table,
        target=journal.target,
        repair=journal.name,
        applied=applied,
        skipped=skipped,
        left=len(journal.left),
        journal=str(journal.file),
    )


def _sent(journal: Journal, edges: Edges, batch: Sequence[Item]) -> list[Outcome]:
    """What became of one batch; whatever moved since the plan was made is left alone."""
    keys = [item.pk for item in batch]
    verdicts, source = edges.verdicts(keys), edges.source.read(keys)
    cloud = edges.cloud.read(keys) if edges.cloud else {}
    refusals = {
        item.pk: _turned(item, verdicts.get(item.pk), source.get(item.pk))
        if item.pk in journal.announced
        else _moved(item, verdicts.get(item.pk), source.get(item.pk), cloud.get(item.pk))
        for item in batch
    }
    skipped = [Outcome(pk, "skipped", why) for pk, why in refusals.items() if why]
    wanted = [item for item in batch if not refusals.get(item.pk)]
    sent = (
        edges.target.send(wanted, source, cloud, journal.announced, journal.announce)
        if wanted
        else []
    )
    applied = {outcome.pk for outcome in sent if outcome.result == "applied"}
    if edges.rereads and applied:
        edges.rereads.ask([item for item in wanted if item.pk in applied])
    return [*skipped, *sent]


def _moved(
    item: Item, verdict: Judged | None, source: WholeRow | None, cloud: WholeRow | None
) -> str:
    """Why this key is left alone now; nothing when all is as it was planned."""
    if verdict is None:
        return "it has no verdict any more"
    if verdict.status != item.status:
        return f"its verdict is now {verdict.status}"
    if turned := _turned(item, verdict, source):
        return turned
    if item.action == "delete" and source is not None:
        return SOURCE_MOVED
    if source is not None and source.version != item.version:
        return SOURCE_MOVED
    return CLOUD_NEWER if newer(cloud, item.version) else ""


def _turned(item: Item, verdict: Judged | None, source: WholeRow | None) -> str:
    """Whether on-prem deleted it since, has it again or is behind; asked even of what was cut off."""
    if verdict is not None and verdict.deleted != (item.action == "delete"):
        return DELETED_SINCE if verdict.deleted else SOURCE_MOVED
    if item.action == "delete":
        return ""
    if source is None:
        return GONE
    if source.version is None:
        return NO_VERSION
    return SOURCE_BEHIND if source.version < item.version else ""
