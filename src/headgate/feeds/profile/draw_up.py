"""From a Parquet file to a draft of its manifest."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headgate.feeds.profile.database import open_database
from headgate.feeds.profile.draft import Draft
from headgate.feeds.profile.event_time import choose_event_time
from headgate.feeds.profile.keys import Search, find_key, given_key
from headgate.feeds.profile.kinds import require_columns
from headgate.feeds.profile.rows import all_rows, most_rows, some_rows
from headgate.feeds.profile.scan import scan
from headgate.feeds.source import open_parquet


@dataclass(frozen=True)
class Wishes:
    """What the user decides; the rest is found out. `rows` is how many are looked at, 0 all."""

    name: str
    file: Path
    event_time: str | None = None
    key: tuple[str, ...] = ()
    rows: int | None = None


def draw_up(wishes: Wishes, advance: Callable[[int], None]) -> Draft:
    """Look at the file and decide on types, event time and key."""
    with open_parquet(wishes.file, "--from") as parquet:
        schema, total = parquet.schema_arrow, parquet.metadata.num_rows
    require_columns(str(wishes.file), schema)
    most = most_rows(len(schema)) if wishes.rows is None else wishes.rows or total
    with open_database(wishes.file) as database:
        profile = scan(database, some_rows(wishes.file, most), schema, advance)
        event_time, others = choose_event_time(profile, wishes.event_time)
        search = Search(database, all_rows(wishes.file), profile, lambda _: None)
        key = given_key(search, wishes.key) if wishes.key else find_key(search, event_time)
    return Draft(wishes.name, profile, event_time, others, key)
