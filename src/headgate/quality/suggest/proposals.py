"""Proposes rules from the figures of a file, each with its reason. Pure; a person decides which to keep."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from headgate.conditions.literals import spark_identifier
from headgate.core.profiler.draft import Draft
from headgate.core.profiler.model import ColumnProfile, Profile, free_name, snake_case
from headgate.declarations.types import parse_type

Scalar: TypeAlias = str | int | float | bool
Setting: TypeAlias = Scalar | tuple[Scalar, ...]
Part: TypeAlias = Literal["rules", "aggregates"]


@dataclass(frozen=True)
class Numbers:
    """How a column's numbers are spread."""

    below_zero: int
    low: float
    high: float


@dataclass(frozen=True)
class Order:
    """Two columns of times: how often the first is after the second, and before it."""

    first: str
    second: str
    after: int
    before: int


@dataclass(frozen=True)
class Facts:
    """What a second look found; `forms` are patterns of text by column."""

    numbers: Mapping[str, Numbers] = field(default_factory=dict[str, Numbers])
    orders: tuple[Order, ...] = ()
    forms: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Suggestion:
    """One proposed rule or aggregate.

    `flags` is the condition that DuckDB counts over the rows looked at; `rows` is what it counted,
    or None where a file cannot tell. One that is `off` is written as a comment.
    """

    name: str
    settings: Mapping[str, Setting]
    why: str
    part: Part = "rules"
    flags: str = ""
    rows: int | None = None
    off: bool = False


@dataclass(frozen=True)
class Place:
    """Where the rows come from and what the table is called."""

    table: str
    topic: str
    dlq_topic: str | None
    pk: str
    event_time: str | None
    sensitive: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Suggested:
    """All that was found: the draft it stands on, where it goes, and the rules."""

    draft: Draft
    place: Place
    found: tuple[Suggestion, ...]

    def of(self, part: Part) -> tuple[Suggestion, ...]:
        return tuple(one for one in self.found if one.part == part)

    @property
    def columns(self) -> tuple[ColumnProfile, ...]:
        return self.draft.profile.columns


FEW = 12
ENOUGH_ROWS = 100
LONGEST_VALUE = 40
# A share of rows up to this is an exception, beyond it it is how the data is.
RARE = 0.05
DAY = 86_400
_IDENTIFIER = re.compile(r"(^|_)(id|ids|key|uuid|guid|code|no|nr|num|number|ref|zip)$")
_LATITUDE = re.compile(r"(^|_)lat(itude)?($|_)")
_LONGITUDE = re.compile(r"(^|_)(lon|lng|long|longitude)($|_)")
_PERSONAL = re.compile(
    r"(^|_)(e?mail|phone|mobile|fax|ssn|iban|card|passport|birth|birthday|dob|password|secret|token"
    r"|first_name|last_name|full_name|surname|street|address|ip)($|_)"
)
_LIMITS = {"INT": 2**31 - 1, "BIGINT": 2**53}


def is_personal(name: str) -> bool:
    """Whether a column's name says that it is about a person."""
    return bool(_PERSONAL.search(snake_case(name)))


def proposals(draft: Draft, place: Place, facts: Facts) -> tuple[Suggestion, ...]:
    """What the profile suggests, each with a name of its own."""
    found = [
        *_presence(draft, place),
        *_uniqueness(draft, place),
        *_times(draft, place, facts),
        *(one for column in draft.profile.columns for one in _values(column, draft, place, facts)),
        *_shares(draft.profile),
        *_stream(draft, place),
    ]
    return _named(found)


def _named(found: list[Suggestion]) -> tuple[Suggestion, ...]:
    taken, named = set[str](), list[Suggestion]()
    for one in found:
        named.append(replace(one, name=free_name(taken, snake_case(one.name))))
        taken.add(named[-1].name)
    return tuple(named)


def at(draft: Draft, name: str) -> str:
    """The column as the look at the file knows it."""
    return f"c{[column.name for column in draft.profile.columns].index(name)}"


def moment(draft: Draft, name: str) -> str:
    """A column of times, whatever the file holds them as."""
    return f"try_cast({at(draft, name)} AS TIMESTAMP)"


