"""Surveys a Parquet file: profile, spread of numbers, order of times, common patterns of text.

Every proposed rule is counted on the rows that suggested it.
"""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast

from headgate.core.profiler.draft import Draft, Nobody, Watcher, Wishes, draw_up
from headgate.core.profiler.model import ColumnProfile
from headgate.core.profiler.rows import Database, Rows, most_rows, open_database, some_rows
from headgate.declarations.columns import RECORD_TIME
from headgate.declarations.errors import suggestion
from headgate.errors import UsageError
from headgate.quality.suggest.proposals import (
    Facts,
    Numbers,
    Order,
    Place,
    Suggested,
    Suggestion,
    is_personal,
    moment,
    proposals,
)

FIRST_TEXTS = 5_000
MOST_TIMES = 5
# Shares of rows between which nearly all values are.
LOW, HIGH = 0.001, 0.999


@dataclass(frozen=True)
class RuleWishes:
    """What the user, or the dataset's manifest, decides; the rest is found out."""

    table: str
    file: Path
    topic: str
    dlq_topic: str | None = None
    key: tuple[str, ...] = ()
    pk: str | None = None
    event_time: str | None = None
    sensitive: tuple[str, ...] = ()
    rows: int | None = None


def suggest(wishes: RuleWishes, watcher: Watcher | None = None) -> Suggested:
    """Look at the file and propose rules for rows like these."""
    watcher = watcher or Nobody()
    look = Wishes(wishes.table, wishes.file, wishes.event_time, wishes.key, wishes.rows)
    draft = draw_up(look, watcher)
    place = _place(wishes, draft)
    columns = len(draft.profile.columns)
    rows = some_rows(wishes.file, wishes.rows or most_rows(columns))
    with open_database(wishes.file) as database:
        watcher.begin("rows looked at again", None)
        facts = _facts(database, rows, draft, place, watcher.advance)
        found = proposals(draft, place, facts)
        watcher.begin("rows held against rules", None)
        measured = _measured(database, rows, draft, found, watcher.advance)
    return Suggested(draft, place, measured)


def _place(wishes: RuleWishes, draft: Draft) -> Place:
    names = [column.name for column in draft.profile.columns]
    for name in wishes.sensitive:
        if name not in names:
            raise UsageError(
                f"the file has no column `{name}`", fix=suggestion(name, names, "columns")
            )
    return Place(
        table=wishes.table,
        topic=wishes.topic,
        dlq_topic=wishes.dlq_topic,
        pk=wishes.pk or _pk(draft),
        event_time=None if draft.event_time == RECORD_TIME else draft.event_time,
        sensitive=frozenset((*wishes.sensitive, *filter(is_personal, names))),
    )


def _pk(draft: Draft) -> str:
    """A rule table's key is one column: of several, the one that tells most rows apart."""
    if len(draft.key.columns) == 1:
        return draft.key.columns[0]
    return draft.key_field or draft.key.columns[0]


def _facts(
    database: Database, rows: Rows, draft: Draft, place: Place, advance: Callable[[int], None]
) -> Facts:
    return Facts(
        numbers=_numbers(database, rows, draft, advance),
        orders=_orders(database, rows, draft, advance),
        forms=_forms(rows, draft, place),
    )


def _numbers(
    database: Database, rows: Rows, draft: Draft, advance: Callable[[int], None]
) -> dict[str, Numbers]:
    """Those columns of numbers that are not all null."""
    chosen = [
        (at, column)
        for at, column in enumerate(draft.profile.columns)
        if column.kind in ("whole", "real", "decimal") and column.low is not None
    ]
    asked = [fact for at, _ in chosen for fact in _number_facts(f"c{at}::DOUBLE")]
    if not asked or not rows.limit:
        return {}
    answer = iter(database.one_row(rows.reader([at for at, _ in chosen], advance), asked))
    return {
        column.name: Numbers(*cast("list[Any]", [next(answer) for _ in range(3)]))
        for _, column in chosen
    }


def _number_facts(value: str) -> tuple[str, ...]:
    finite = f"FILTER (isfinite({value}))"
    return (
        f"count_if({value} < 0)",
        *(f"approx_quantile({value}, {share}) {finite}" for share in (LOW, HIGH)),
    )


def _orders(
    database: Database, rows: Rows, draft: Draft, advance: Callable[[int], None]
) -> tuple[Order, ...]:
    known = [column.name for column in draft.profile.columns]
    moments = [c for c in draft.profile.columns if c.is_moment][:MOST_TIMES]
    times = [column.name for column in moments]
    pairs = [(a.name, b.name) for a, b in combinations(moments, 2) if _comparable(a, b, draft)]
    if not pairs or not rows.limit:
        return ()
    asked = [
        f"count_if({moment(draft, one)} {sign} {moment(draft, other)})"
        for one, other in pairs
        for sign in (">", "<")
    ]
    reader = rows.reader([known.index(name) for name in times], advance)
    answer = iter(cast("tuple[int, ...]", database.one_row(reader, asked)))
    return tuple(Order(one, other, next(answer), next(answer)) for one, other in pairs)


