"""Which columns tell two rows apart: the smallest combination, found in some rows, held against all."""

# pyarrow ships no types and makes its compute functions at import, unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kafka.arrow import Array
from headgate.core.profiler.database import Database
from headgate.core.profiler.likeliness import UNLIKELY, unlikeliness
from headgate.core.profiler.profile_model import Key, Profile
from headgate.core.profiler.profile_rows import Rows

TRIAL_ROWS = 50_000
QUICK_ROWS = 3_000
MOST_COLUMNS = 4
MOST_CANDIDATES = 14
MOST_ASKED = 6  # combinations of one size that are held against all rows
OTHERS = 3  # further keys that are told
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Search:
    """The rows of the file and how they are counted."""

    database: Database
    rows: Rows
    profile: Profile
    advance: Advance
    _known: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])

    def sharing(self, columns: Sequence[int]) -> int:
        """How many rows have the same values there as an earlier one."""
        key = tuple(columns)
        if self.rows.of and key not in self._known:
            reader = self.rows.reader(key, self.advance, exact=True)
            self._known[key] = self.rows.of - self.database.combinations(reader)
        return self._known.get(key, 0)

    def tells_apart(self, columns: Sequence[int]) -> bool:
        """Whether it is unique but for rows that repeat another in every column."""
        sharing = self.sharing(columns)
        return not sharing or sharing == self.repeated

    @property
    def repeated(self) -> int:
        """How many rows repeat another in every column: no key tells those apart."""
        return self.sharing(range(len(self.profile.columns)))


def given_key(search: Search, names: Sequence[str]) -> Key:
    """The key that the user names, held against all rows."""
    known = [column.name for column in search.profile.columns]
    chosen = tuple(dict.fromkeys(names))
    sharing = search.sharing([known.index(name) for name in chosen])
    return Key(chosen, sharing, search.repeated if sharing else 0, given=True)


def find_key(search: Search, event_time: str) -> Key:
    """The smallest, likeliest combination that is unique; where rows repeat, among the others."""
    columns = search.profile.columns
    doubts = {
        at: unlikeliness(column, event_time)
        for at, column in enumerate(columns)
        if column.kind not in ("nested", "nothing")
    }
    ranked = sorted(doubts, key=lambda at: doubts[at])
    likely = [at for at in ranked if doubts[at][0] < UNLIKELY]
    trial = _Trial(search, ranked)
    first, *others = (
        _search(search, trial, likely[:MOST_CANDIDATES])
        or _search(search, trial, ranked[:MOST_CANDIDATES])
        or [_whole(search, trial.widened(ranked))]
    )
    names = [column.name for column in columns]
    told = tuple(tuple(names[at] for at in other) for other in others[:OTHERS])
    sharing = search.sharing(first)
    return Key(_ordered(first, names, event_time), sharing, sharing, others=told)


def _whole(search: Search, widened: tuple[int, ...]) -> tuple[int, ...]:
    """As many columns as it takes, at worst all: then only rows that are equal are one event."""
    if widened and search.tells_apart(widened):
        return widened
    columns = enumerate(search.profile.columns)
    held = tuple(at for at, column in columns if column.nulls < search.profile.looked.rows)
    apart = bool(held) and search.tells_apart(held)
    return held if apart else tuple(range(len(search.profile.columns)))


def _ordered(columns: Sequence[int], names: Sequence[str], event_time: str) -> tuple[str, ...]:
    """In the order of the file, the event time last."""
    chosen = [names[at] for at in sorted(columns)]
    return tuple(sorted(chosen, key=lambda name: name == event_time))


def _search(search: Search, trial: _Trial, candidates: Sequence[int]) -> list[tuple[int, ...]]:
    """Combinations of the fewest columns that tell all rows apart which differ at all."""
    for size in range(1, MOST_COLUMNS + 1):
        promising = _first(trial.unique(candidates, size), MOST_ASKED)
        found = [columns for columns in promising if search.tells_apart(columns)]
        if found:
            return found
    return []


def _first(items: Iterator[tuple[int, ...]], most: int) -> Iterator[tuple[int, ...]]:
    for item, _ in zip(items, range(most), strict=False):
        yield item


class _Trial:
    """Some rows as numbers, so that many combinations can be tried quickly."""

    def __init__(self, search: Search, ranked: Sequence[int]) -> None:
        self._codes = _codes(search, ranked)
        self.rows = len(next(iter(self._codes.values()), ()))
        # Most combinations fail on few rows already.
        self._targets = {n: self._different(tuple(self._codes), n) for n in (QUICK_ROWS, self.rows)}

    def unique(self, candidates: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
        """Combinations that tell all rows apart which can be, the likeliest first."""
        ranks = combinations(range(len(candidates)), size)
        for rank in sorted(ranks, key=lambda r: (sum(r), r)):
            columns = tuple(candidates[at] for at in rank)
            if all(self._different(columns, n) == most for n, most in self._targets.items()):
                yield columns

    def widened(self, ranked: Sequence[int]) -> tuple[int, ...]:
        """Columns taken one after the other as long as they tell more rows apart."""
        chosen: tuple[int, ...] = ()
        seen = 0
        for at in ranked:
            different = self._different((*chosen, at), self.rows)
            if different > seen:
                chosen, seen = (*chosen, at), different
        return chosen if seen == self._targets[self.rows] else ()

    def _different(self, columns: tuple[int, ...], rows: int) -> int:
        mixed: Array = np.zeros(min(rows, self.rows), dtype=np.int64)
        for at in columns:
            codes = self._codes[at][:rows]
            mixed = np.unique(mixed * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[
                1
            ]
        return len(np.unique(mixed))


def _codes(search: Search, ranked: Sequence[int]) -> dict[int, Array]:
    """Equal values of a column have equal numbers, NULL too."""
    if not ranked:
        return {}
    most = min(TRIAL_ROWS, search.rows.of)
    rows = Rows(search.rows.file, search.rows.groups, most, search.rows.of)
    table: pa.Table = rows.reader(ranked, lambda _: None).read_all().combine_chunks()
    return {at: _numbered(column) for at, column in zip(ranked, table.columns, strict=True)}


def _numbered(column: pa.ChunkedArray) -> Array:
    if not len(column):
        return np.empty(0, dtype=np.int64)
    encoded = pc.dictionary_encode(column.chunk(0)).indices
    numbers = pc.fill_null(encoded, -1).cast(pa.int64())
    return np.frombuffer(numbers.buffers()[1], np.int64)[numbers.offset :][: len(numbers)] + 1
