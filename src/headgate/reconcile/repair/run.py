"""Carries a repair out: checked again right before each batch, paced, journalled on disk, stoppable and resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from headgate.core.runtime import journal as journal_file
from headgate.core.runtime.journal import SUFFIX, Pace, Watcher, batches
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
class Journal:
    """One repair: what was planned, what was announced, what became of it."""

    file: Path
    table: str
    target: str
    items: tuple[Item, ...]
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    announced: dict[str, int] = field(default_factory=dict[str, int])
    closed: bool = False

    @property
    def name(self) -> str:
        return self.file.name.removesuffix(SUFFIX)

    @property
    def left(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.pk not in self.outcomes)

    def announce(self, stamps: Mapping[str, int]) -> None:
        """Before anything is written: these keys with these write timestamps."""
        self.announced |= stamps
        journal_file.append(self.file, [{"announced": dict(stamps)}])

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        """What became of these keys; on disk before the next ones begin."""
        found = list(outcomes)
        self.outcomes |= {outcome.pk: outcome for outcome in found}
        journal_file.append(self.file, [{"outcome": asdict(outcome)} for outcome in found])

    def close(self) -> None:
        """Nothing is left to do."""
        self.closed = True
        journal_file.append(self.file, [{"closed": True}])

    @contextmanager
    def held(self) -> Generator[None]:
        """Go on with it, alone: read anew, a line that a kill cut off taken out."""
        lock = self.file.with_name(f"{self.table}.lock")
        with journal_file.held_alone(lock, f"another process is repairing {self.table}"):
            journal_file.cut_off(self.file)
            fresh = read_journal(self.file)
            self.outcomes, self.announced = fresh.outcomes, fresh.announced
            self.closed = fresh.closed
            yield


def new_journal(
    home: Path, table: str, target: str, items: Iterable[Item], now: datetime
) -> Journal:
    """A journal of its own, the plan already in it; refused while another repair of the table is open."""
    if (found := open_journal(home, table)) is not None:
        raise ConflictError(
            f"a repair of {table} is not finished: {len(found.left):,} keys are left",
            why=str(found.file),
            fix=f"headgate reconcile repair {table} --resume --yes, or remove the file",
        )
    file = home / FOLDER / journal_file.file_name(table, now)
    journal = Journal(file, table, target, tuple(items))
    head = {"table": table, "target": target, "items": [asdict(item) for item in journal.items]}
    journal_file.begin(journal.file, head)
    return journal


def open_journal(home: Path, table: str) -> Journal | None:
    """The newest repair of the table that is not finished."""
    files = sorted((home / FOLDER).glob(f"{table}-*{SUFFIX}"), reverse=True)
    found = (read_journal(file) for file in files)
    return next((j for j in found if j.table == table and not j.closed), None)


def need_open_journal(home: Path, table: str) -> Journal:
    found = open_journal(home, table)
    if found is None:
        raise UsageError(f"no repair of {table} is unfinished", fix="leave --resume out")
    return found


def read_journal(file: Path) -> Journal:
    """A journal as it stands; nothing is written."""
    head, lines = journal_file.read(file)
    journal = Journal(file, head["table"], head["target"], tuple(map(_item, head["items"])))
    for line in lines:
        _take(journal, line)
    return journal


def _take(journal: Journal, line: journal_file.Line) -> None:
    if "announced" in line:
        journal.announced |= line["announced"]
    elif "outcome" in line:
        outcome = Outcome(**line["outcome"])
        journal.outcomes[outcome.pk] = outcome
    else:
        journal.closed = True


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
