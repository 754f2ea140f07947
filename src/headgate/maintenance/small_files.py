"""Which parts of a table are worth writing anew: a pure function over its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

TARGET_BYTES = 128 * 1024 * 1024
# Iceberg leaves files alone that are at least this part of the target.
SMALL_BYTES = TARGET_BYTES * 3 // 4
MIN_FILES = 5
# One commit: each makes a merge that is under way begin again, and is lost if it meets one.
PARTS_AT_ONCE, BYTES_AT_ONCE = 10, 2 * 1024**3


@dataclass(frozen=True)
class Part:
    """The data files of one partition date, or of a table that has no partitions."""

    date: date | None
    files: int
    bytes: int
    small_files: int
    small_bytes: int
    dated: bool = True

    @property
    def name(self) -> str:
        if not self.dated:
            return "all"
        return self.date.isoformat() if self.date else "no date"


def is_closed(part: Part, today: date) -> bool:
    """Whether its date is over; rows without a date, and a table without dates, belong to none."""
    return part.date is None or part.date < today


def plan_compaction(parts: Iterable[Part], today: date, min_files: int) -> tuple[Part, ...]:
    """The closed parts with enough small files, those with the most first."""
    wanted = (p for p in parts if is_closed(p, today) and is_worth_it(p, max(min_files, 2)))
    return tuple(sorted(wanted, key=lambda p: (-p.small_files, p.name)))


def is_worth_it(part: Part, min_files: int) -> bool:
    """Whether there are many small files, and writing them anew makes fewer of them."""
    at_best = -(-part.small_bytes // TARGET_BYTES)
    return part.small_files >= min_files and part.small_files > at_best


def chunks(
    parts: Sequence[Part], count: int = PARTS_AT_ONCE, size: int = BYTES_AT_ONCE
) -> Iterator[tuple[Part, ...]]:
    """The parts in turn, as many at once as one commit should bring."""
    chunk: tuple[Part, ...] = ()
    for part in parts:
        if chunk and (len(chunk) == count or small_bytes(chunk) + part.small_bytes > size):
            yield chunk
            chunk = ()
        chunk = (*chunk, part)
    if chunk:
        yield chunk


def small_bytes(parts: Iterable[Part]) -> int:
    return sum(part.small_bytes for part in parts)
