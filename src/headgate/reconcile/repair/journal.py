"""A repair on disk: its plan, and each step before and after it is done, so that it can be resumed."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from headgate.core.runtime import journal_file
from headgate.core.runtime.journal_file import SUFFIX
from headgate.errors import ConflictError, UsageError
from headgate.reconcile.repair.model import Item, Outcome

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
    folder = home / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(folder / journal_file.file_name(table, now), table, target, tuple(items))
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
