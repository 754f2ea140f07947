"""From a Parquet file to proposed rules, each measured on the rows that suggested it."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast

from headgate.core.profiler.database import Database, open_database
from headgate.core.profiler.draw_up import Draft, Nobody, Watcher, Wishes, draw_up
from headgate.core.profiler.profile_model import ColumnProfile
from headgate.core.profiler.profile_rows import Rows, most_rows, some_rows
from headgate.declarations.refusal import suggestion
from headgate.declarations.spec_columns import RECORD_TIME
from headgate.errors import UsageError
from headgate.quality.suggest.suggest_model import (
    Facts,
    Numbers,
    Order,
    Place,
    Suggested,
    Suggestion,
)
from headgate.quality.suggest.suggest_rules import is_personal, moment, proposals
from headgate.quality.suggest.suggest_shapes import form_of

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
