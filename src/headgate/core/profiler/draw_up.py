"""From a Parquet file to a draft of its manifest."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from headgate.core.profiler.database import open_database
from headgate.core.profiler.event_time import choose_event_time
from headgate.core.profiler.keys import Search, find_key, given_key
from headgate.core.profiler.kinds import require_columns
from headgate.core.profiler.names import free_name, plain_names, snake_case
from headgate.core.profiler.profile_model import ColumnProfile, Key, Profile
from headgate.core.profiler.profile_rows import all_rows, most_rows, open_parquet, some_rows
from headgate.core.profiler.profile_scan import scan
from headgate.core.profiler.texts import time_pattern, written_time
from headgate.declarations.refusal import suggestion
from headgate.declarations.spec_columns import RECORD_TIME, RESERVED_COLUMNS
from headgate.errors import UsageError
from headgate.pipeline.compile.compile_silver import OWN_NAMES

_RESERVED = frozenset(RESERVED_COLUMNS) | OWN_NAMES


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
