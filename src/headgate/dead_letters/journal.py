"""A redrive on disk: its plan, each batch before it is sent and after, so that it can be resumed.

No record's content stands in it: ids, places and counts only.
"""

from __future__ import annotations

import fcntl
import re
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from headgate.core.runtime import journal_file
from headgate.core.runtime.journal_file import SUFFIX
from headgate.dead_letters.model import Item, Outcome, RedrivePlan, RedriveReport
from headgate.errors import NotFoundError

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
    folder = home / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / journal_file.file_name("redrive", now)
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
