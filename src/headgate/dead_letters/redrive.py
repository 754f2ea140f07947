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
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Protocol

from headgate.core.runtime import journal as journal_file
from headgate.core.runtime.journal import SUFFIX, Journal, Pace, Watcher
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
class RedriveJournal(Journal[Item, Outcome, Ends]):
    """One redrive; what is announced has the ends of the topics from before it was sent."""

    key_of = attrgetter("id")
    outcome_of = Outcome
    skipped: tuple[Outcome, ...] = ()
    by: str = ""

    def announcement(self, line: journal_file.Line) -> Mapping[str, Ends]:
        ends: Ends = line["ends"]
        return dict.fromkeys(line["announced"], ends)

    def alone(self) -> AbstractContextManager[None]:
        """One redrive at a time: two could send the same letter."""
        lock = self.file.with_name(LOCK)
        return journal_file.held_alone(lock, "another process is sending dead letters again")

    @property
    def uncertain(self) -> tuple[Item, ...]:
        """Announced, and then nothing more was heard: it may stand in its topic or not."""
        return tuple(item for item in self.left if item.id in self.announced)

    def announce(self, items: Iterable[Item], ends: Ends) -> None:
        self.write([{"announced": [item.id for item in items], "ends": ends}])

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
def planning(home: Path) -> Generator[None]:
    """One plan after the other is put on disk; quick, so others wait."""
    (home / FOLDER).mkdir(parents=True, exist_ok=True)
    with (home / FOLDER / PLANNING_LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def new_journal(home: Path, plan: RedrivePlan, by: str, now: datetime) -> RedriveJournal:
    """A journal with the plan in it; on disk whole or not at all."""
    file = home / FOLDER / journal_file.file_name("redrive", now)
    head = {"by": by, "items": [asdict(item) for item in plan.items]}
    head |= {"skipped": [asdict(outcome) for outcome in plan.skipped]}
    journal_file.begin(file, head)
    return RedriveJournal(file, plan.items, plan.skipped, by)


def journals(home: Path) -> tuple[RedriveJournal, ...]:
    """All of them, oldest first."""
    files = sorted((home / FOLDER).glob(f"redrive-*{SUFFIX}"))
    return tuple(read_journal(file) for file in files)


def open_journals(home: Path) -> tuple[RedriveJournal, ...]:
    """Those that have something left to send."""
    return tuple(journal for journal in journals(home) if not journal.closed)


def need_journal(home: Path, name: str) -> RedriveJournal:
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


def read_journal(file: Path) -> RedriveJournal:
    """A journal as it stands; nothing is written."""
    head, _ = journal_file.read(file)
    items = tuple(Item(**item) for item in head["items"])
    skipped = tuple(Outcome(**one) for one in head["skipped"])
    return RedriveJournal(file, items, skipped, head["by"]).reload()


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


def run_redrive(
    journal: RedriveJournal, edges: Edges, per_second: int, watcher: Watcher
) -> RedriveReport:
    """Send what is left; stops between batches when asked to."""
    with journal.held():
        _settle_uncertain(journal, edges)
        pace = Pace(per_second, edges.clock, edges.sleep)
        journal.carry_out(partial(_send, journal, edges), pace, edges.stopped, watcher)
    return journal.report()


def _settle_uncertain(journal: RedriveJournal, edges: Edges) -> None:
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


def _send(journal: RedriveJournal, edges: Edges, batch: Sequence[Item]) -> list[Outcome]:
    letters = edges.letters([item.id for item in batch])
    ends = edges.target.ends({item.topic for item in batch})
    cannot = [outcome for item in batch if (outcome := _cannot(item, letters, ends))]
    wanted = [item for item in batch if item.id in letters and item.topic in ends]
    # An older announcement says from where to search: it must not be replaced by a later one.
    if fresh := [item for item in wanted if item.id not in journal.announced]:
        journal.announce(fresh, ends)
    pairs = [(letters[item.id], item.topic) for item in wanted]
    return [*cannot, *(edges.target.send(pairs, journal.name) if pairs else [])]


def _cannot(item: Item, letters: Mapping[str, Letter], ends: Ends) -> Outcome | None:
    if item.id not in letters:
        return Outcome(item.id, "skipped", why=GONE)
    if item.topic not in ends:
        return Outcome(item.id, "refused", why=f"there is no topic {item.topic}")
    return None
