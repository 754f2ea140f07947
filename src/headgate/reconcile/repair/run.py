"""Carries a repair out: checked again right before each batch, paced, journalled on disk, stoppable and resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from headgate.core.runtime import journal as journal_file
from headgate.core.runtime.journal import SUFFIX, Journal, Pace, Watcher
from headgate.errors import ConflictError, UsageError
from headgate.reconcile.repair.plan import (
    CLOUD_NEWER,
    DELETED_SINCE,
    GONE,
    NO_VERSION,
    SOURCE_BEHIND,
    SOURCE_MOVED,
    Item,
    Outcome,
    RepairReport,
    counted,
    newer,
)
from headgate.reconcile.repair.targets import Rereads, Target
from headgate.reconcile.rows import RowsByKey, WholeRow

FOLDER = "repairs"


@dataclass
class RepairJournal(Journal[Item, Outcome, int]):
    """One repair; what is announced has the write timestamps of its keys."""

    key_of = attrgetter("pk")
    outcome_of = Outcome
    table: str
    target: str

    def alone(self) -> AbstractContextManager[None]:
        lock = self.file.with_name(f"{self.table}.lock")
        return journal_file.held_alone(lock, f"another process is repairing {self.table}")

    def announce(self, stamps: Mapping[str, int]) -> None:
        """Before anything is written: these keys with these write timestamps."""
        self.write([{"announced": dict(stamps)}])


def new_journal(
    home: Path, table: str, target: str, items: Iterable[Item], now: datetime
) -> RepairJournal:
    """A journal of its own, the plan already in it; refused while another repair of the table is open."""
    if (found := open_journal(home, table)) is not None:
        raise ConflictError(
            f"a repair of {table} is not finished: {len(found.left):,} keys are left",
            why=str(found.file),
            fix=f"headgate reconcile repair {table} --resume --yes, or remove the file",
        )
    file = home / FOLDER / journal_file.file_name(table, now)
    journal = RepairJournal(file, tuple(items), table, target)
    head = {"table": table, "target": target, "items": [asdict(item) for item in journal.items]}
    journal_file.begin(file, head)
    return journal


def open_journal(home: Path, table: str) -> RepairJournal | None:
    """The newest repair of the table that is not finished."""
    files = sorted((home / FOLDER).glob(f"{table}-*{SUFFIX}"), reverse=True)
    found = (read_journal(file) for file in files)
    return next((j for j in found if j.table == table and not j.closed), None)


def need_open_journal(home: Path, table: str) -> RepairJournal:
    found = open_journal(home, table)
    if found is None:
        raise UsageError(f"no repair of {table} is unfinished", fix="leave --resume out")
    return found


def read_journal(file: Path) -> RepairJournal:
    """A journal as it stands; nothing is written."""
    head, _ = journal_file.read(file)
    items = tuple(map(_item, head["items"]))
    return RepairJournal(file, items, head["table"], head["target"]).reload()


def _item(plain: journal_file.Line) -> Item:
    version = datetime.fromisoformat(plain["version"])
    return Item(plain["pk"], plain["status"], plain["action"], version)


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


def run_repair(
    journal: RepairJournal, edges: Edges, per_second: int, watcher: Watcher
) -> RepairReport:
    """Send what is left of the journal; stops between batches when asked to."""
    with journal.held():
        pace = Pace(per_second, edges.clock, edges.sleep)
        journal.carry_out(partial(_sent, journal, edges), pace, edges.stopped, watcher)
    return report(journal)


def report(journal: RepairJournal) -> RepairReport:
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


def _sent(journal: RepairJournal, edges: Edges, batch: Sequence[Item]) -> list[Outcome]:
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
