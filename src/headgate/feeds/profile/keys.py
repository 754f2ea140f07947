"""Which columns tell two rows apart: the smallest combination, found in some rows, held against all."""

# pyarrow ships no types and makes its compute functions at import, unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import UsageError
from headgate.feeds.arrow import Array
from headgate.feeds.profile.database import Database
from headgate.feeds.profile.likeliness import UNLIKELY, unlikeliness
from headgate.feeds.profile.model import Key, Profile
from headgate.feeds.profile.rows import Rows
from headgate.spec.refusal import suggestion

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

    def sharing(self, columns: Sequence[int]) -> int:
        """How many rows have the same values there as an earlier one."""
        if not self.rows.of:
            return 0
        reader = self.rows.reader(columns, self.advance, exact=True)
        return self.rows.of - self.database.combinations(reader)


def given_key(search: Search, names: Sequence[str]) -> Key:
    """The key that the user names, held against all rows."""
    known = [column.name for column in search.profile.columns]
    for name in names:
        if name not in known:
            raise UsageError(
                f"the file has no column `{name}`", fix=suggestion(name, known, "columns")
            )
    sharing = search.sharing([known.index(name) for name in names])
    return Key(tuple(dict.fromkeys(names)), sharing, 0, given=True)


def find_key(search: Search, event_time: str) -> Key:
    """The smallest, likeliest combination that is unique; where rows repeat, among the others."""
    profile = search.profile
    names = [column.name for column in profile.columns]
    doubts = {
        at: unlikeliness(column, event_time)
        for at, column in enumerate(profile.columns)
        if _could_be_part(column.kind)
    }
    ranked = sorted(doubts, key=lambda at: doubts[at])
    likely = [at for at in ranked if doubts[at] < UNLIKELY]
    trial = _Trial(search, ranked)
    repeated, found = _search(search, trial, likely[:MOST_CANDIDATES])
    if not found and likely != ranked:
        repeated, found = _search(search, trial, ranked[:MOST_CANDIDATES])
    if not found:
        whole = trial.widened(ranked) or tuple(ranked) or _with_values(profile)
        found = [(whole, search.sharing(whole))]
    (columns, sharing), *others = found
    told = tuple(tuple(names[at] for at in other) for other, _ in others[:OTHERS])
    return Key(_ordered(columns, names, event_time), sharing, repeated, others=told)


def _could_be_part(kind: str) -> bool:
    return kind not in ("nested", "nothing")


def _with_values(profile: Profile) -> tuple[int, ...]:
    """Columns that hold anything; all of them when none does."""
    columns = enumerate(profile.columns)
    held = tuple(at for at, column in columns if column.nulls < profile.looked.rows)
    return held or tuple(range(len(profile.columns)))


def _ordered(columns: Sequence[int], names: Sequence[str], event_time: str) -> tuple[str, ...]:
    """In the order of the file, the event time last."""
    chosen = [names[at] for at in sorted(columns)]
    return tuple(sorted(chosen, key=lambda name: name == event_time))


def _search(
    search: Search, trial: _Trial, candidates: Sequence[int]
) -> tuple[int, list[tuple[tuple[int, ...], int]]]:
    """Rows that repeat whole, and the combinations that tell all the others apart."""
    repeated = -1
    for size in range(1, MOST_COLUMNS + 1):
        found: list[tuple[tuple[int, ...], int]] = []
        for columns in _first(trial.unique(candidates, size), MOST_ASKED):
            if repeated < 0:
                repeated = _repeated(search) if trial.repeats else 0
            sharing = search.sharing(columns)
            if sharing == repeated:
                found.append((columns, sharing))
                if len(found) > OTHERS:
                    break
        if found:
            return repeated, found
    return max(0, repeated), []


def _repeated(search: Search) -> int:
    return search.sharing(range(len(search.profile.columns)))


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

    @property
    def repeats(self) -> bool:
        """Whether some rows cannot be told apart even by all columns tried."""
        return self._targets[self.rows] < self.rows

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
