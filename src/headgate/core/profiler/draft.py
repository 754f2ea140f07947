"""Choose the event time and the key of a profiled file; `draw_up` goes from the file to the draft.

The key is the smallest combination of columns that is unique: searched in a sample of the rows, then checked
against all. A choice that the user made is only checked.
"""

# pyarrow ships no types and makes its compute functions at import, unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kafka.arrow_json import Array
from headgate.core.profiler.model import (
    ColumnProfile,
    Key,
    Profile,
    free_name,
    plain_names,
    snake_case,
)
from headgate.core.profiler.rows import (
    Database,
    Rows,
    all_rows,
    most_rows,
    open_database,
    open_parquet,
    some_rows,
)
from headgate.core.profiler.scan import require_columns, scan, time_pattern, written_time
from headgate.declarations.columns import RECORD_TIME, RESERVED_COLUMNS, SILVER_OWN_NAMES
from headgate.declarations.errors import suggestion
from headgate.errors import UsageError

_IDENTIFIER = re.compile(r"(^|_)(id|ids|key|uuid|guid|code|no|nr|num|number|ref|sku|isbn|iata)$")
_MEASURE = re.compile(
    r"amount|price|cost|fee|fare|total|tax|qty|quantity|count|rate|ratio|score|distance|duration"
    r"|delay|temp|speed|weight|height|width|percent|avg|mean|sum|lat|lon|pressure|humid"
)
_PART_OF_DATE = re.compile(r"(^|_)(year|month|day|hour|minute|second|week|quarter)$")
_OF_KIND = {"whole": 3, "text": 2, "time": 7, "date": 7, "decimal": 6, "boolean": 7, "real": 9}
_RESERVED = frozenset(RESERVED_COLUMNS) | SILVER_OWN_NAMES
# Measures and further times are unique by accident: they are asked last.
UNLIKELY = 7


def key_unlikeliness(column: ColumnProfile, event_time: str) -> tuple[int, int]:
    """The lower the likelier; of equals, the one with more different values comes first."""
    name = snake_case(column.name)
    said = _OF_KIND.get(column.kind, 10)
    if column.name == event_time:
        said = 1
    elif _IDENTIFIER.search(name):
        said = 0 if column.kind != "real" else 4
    elif _PART_OF_DATE.search(name):
        said = 6
    elif _MEASURE.search(name):
        said += 4
    if column.nulls:
        said += 5
    if column.distinct <= 1:
        said += 10
    return said, -column.distinct


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
        at: key_unlikeliness(column, event_time)
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


# What a name says about a time: the lower the likelier that it is when the event happened.
_NAMES: Mapping[str, int] = {
    r"event|occurred|happened": 0,
    r"^(timestamp|ts|time|datetime|date_?time|at)$": 1,
    r"start|begin|pickup|request|order(ed)?_|purchase|created|placed|sent|booked|departure": 2,
    r"updat|modif|chang|end|stop|finish|complete|dropoff|deliver|arriv|close|due|expir|valid": 6,
    r"birth|dob|delet|load|ingest|extract|import|process|insert": 8,
}
_OTHERWISE = 4
# Shares of rows without the time: silver leaves those rows out.
RARELY, OFTEN = 0.01, 0.2


def choose_event_time(profile: Profile, given: str | None) -> tuple[str, tuple[str, ...]]:
    """The column chosen, or the record's own time; and the others, the likeliest first."""
    moments = sorted(
        (column for column in profile.columns if column.is_moment),
        key=lambda column: _event_time_unlikeliness(column, profile.looked.rows),
    )
    names = tuple(column.name for column in moments)
    chosen = given or next((c.name for c in moments if not _mostly_null(c, profile)), RECORD_TIME)
    if given and given not in (*names, RECORD_TIME):
        raise _not_a_time(given, profile, names)
    return chosen, tuple(name for name in names if name != chosen)


def _mostly_null(column: ColumnProfile, profile: Profile) -> bool:
    return 2 * column.nulls > profile.looked.rows


def _event_time_unlikeliness(column: ColumnProfile, rows: int) -> tuple[bool, bool, int, float]:
    """Often absent comes last, dates after times; then the name speaks, then how many are absent."""
    absent = column.nulls / max(1, rows)
    name = snake_case(column.name)
    said = next((at for pattern, at in _NAMES.items() if re.search(pattern, name)), _OTHERWISE)
    worse = (4 if absent > RARELY else 0) + (3 if column.beyond else 0)
    return absent > OFTEN, column.kind == "date", said + worse, absent


