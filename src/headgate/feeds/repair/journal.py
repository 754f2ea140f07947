"""A repair on disk: its plan, and each step before and after it is done, so that it can be resumed."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import orjson

from headgate.errors import ConflictError, OperationError, UsageError
from headgate.feeds.repair.model import Item, Outcome

FOLDER, SUFFIX = "repairs", ".jsonl"


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
        self._append([{"announced": dict(stamps)}])

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        """What became of these keys; on disk before the next ones begin."""
        found = list(outcomes)
        self.outcomes |= {outcome.pk: outcome for outcome in found}
        self._append([{"outcome": asdict(outcome)} for outcome in found])

    def close(self) -> None:
        """Nothing is left to do."""
        self.closed = True
        self._append([{"closed": True}])

    @contextmanager
    def held(self) -> Generator[None]:
        """Go on with it, alone: read anew, a line that a kill cut off taken out."""
        with _alone(self.file.with_name(f"{self.table}.lock"), self.table):
            data = self.file.read_bytes()
            os.truncate(self.file, data.rfind(b"\n") + 1)
            fresh = read_journal(self.file)
            self.outcomes, self.announced = fresh.outcomes, fresh.announced
            self.closed = fresh.closed
            yield

    def _append(self, lines: Iterable[Mapping[str, object]]) -> None:
        data = b"".join(orjson.dumps(line) + b"\n" for line in lines)
        try:
            with self.file.open("ab") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise OperationError(f"{self.file} cannot be written", why=str(error)) from error


@contextmanager
def _alone(file: Path, table: str) -> Generator[None]:
    import fcntl

    with file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConflictError(
                f"another process is repairing {table}",
                why=f"it holds {file}",
                fix="wait for it, or stop it: what is left can be resumed",
            ) from None
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
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%S%f")
    journal = Journal(folder / f"{table}-{stamp}{SUFFIX}", table, target, tuple(items))
    part = journal.file.with_suffix(".part")
    head = {"table": table, "target": target, "items": [asdict(item) for item in journal.items]}
    part.write_bytes(orjson.dumps(head) + b"\n")
    with part.open("rb+") as out:
        os.fsync(out.fileno())
    part.rename(journal.file)
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
    """A journal as it stands; a last line that is not whole is left out, and nothing is written."""
    first, *rest = file.read_bytes().split(b"\n")
    head = cast("dict[str, Any]", orjson.loads(first))
    journal = Journal(file, head["table"], head["target"], tuple(map(_item, head["items"])))
    for line in rest[:-1]:
        _take(journal, cast("dict[str, Any]", orjson.loads(line)))
    return journal


def _take(journal: Journal, line: dict[str, Any]) -> None:
    if "announced" in line:
        journal.announced |= line["announced"]
    elif "outcome" in line:
        outcome = Outcome(**line["outcome"])
        journal.outcomes[outcome.pk] = outcome
    else:
        journal.closed = True


def _item(plain: dict[str, Any]) -> Item:
    version = datetime.fromisoformat(plain["version"])
    return Item(plain["pk"], plain["status"], plain["action"], version)
