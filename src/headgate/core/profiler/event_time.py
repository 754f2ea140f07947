"""Which column is the event time, and which others could be."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headgate.core.profiler.names import snake_case
from headgate.core.profiler.profile_model import ColumnProfile, Profile
from headgate.declarations.spec_columns import RECORD_TIME
from headgate.errors import UsageError

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
        key=lambda column: _unlikeliness(column, profile.looked.rows),
    )
    names = tuple(column.name for column in moments)
    chosen = given or next((c.name for c in moments if not _mostly_null(c, profile)), RECORD_TIME)
    if given and given not in (*names, RECORD_TIME):
        raise _not_a_time(given, profile, names)
    return chosen, tuple(name for name in names if name != chosen)


def _mostly_null(column: ColumnProfile, profile: Profile) -> bool:
    return 2 * column.nulls > profile.looked.rows


def _unlikeliness(column: ColumnProfile, rows: int) -> tuple[bool, bool, int, float]:
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