def _presence(draft: Draft, place: Place) -> Iterator[Suggestion]:
    rows = draft.profile.looked.rows
    time = None if place.event_time == place.pk else place.event_time
    # No rule sees a row without its key: that record is a dead letter.
    placed = (place.pk, time)
    always = [c.name for c in draft.profile.columns if not c.nulls and c.name not in placed]
    if time:
        yield Suggestion(
            "time_missing",
            {"type": "required", "field": time, "severity": "ERROR"},
            "a row without its time counts into the window in which its record came",
            flags=f"{at(draft, time)} IS NULL",
        )
    if always and rows >= ENOUGH_ROWS:
        yield Suggestion(
            "field_missing",
            {"type": "required", "fields": tuple(always), "severity": "WARN"},
            f"these are never missing in {rows:,} rows",
            flags=" OR ".join(f"{at(draft, name)} IS NULL" for name in always),
        )


def _uniqueness(draft: Draft, place: Place) -> Iterator[Suggestion]:
    key, of = draft.key, draft.profile.looked.of
    if not of or key.sharing > RARE * of:
        return
    why = (
        f"all {of:,} rows differ in it"
        if key.unique
        else f"{key.sharing:,} of {of:,} rows repeat it"
    )
    yield Suggestion(
        "seen_before",
        {"type": "unique", "fields": key.columns, "horizon": "1 DAY", "severity": "WARN"},
        f"{why}; looked for within a day here, at any distance in the file",
        rows=key.sharing,
    )


def _times(draft: Draft, place: Place, facts: Facts) -> Iterator[Suggestion]:
    if place.event_time:
        name = place.event_time
        yield Suggestion(
            f"{name}_in_the_future",
            {"when": f"{spark_identifier(name)} > {{batch_time}}", "severity": "WARN"},
            "an event cannot be later than the batch that reads it",
            flags=f"{moment(draft, name)} > now()::TIMESTAMP",
        )
    for order in facts.orders:
        yield from _order(draft, order)


def _order(draft: Draft, order: Order) -> Iterator[Suggestion]:
    """The one of two times that is nearly always the earlier."""
    rows = max(1, draft.profile.looked.rows)
    pairs = ((order.first, order.second, order.after), (order.second, order.first, order.before))
    early, late, against = min(pairs, key=lambda pair: pair[2])
    if order.after == order.before or against > RARE * rows:
        return
    yield Suggestion(
        f"{late}_before_{early}",
        {"type": "cross_field", "left": early, "op": "<=", "right": late, "severity": "WARN"},
        f"{early} is not after {late} in {rows - against:,} of {rows:,} rows",
        flags=f"{moment(draft, early)} > {moment(draft, late)}",
    )


def _values(
    column: ColumnProfile, draft: Draft, place: Place, facts: Facts
) -> Iterator[Suggestion]:
    """Of sensitive columns nothing is proposed that would write their values down."""
    if column.name in place.sensitive or draft.profile.looked.rows < ENOUGH_ROWS:
        return
    if _is_list(column, draft.profile):
        yield _list(column, draft)
    elif column.name in facts.numbers and column.kind in ("whole", "real", "decimal"):
        yield from _range(column, draft, facts.numbers[column.name])
    elif column.name in facts.forms:
        yield _form(column, draft, facts.forms[column.name])


def _is_list(column: ColumnProfile, profile: Profile) -> bool:
    known = [v for v in column.values if isinstance(v, (str, int)) and not isinstance(v, bool)]
    few = 1 < len(known) == column.distinct <= FEW and column.kind in ("text", "whole")
    return (
        few and all(_is_plain(value) for value in known) and 20 * len(known) <= profile.looked.rows
    )


def _is_plain(value: str | int) -> bool:
    return isinstance(value, int) or (len(value) <= LONGEST_VALUE and value.isprintable())


def _list(column: ColumnProfile, draft: Draft) -> Suggestion:
    values = tuple(value for value in column.values if isinstance(value, (str, int)))
    options = ", ".join(_duck(value) for value in values)
    return Suggestion(
        f"{column.name}_unknown",
        {"type": "lookup_in", "field": column.name, "values": values, "severity": "WARN"},
        f"{len(values)} different values in {draft.profile.looked.rows:,} rows",
        flags=f"{at(draft, column.name)} NOT IN ({options})",
    )


def _duck(value: str | int) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _range(column: ColumnProfile, draft: Draft, numbers: Numbers) -> Iterator[Suggestion]:
    name = snake_case(column.name)
    if _IDENTIFIER.search(name) or column.low is None or column.high is None:
        return
    low, high = float(column.low), float(column.high)
    least, most, why = _limits(column, numbers, draft.profile.looked.rows, name)
    given = {"min": least, "max": most}
    limits: dict[str, Scalar] = {k: v for k, v in given.items() if v is not None}
    if not limits:
        return
    place = at(draft, column.name)
    parts = [f"{place} {'<' if k == 'min' else '>'} {v}" for k, v in limits.items()]
    flags = " OR ".join(parts)
    yield Suggestion(
        f"{column.name}_out_of_range",
        {"type": "range", "field": column.name, **limits, "severity": "WARN"},
        f"from {low:g} to {high:g}, nearly all between {numbers.low:g} and {numbers.high:g}: {why}",
        flags=f"isfinite({place}::DOUBLE) AND ({flags})" if column.kind == "real" else flags,
    )


