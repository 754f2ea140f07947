"""Redrive dead letters: choose which to send again, and send them paced, resumable, each exactly once.

Each batch is journalled on disk before and after it is sent; after a kill between the two, the topic
itself says what arrived. The journal holds ids, places and counts, never a record's content.
"""

from __future__ import annotations

import fcntl
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from headgate.core.runtime import journal as journal_file
from headgate.core.runtime.journal import SUFFIX, Pace, Watcher
from headgate.dead_letters.table import (
    FROM_TABLE,
    SAME_RECORD,
    SENT_BEFORE,
    Facts,
    Item,
    Letter,
    Outcome,
    RedrivePlan,
    RedriveReport,
)
from headgate.errors import NotFoundError


def redrive_plan(
    letters: Iterable[Facts], sent: Collection[str], to: str | None = None
) -> RedrivePlan:
    """Oldest first; each record once, however many jobs refused it.

    `sent` has the origins and the ids of what was sent before; `to` is another topic than its own.
    """
    items: list[Item] = []
    skipped: list[Outcome] = []
    taken: set[str] = set()
    for each in sorted(letters, key=lambda one: (one.refused_at, one.origin, one.id)):
        if why := _left_alone(each, sent, taken, to):
            skipped.append(Outcome(each.id, "skipped", why=why))
            continue
        taken |= {each.id, each.origin}
        topic = to or each.topic or ""
        items.append(Item(each.id, topic, each.origin, each.job, each.reason_code))
    return RedrivePlan(tuple(items), tuple(skipped))


def _left_alone(each: Facts, sent: Collection[str], taken: set[str], to: str | None) -> str:
    if not each.topic and to is None:
        return FROM_TABLE
    if each.id in sent or (each.origin and each.origin in sent):
        return SENT_BEFORE
    return SAME_RECORD if each.id in taken or (each.origin and each.origin in taken) else ""


FOLDER = "redrives"
LOCK, PLANNING_LOCK = "redrive.lock", "planning.lock"
_NAME = re.compile(r"redrive-[0-9T]+")
# Where the topics ended before a batch: what stands behind that may be of it.
Ends = Mapping[str, Mapping[str, int]]


@dataclass
class Journal:
    """One redrive: what was planned, what was announced, what became of it."""

    file: Path
    items: tuple[Item, ...]
    skipped: tuple[Outcome, ...] = ()
    by: str = ""
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    announced: dict[str, Ends] = field(default_factory=dict[str, Ends])
    closed: bool = False

    @property
    def name(self) -> str:
        return self.file.name.removesuffix(SUFFIX)

    @property
    def left(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.id not in self.outcomes)

    @property
    def uncertain(self) -> tuple[Item, ...]:
        """Announced, and then nothing more was heard: it may stand in its topic or not."""
        return tuple(item for item in self.left if item.id in self.announced)

    def announce(self, items: Iterable[Item], ends: Ends) -> None:
        ids = [item.id for item in items]
        self.announced |= dict.fromkeys(ids, ends)
        journal_file.append(self.file, [{"announced": ids, "ends": ends}])

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        found = list(outcomes)
        self.outcomes |= {outcome.id: outcome for outcome in found}
        journal_file.append(self.file, [{"outcome": asdict(outcome)} for outcome in found])

    def close(self) -> None:
        self.closed = True
        journal_file.append(self.file, [{"closed": True}])

    def report(self) -> RedriveReport:
        every = list(self.outcomes.values())
        refused = Counter(one.why for one in every if one.result == "refused")
        skipped = Counter(one.why for one in (*self.skipped, *every) if one.result == "skipped")
        return RedriveReport(
            redrive=self.name,
            planned=len(self.items),
            sent=sum(one.result == "sent" for one in every),
            refused=dict(refused),
            skipped=dict(skipped),
            left=len(self.left),
            closed=self.closed,
            journal=str(self.file),
        )

    @contextmanager
    def held(self) -> Generator[None]:
        """Go on with it, alone: read anew, a line that a kill cut off taken out."""
        with alone(self.file.parent):
            journal_file.cut_off(self.file)
            fresh = read_journal(self.file)
            self.outcomes, self.announced, self.closed = (
                fresh.outcomes,
                fresh.announced,
                fresh.closed,
            )
            yield


def alone(folder: Path) -> AbstractContextManager[None]:
    """One redrive at a time: two could send the same letter."""
    return journal_file.held_alone(folder / LOCK, "another process is sending dead letters again")


