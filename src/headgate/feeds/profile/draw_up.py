"""From a Parquet file to a draft of its manifest."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headgate.errors import UsageError
from headgate.feeds.profile.database import open_database
from headgate.feeds.profile.draft import Draft
from headgate.feeds.profile.event_time import choose_event_time
from headgate.feeds.profile.keys import Search, find_key, given_key
from headgate.feeds.profile.kinds import require_columns
from headgate.feeds.profile.rows import all_rows, most_rows, some_rows
from headgate.feeds.profile.scan import scan
from headgate.feeds.source import open_parquet
from headgate.spec.dataset import RECORD_TIME
from headgate.spec.refusal import suggestion

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