def _limits(
    column: ColumnProfile, numbers: Numbers, rows: int, name: str
) -> tuple[int | float | None, int | float | None, str]:
    low, high = float(column.low or 0), float(column.high or 0)
    if _LATITUDE.search(name) and low >= -90 and high <= 90:
        return -90, 90, "a latitude"
    if _LONGITUDE.search(name) and low >= -180 and high <= 180:
        return -180, 180, "a longitude"
    if low >= 0 or numbers.below_zero <= RARE * rows:
        least, why = 0.0, "not below zero" if low >= 0 else "below zero is an exception"
    else:
        least, why = -rounded_up(1.5 * -low), "half as much again as the least"
    far = high > 10 * max(numbers.high, 1)
    most = rounded_up(2 * numbers.high if far else 1.5 * high)
    why += f", {'twice nearly all' if far else 'half as much again as the greatest'}"
    return _fitting(column, least), _fitting(column, most), why


def rounded_up(value: float) -> float:
    """The next number of the form 1, 2 or 5 with zeros."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 2, 5, 10) if step * unit >= value * (1 - 1e-12))


def _fitting(column: ColumnProfile, limit: float) -> int | float | None:
    """The limit as the column's type can hold it; None where no value could pass it."""
    kind = parse_type(column.bronze_type)
    top = _LIMITS.get(kind.name, 2**53)
    if kind.name == "DECIMAL":
        top = 10 ** ((kind.precision or 0) - (kind.scale or 0)) - 1
    if abs(limit) >= top or (limit != 0 and abs(limit) < 1e-6):
        return None
    return int(limit) if limit.is_integer() else round(limit, 6)


def _form(column: ColumnProfile, draft: Draft, pattern: str) -> Suggestion:
    """Anchored: a rule looks for its pattern anywhere in the text."""
    return Suggestion(
        f"{column.name}_malformed",
        {"type": "regex", "field": column.name, "pattern": f"^{pattern}$", "severity": "WARN"},
        "the first texts all have this form",
        flags=f"NOT regexp_full_match({at(draft, column.name)}, {_duck(pattern)})",
    )


def _shares(profile: Profile) -> Iterator[Suggestion]:
    """How many may be missing, where some always are."""
    rows = profile.looked.rows
    for column in profile.columns:
        share = column.nulls / rows if rows else 0
        if 0 < share <= 0.5 and rows >= ENOUGH_ROWS:
            most = min(0.9, rounded_up(1.5 * share))
            yield Suggestion(
                f"{column.name}_often_missing",
                {
                    "measure": "null_rate",
                    "field": column.name,
                    "max": round(most, 6),
                    "severity": "WARN",
                },
                f"missing in {column.nulls:,} of {rows:,} rows ({100 * share:.2g}%)",
                part="aggregates",
            )


def _stream(draft: Draft, place: Place) -> Iterator[Suggestion]:
    """What a file cannot tell: how old rows are when they come, and how many come."""
    name = place.event_time
    if name:
        newest = "a time" if name in place.sensitive else draft.profile.column(name).high
        why = f"the newest in the file is {newest}; take the # away when rows come as they happen"
        yield Suggestion(
            f"{name}_too_old",
            {
                "type": "timestamp_freshness",
                "field": name,
                "max_age_seconds": DAY,
                "severity": "WARN",
            },
            why,
            off=True,
        )
        # What is measured of a sensitive column would be told to every sink.
        if name not in place.sensitive:
            yield Suggestion(
                f"{name}_stands_still",
                {"measure": "freshness", "field": name, "max": DAY, "severity": "WARN"},
                why,
                part="aggregates",
                off=True,
            )
    yield Suggestion(
        "fields_changed",
        {"type": "schema", "severity": "INFO"},
        "holds on rows that lack a declared field or bring another",
        off=True,
    )
    yield Suggestion(
        "few_rows",
        {"measure": "row_count", "min": 10, "severity": "WARN"},
        "a file has no windows: say how many rows one must have; one without any has no verdict",
        part="aggregates",
        off=True,
    )