@contextmanager
def planning(home: Path) -> Generator[None]:
    """One plan after the other is put on disk; quick, so others wait."""
    (home / FOLDER).mkdir(parents=True, exist_ok=True)
    with (home / FOLDER / PLANNING_LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def new_journal(home: Path, plan: RedrivePlan, by: str, now: datetime) -> Journal:
    """A journal with the plan in it; on disk whole or not at all."""
    file = home / FOLDER / journal_file.file_name("redrive", now)
    head = {"by": by, "items": [asdict(item) for item in plan.items]}
    head |= {"skipped": [asdict(outcome) for outcome in plan.skipped]}
    journal_file.begin(file, head)
    return Journal(file, plan.items, plan.skipped, by)


def journals(home: Path) -> tuple[Journal, ...]:
    """All of them, oldest first."""
    files = sorted((home / FOLDER).glob(f"redrive-*{SUFFIX}"))
    return tuple(read_journal(file) for file in files)


def open_journals(home: Path) -> tuple[Journal, ...]:
    """Those that have something left to send."""
    return tuple(journal for journal in journals(home) if not journal.closed)


def need_journal(home: Path, name: str) -> Journal:
    file = home / FOLDER / f"{name}{SUFFIX}"
    if _NAME.fullmatch(name) is None or not file.is_file():
        raise NotFoundError(f"there is no redrive {name[:80]!r}", fix="headgate dlq redrives")
    return read_journal(file)


def sent_before(home: Path) -> frozenset[str]:
    """Ids and origins of all letters that were sent, or are planned in a redrive that is open."""
    found: set[str] = set()
    for journal in journals(home):
        gone = {one.id for one in journal.outcomes.values() if one.result != "sent"}
        for item in journal.items:
            if item.id not in gone and (item.id in journal.outcomes or not journal.closed):
                found |= {item.id, item.origin} - {""}
    return frozenset(found)


def read_journal(file: Path) -> Journal:
    """A journal as it stands; nothing is written."""
    head, lines = journal_file.read(file)
    items = tuple(Item(**item) for item in head["items"])
    skipped = tuple(Outcome(**one) for one in head["skipped"])
    journal = Journal(file, items, skipped, head["by"])
    for line in lines:
        _take(journal, line)
    return journal


def _take(journal: Journal, line: journal_file.Line) -> None:
    if "announced" in line:
        journal.announced |= dict.fromkeys(line["announced"], line["ends"])
    elif "outcome" in line:
        outcome = Outcome(**line["outcome"])
        journal.outcomes[outcome.id] = outcome
    else:
        journal.closed = True


GONE = "it is not in the dead-letter table any more"


class Target(Protocol):
    """Where letters go, and where those that arrived are found."""

    def ends(self, topics: Collection[str]) -> dict[str, dict[str, int]]: ...

    def send(self, letters: Sequence[tuple[Letter, str]], redrive: str) -> list[Outcome]: ...

    def arrived(
        self, ids: Collection[str], since: Mapping[str, Mapping[str, int]]
    ) -> dict[str, str]: ...


@dataclass(frozen=True)
class Edges:
    """What a redrive touches; each is handed in."""

    letters: Callable[[Sequence[str]], Mapping[str, Letter]]
    target: Target
    stopped: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def run_redrive(journal: Journal, edges: Edges, per_second: int, watcher: Watcher) -> RedriveReport:
    """Send what is left; stops between batches when asked to."""
    with journal.held():
        _settle_uncertain(journal, edges)
        pace = Pace(per_second, edges.clock, edges.sleep)
        for batch in _batches(journal.left, pace.batch):
            if edges.stopped():
                break
            pace.wait(len(batch))
            _send(journal, edges, batch)
            watcher.update(len(journal.outcomes))
        if not journal.left and not journal.closed:
            journal.close()
    return journal.report()


def _settle_uncertain(journal: Journal, edges: Edges) -> None:
    """A kill between sending and noting: the topic itself says what had arrived."""
    uncertain = journal.uncertain
    if not uncertain:
        return
    since = _earliest(journal.announced[item.id] for item in uncertain)
    found = edges.target.arrived([item.id for item in uncertain], since)
    journal.settle(Outcome(name, "sent", place) for name, place in found.items())


def _earliest(ends: Iterator[Ends]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for each in ends:
        for topic, places in each.items():
            mine = found.setdefault(topic, {})
            for partition, end in places.items():
                mine[partition] = min(end, mine.get(partition, end))
    return found


def _send(journal: Journal, edges: Edges, batch: Sequence[Item]) -> None:
    letters = edges.letters([item.id for item in batch])
    ends = edges.target.ends({item.topic for item in batch})
    cannot = [outcome for item in batch if (outcome := _cannot(item, letters, ends))]
    wanted = [item for item in batch if item.id in letters and item.topic in ends]
    # An older announcement says from where to search: it must not be replaced by a later one.
    if fresh := [item for item in wanted if item.id not in journal.announced]:
        journal.announce(fresh, ends)
    pairs = [(letters[item.id], item.topic) for item in wanted]
    journal.settle([*cannot, *(edges.target.send(pairs, journal.name) if pairs else [])])


def _cannot(item: Item, letters: Mapping[str, Letter], ends: Ends) -> Outcome | None:
    if item.id not in letters:
        return Outcome(item.id, "skipped", why=GONE)
    if item.topic not in ends:
        return Outcome(item.id, "refused", why=f"there is no topic {item.topic}")
    return None


def _batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]
