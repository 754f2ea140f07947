"""Which parts of a table are worth writing anew: a pure function over its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

TARGET_BYTES = 128 * 1024 * 1024
# Iceberg leaves files alone that are at least this part of the target.
SMALL_BYTES = TARGET_BYTES * 3 // 4
MIN_FILES = 5
PARTS_AT_ONCE = 50


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
    wanted = (p for p in parts if is_closed(p, today) and p.small_files >= max(min_files, 2))
    return tuple(sorted(wanted, key=lambda p: (-p.small_files, p.name)))


def chunks(parts: Sequence[Part], size: int = PARTS_AT_ONCE) -> Iterator[tuple[Part, ...]]:
    """So few that one statement stays readable."""
    for start in range(0, len(parts), size):
        yield tuple(parts[start : start + size])