def _comparable(one: ColumnProfile, other: ColumnProfile, draft: Draft) -> bool:
    """A date has no order beside a time; the event time is a time, whatever the file holds."""
    return (one.kind == "time" or one.name == draft.event_time) == (
        other.kind == "time" or other.name == draft.event_time
    )


def _forms(rows: Rows, draft: Draft, place: Place) -> dict[str, str]:
    """Patterns of the first texts of columns that hold any text at all."""
    chosen = [
        (at, column.name)
        for at, column in enumerate(draft.profile.columns)
        if column.kind == "text" and column.time is None and column.name not in place.sensitive
    ]
    if not chosen:
        return {}
    head = replace(rows, limit=min(rows.limit, FIRST_TEXTS))
    table = head.reader([at for at, _ in chosen], lambda _: None).read_all()
    found = {
        name: form_of([text for text in column.to_pylist() if text is not None])
        for (_, name), column in zip(chosen, table.columns, strict=True)
    }
    return {name: form for name, form in found.items() if form}


def _measured(
    database: Database,
    rows: Rows,
    draft: Draft,
    found: Sequence[Suggestion],
    advance: Callable[[int], None],
) -> tuple[Suggestion, ...]:
    """How many of the rows looked at each would flag."""
    asked = [one for one in found if one.flags]
    if not asked or not rows.limit:
        return tuple(found)
    columns = range(len(draft.profile.columns))
    answer = database.one_row(
        rows.reader(columns, advance), [f"count_if({one.flags})" for one in asked]
    )
    counts = dict(zip((one.name for one in asked), cast("tuple[int, ...]", answer), strict=True))
    return tuple(_kept(found, counts))


def _kept(found: Sequence[Suggestion], counts: dict[str, int]) -> Iterator[Suggestion]:
    """A form that many texts do not have was an accident of the first ones."""
    for one in found:
        rows = counts.get(one.name, one.rows)
        if one.settings.get("type") == "regex" and rows:
            continue
        yield replace(one, rows=rows)


LONGEST = 64
MOST_PARTS = 12
# Of fewer texts the form may be an accident.
ENOUGH = 30
_PARTS = re.compile(r"[0-9]+|[a-z]+|[A-Z]+|.", re.DOTALL)
_WHOLE = (
    ("[0-9a-f]", re.compile(r"[0-9a-f]+")),
    ("[0-9A-F]", re.compile(r"[0-9A-F]+")),
    ("[0-9A-Z]", re.compile(r"[0-9A-Z]+")),
    ("[0-9A-Za-z]", re.compile(r"[0-9A-Za-z]+")),
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True)
class _Part:
    kind: str
    length: int


def form_of(texts: Sequence[str]) -> str | None:
    """A pattern that all of them match and few others would; None when they are too different."""
    known = [text for text in texts if text]
    if len(known) < ENOUGH or len(known) < len(texts) or max(map(len, known)) > LONGEST:
        return None
    if all(_UUID.fullmatch(text) for text in known):
        return UUID
    return _by_parts(known) or _one_class(known)


def _by_parts(texts: Sequence[str]) -> str | None:
    """Runs of digits and letters with the same signs between them."""
    split = [_parts(text) for text in texts]
    first = [part.kind for part in split[0]]
    if len(first) > MOST_PARTS or any([p.kind for p in parts] != first for parts in split):
        return None
    if not any(kind.startswith("[") for kind in first):
        return None
    pattern = ""
    for at, kind in enumerate(first):
        lengths = [parts[at].length for parts in split]
        pattern += kind + (_times(min(lengths), max(lengths)) if kind.startswith("[") else "")
    return pattern


def _parts(text: str) -> list[_Part]:
    return [_Part(_kind(found), len(found)) for found in _PARTS.findall(text)]


def _kind(run: str) -> str:
    if run.isascii():
        if run.isdigit():
            return "[0-9]"
        if run.isalpha():
            return "[a-z]" if run.islower() else "[A-Z]"
    return re.escape(run)


def _one_class(texts: Sequence[str]) -> str | None:
    """Letters and digits mixed, all of one length: codes and hashes."""
    lengths = {len(text) for text in texts}
    if len(lengths) > 1:
        return None
    found = (cls for cls, pattern in _WHOLE if all(pattern.fullmatch(text) for text in texts))
    chosen = next(found, None)
    return f"{chosen}{{{lengths.pop()}}}" if chosen else None


def _times(least: int, most: int) -> str:
    if least == most:
        return "" if least == 1 else f"{{{least}}}"
    return f"{{{least},{most}}}"
