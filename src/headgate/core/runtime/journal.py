"""Work that can be interrupted and resumed: a journal on disk, files written whole, a request to stop.

A journal is a line with the plan and a line for each step; a last line that a kill left half written is
not read; `Journal` carries out what is left of one, batch by batch. `whole_file` makes a file appear only when
it is complete. `interruption` says whether Ctrl-C or a termination came.
"""

from __future__ import annotations

import fcntl
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar, cast

import orjson

from headgate.errors import ConflictError, OperationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@contextmanager
def interruption() -> Generator[Callable[[], bool]]:
    """Whether Ctrl-C or a termination came; the second one ends at once."""
    came: list[int] = []

    def note(number: int, _frame: object) -> None:
        came.append(number)
        signal.signal(number, before[number])

    numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)
    before = {int(number): signal.getsignal(number) for number in numbers}
    with suppress(ValueError):  # only the main thread may listen
        for number in numbers:
            signal.signal(number, note)
    try:
        yield lambda: bool(came)
    finally:
        with suppress(ValueError):
            for number in numbers:
                signal.signal(number, before[number])


@contextmanager
def whole_file(file: Path) -> Generator[Path]:
    """A path to write to that becomes `file` when the writing has succeeded."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield part
        part.replace(file)
    except OSError as error:
        raise OperationError(
            f"{file} cannot be written",
            why=error.strerror or str(error).partition("\n")[0],
            fix="check the folder, its permissions and the room on the disk",
        ) from error
    finally:
        part.unlink(missing_ok=True)


Item = TypeVar("Item")
Outcome = TypeVar("Outcome", bound="DataclassInstance")
Announced = TypeVar("Announced")
SUFFIX = ".jsonl"
Line: TypeAlias = "dict[str, Any]"


def file_name(prefix: str, now: datetime) -> str:
    """Names of one prefix sort by their time."""
    return f"{prefix}-{now.astimezone(UTC):%Y%m%dT%H%M%S%f}{SUFFIX}"


def begin(file: Path, head: Mapping[str, object]) -> None:
    """The file with its first line, there whole or not at all."""
    with whole_file(file) as part, part.open("wb") as out:
        out.write(orjson.dumps(head) + b"\n")
        out.flush()
        os.fsync(out.fileno())


def append(file: Path, lines: Iterable[Mapping[str, object]]) -> None:
    """On disk when it returns."""
    data = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    if not data:
        return
    try:
        with file.open("ab") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        raise OperationError(f"{file} cannot be written", why=str(error)) from error


def read(file: Path) -> tuple[Line, list[Line]]:
    """Its head and its lines; a last line that is not whole is left out, and nothing is written."""
    first, *rest = file.read_bytes().split(b"\n")
    return _line(first), [_line(text) for text in rest[:-1]]


def _line(text: bytes) -> Line:
    return cast("Line", orjson.loads(text))


def cut_off(file: Path) -> None:
    """Take out a last line that a kill left half written."""
    os.truncate(file, file.read_bytes().rfind(b"\n") + 1)


@contextmanager
def held_alone(lock: Path, refusal: str) -> Generator[None]:
    """One process at a time; another one is refused in these words."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConflictError(
                refusal,
                why=f"it holds {lock}",
                fix="wait for it, or stop it: what is left can be resumed",
            ) from None
        yield


MOST_AT_ONCE = 100


class Watcher(Protocol):
    """Sees how far it is."""

    def update(self, done: int) -> None: ...


@dataclass
class Pace:
    """Lets so many through a second; `wait` is called before each batch."""

    per_second: int
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    _free_at: float = field(default=float("-inf"))

    @property
    def batch(self) -> int:
        return min(MOST_AT_ONCE, self.per_second)

    def wait(self, count: int) -> None:
        now = self.clock()
        if self._free_at > now:
            self.sleep(self._free_at - now)
        self._free_at = max(self._free_at, now) + count / self.per_second


@dataclass
class Journal(ABC, Generic[Item, Outcome, Announced]):
    """What was planned, what was announced, and what became of each item; on disk before it counts."""

    # Where an item and its outcome say what they are, and what makes an outcome of its line.
    key_of: ClassVar[Callable[[object], str]]
    outcome_of: ClassVar[Callable[..., Any]]
    file: Path
    items: tuple[Item, ...]
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome], kw_only=True)
    announced: dict[str, Announced] = field(default_factory=dict[str, Announced], kw_only=True)
    closed: bool = field(default=False, kw_only=True)

    def announcement(self, line: Line) -> Mapping[str, Announced]:
        return line["announced"]

    @abstractmethod
    def alone(self) -> AbstractContextManager[None]:
        """Keeps out another process that would go on with such a journal."""

    @property
    def name(self) -> str:
        return self.file.name.removesuffix(SUFFIX)

    @property
    def left(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if self.key_of(item) not in self.outcomes)

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        """What became of these items; on disk before the next ones begin."""
        self.write({"outcome": asdict(outcome)} for outcome in outcomes)

    def close(self) -> None:
        """Nothing is left to do."""
        self.write([{"closed": True}])

    def write(self, lines: Iterable[Line]) -> None:
        written = list(lines)
        self._take(written)
        append(self.file, written)

    def reload(self) -> Self:
        """As the file has it; nothing is written."""
        self.outcomes, self.announced, self.closed = {}, {}, False
        self._take(read(self.file)[1])
        return self

    @contextmanager
    def held(self) -> Generator[None]:
        """Go on with it, alone: read anew, a line that a kill cut off taken out."""
        with self.alone():
            cut_off(self.file)
            self.reload()
            yield

    def carry_out(
        self,
        step: Callable[[Sequence[Item]], Iterable[Outcome]],
        pace: Pace,
        stopped: Callable[[], bool],
        watcher: Watcher,
    ) -> None:
        """Settle what is left; stops between batches when asked to."""
        for at in range(0, len(left := self.left), pace.batch):
            if stopped():
                break
            batch = left[at : at + pace.batch]
            pace.wait(len(batch))
            self.settle(step(batch))
            watcher.update(len(self.outcomes))
        if not self.left and not self.closed:
            self.close()

    def _take(self, lines: Iterable[Line]) -> None:
        for line in lines:
            if "announced" in line:
                self.announced |= self.announcement(line)
            elif "outcome" in line:
                outcome = self.outcome_of(**line["outcome"])
                self.outcomes[self.key_of(outcome)] = outcome
            else:
                self.closed = True