def _not_a_time(given: str, profile: Profile, names: tuple[str, ...]) -> UsageError:
    others = f"columns of times: {', '.join(names)}" if names else "no column holds times"
    column = profile.column(given)
    return UsageError(
        f"`{given}` cannot be the event time",
        why=f"its values are {column.file_type}, and not all of them are times",
        fix=f"{others}; or --event-time {RECORD_TIME} for the time of the record",
    )


@dataclass(frozen=True)
class Draft:
    """What the manifest says, before it is written."""

    name: str
    profile: Profile
    event_time: str
    other_times: tuple[str, ...]
    key: Key

    @property
    def columns(self) -> tuple[ColumnProfile, ...]:
        """The event time is a time in bronze, whatever it loses by that."""
        return tuple(
            _as_event_time(column) if column.name == self.event_time else column
            for column in self.profile.columns
        )

    @property
    def ts_format(self) -> str:
        times = [c for c in self.columns if c.bronze_type.startswith("TIMESTAMP")]
        cut = any(c.beyond for c in times)
        return time_pattern((written_time(c) for c in times), nanoseconds=cut)

    @property
    def silver_names(self) -> tuple[str, ...]:
        return plain_names((c.name for c in self.profile.columns), _RESERVED)

    @property
    def surrogate_key_name(self) -> str:
        stem = snake_case(self.name)
        return free_name(set(self.silver_names), f"{stem}_id", f"{stem}_key", f"{stem}_row_id")

    @property
    def partition_date_col(self) -> str:
        wish = "received_date" if self.event_time == RECORD_TIME else "event_date"
        return free_name({*self.silver_names, self.surrogate_key_name}, wish, "partition_date")

    @property
    def key_field(self) -> str | None:
        """The part of the key that spreads records best over partitions."""
        parts = [self.profile.column(name) for name in self.key.columns]
        plain = [c for c in parts if c.kind in ("text", "whole") and c.distinct > 1 and not c.time]
        return max(plain, key=lambda c: (-c.nulls, c.distinct)).name if plain else None


def _as_event_time(column: ColumnProfile) -> ColumnProfile:
    if column.bronze_type.startswith("TIMESTAMP"):
        return column
    zoned = "TIMESTAMP_LTZ" if written_time(column).zoned else "TIMESTAMP"
    return replace(column, bronze_type=f"{zoned}({3 if column.kind == 'date' else 6})")


_OR_RECORD_TIME = f" Or --event-time {RECORD_TIME} for the time of the record."


@dataclass(frozen=True)
class Wishes:
    """What the user decides; the rest is found out. `rows` is how many are looked at, 0 all."""

    name: str
    file: Path
    event_time: str | None = None
    key: tuple[str, ...] = ()
    rows: int | None = None


class Watcher(Protocol):
    """Sees how far the looking is."""

    def begin(self, words: str, total: int | None) -> None: ...

    def advance(self, rows: int) -> None: ...


class Nobody:
    """Watches nothing."""

    def begin(self, words: str, total: int | None) -> None: ...

    def advance(self, rows: int) -> None: ...


def _require_names(wishes: Wishes, names: Sequence[str]) -> None:
    """The file's schema tells at once which columns there are; its rows may take minutes."""
    time = wishes.event_time
    wanted = {**dict.fromkeys(wishes.key, ""), **({time: _OR_RECORD_TIME} if time else {})}
    for given, otherwise in wanted.items():
        if given not in names and (given, time) != (RECORD_TIME, RECORD_TIME):
            raise UsageError(
                f"the file has no column `{given}`",
                why=f"its columns: {', '.join(names)}",
                fix=suggestion(given, names, "columns") + otherwise,
            )


def draw_up(wishes: Wishes, watcher: Watcher | None = None) -> Draft:
    """Look at the file and decide on types, event time and key."""
    watcher = watcher or Nobody()
    with open_parquet(wishes.file, "--from") as parquet:
        schema, total = parquet.schema_arrow, parquet.metadata.num_rows
    require_columns(str(wishes.file), schema)
    _require_names(wishes, schema.names)
    most = most_rows(len(schema)) if wishes.rows is None else wishes.rows or total
    with open_database(wishes.file) as database:
        rows = some_rows(wishes.file, most)
        watcher.begin("rows looked at", rows.limit)
        profile = scan(database, rows, schema, watcher.advance)
        event_time, others = choose_event_time(profile, wishes.event_time)
        watcher.begin("rows held against keys", None)
        search = Search(database, all_rows(wishes.file), profile, watcher.advance)
        key = given_key(search, wishes.key) if wishes.key else find_key(search, event_time)
    return Draft(wishes.name, profile, event_time, others, key)
