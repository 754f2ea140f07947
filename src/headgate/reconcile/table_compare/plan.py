"""The plan of a comparison of two tables: which columns, in which common form, with which tolerance; all faults at once.

Columns are always compared by value, never through a type that loses some. Equal are: NULL and NULL, NaN and NaN,
-0.0 and 0.0, 1.5 and 1.50, the same moment at any precision. Unequal are NULL and anything else, and two texts that
differ in any byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

from headgate.conditions.literals import spark_identifier
from headgate.declarations.errors import Refusal, suggestion
from headgate.errors import UsageError

Tolerance = Decimal | timedelta
MATCH, MISMATCH = "MATCH", "MISMATCH"
MISSING_CLOUD, MISSING_ONPREM = "MISSING_CLOUD", "MISSING_ONPREM"
STATUSES = (MATCH, MISMATCH, MISSING_CLOUD, MISSING_ONPREM)
SIDES = ("onprem", "cloud")


@dataclass(frozen=True)
class Column:
    """A column as Spark describes it: its name and its type in lower case, as `decimal(12,2)`."""

    name: str
    type: str


@dataclass(frozen=True)
class Table:
    """One side: what a person calls it, what stands behind FROM, its columns in their order."""

    name: str
    source: str
    columns: tuple[Column, ...]

    @property
    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.columns}


@dataclass(frozen=True)
class Asked:
    """How the tables are to be compared; without a key they are two multisets of rows.

    Names are those of the left table; `renamed` gives the right table's where it has another.
    """

    key: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict[str, Tolerance])
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Compared:
    """A column that both sides have, each side's expression in the type that is compared."""

    name: str
    type: str
    onprem: str
    cloud: str
    tolerance: Tolerance | None = None

    def of(self, side: str) -> str:
        return self.onprem if side == "onprem" else self.cloud


@dataclass(frozen=True)
class Unlike:
    """A column whose two types cannot be compared."""

    name: str
    onprem: str
    cloud: str


@dataclass(frozen=True)
class Plan:
    """What will be compared, and what cannot be; a difference of columns is a difference too."""

    onprem: Table
    cloud: Table
    key: tuple[Compared, ...]
    columns: tuple[Compared, ...]
    only_onprem: tuple[str, ...]
    only_cloud: tuple[str, ...]
    unlike: tuple[Unlike, ...]
    hidden: frozenset[str]
    notes: tuple[str, ...]

    @property
    def same_columns(self) -> bool:
        return not (self.only_onprem or self.only_cloud or self.unlike)

    def common_type(self, name: str) -> str:
        return next(each.type for each in (*self.key, *self.columns) if each.name == name)

    def table(self, side: str) -> Table:
        return self.onprem if side == "onprem" else self.cloud


MAX_DIGITS = 38
_INTEGRAL = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_REAL = frozenset({"float", "double"})
_MOMENTS = frozenset({"timestamp", "timestamp_ntz"})
_PLAIN = frozenset({"boolean", "date", "string", "binary", "timestamp", "timestamp_ntz", "time"})
_TEXTS = re.compile(r"(?:char|varchar)\(\d+\)|string(?: collate \w+)?")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
TWO_PARTS = "struct<whole:decimal(38,0),rest:decimal(38,38)>"
_PARTS = (
    "IF({0} IS NULL, NULL, named_struct("
    "'whole', CAST(floor({0}) AS DECIMAL(38, 0)), 'rest', CAST({0} % 1 AS DECIMAL(38, 38))))"
)
_HASHED = {
    **{name: name for name in ("string", "boolean", "date", "binary", "double")},
    **dict.fromkeys(_INTEGRAL, "integer"),
    **dict.fromkeys(_MOMENTS, "timestamp(us)"),
    "float": "double",
}
_ENTRIES = "array_sort(map_entries({}))"
# Of a decimal with more digits behind the point the hash contract has no exact form.
MOST_SCALE = 30
UTC_WORDS = "a time without a zone is taken as UTC"
FLOAT_WORDS = "a float is compared as the double that it exactly is"


@dataclass(frozen=True)
class Form:
    """How both sides of a column are brought to one type; `{}` stands for the column."""

    type: str
    onprem: str = "{}"
    cloud: str = "{}"
    note: str = ""


def common_form(onprem: str, cloud: str) -> Form | None:
    """The form in which values of these two types are compared; None where there is none."""
    left, right = _read(onprem), _read(cloud)
    if _digits(left) and _digits(right):
        return _numbers(left, right)
    if {left, right} <= _REAL:
        return Form(left) if left == right else _cast("double", FLOAT_WORDS)
    if frozenset({left, right}) == _MOMENTS:
        # The script sets the session's zone to UTC, so that the cast means just this.
        return _cast("timestamp", UTC_WORDS)
    if left == right and left in _PLAIN:
        return Form(left)
    return _nested(left) if left == right else None


def hash_type(type_: str) -> str | None:
    """The type of the hash contract that keeps all of these values apart; None where none does."""
    if type_ in _HASHED:
        return _HASHED[type_]
    digits = _digits(type_)
    if digits:
        return "decimal" if digits[1] <= MOST_SCALE else None
    inner = hash_type(type_[6:-1]) if type_.startswith("array<") else None
    return f"list<{inner}>" if inner else None


def _read(type_: str) -> str:
    plain = type_.lower().replace(", ", ",").strip()
    return "string" if _TEXTS.fullmatch(plain) else plain


def _digits(type_: str) -> tuple[int, int] | None:
    """Digits before and after the point."""
    if type_ in _INTEGRAL:
        return _INTEGRAL[type_], 0
    found = _DECIMAL.fullmatch(type_)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else None


def _numbers(left: str, right: str) -> Form:
    if left == right:
        return Form(left)
    if left in _INTEGRAL and right in _INTEGRAL:
        return _cast("bigint")
    a, b = _digits(left) or (0, 0), _digits(right) or (0, 0)
    whole, scale = max(a[0], b[0]), max(a[1], b[1])
    if whole + scale <= MAX_DIGITS:
        return _cast(f"decimal({whole + scale},{scale})")
    # No DECIMAL holds both, so what stands before and after the point is compared apart.
    return Form(TWO_PARTS, _PARTS, _PARTS)


def _cast(type_: str, note: str = "") -> Form:
    cast = f"CAST({{}} AS {type_.upper().replace(',', ', ')})"
    return Form(type_, cast, cast, note)


def _nested(type_: str) -> Form | None:
    """Collections of one type; a map is compared by its entries in the order of their keys."""
    if type_.startswith("map<"):
        inner = type_[4:]
        odd = "map<" in inner or "variant" in inner
        return None if odd else Form(f"array<entries of {type_}>", _ENTRIES, _ENTRIES)
    if not type_.startswith(("array<", "struct<")) or "map<" in type_ or "variant" in type_:
        return None
    return Form(type_)


# Names that the scripts use beside those of the columns.
OURS = frozenset({"dq_present", "dq_copies", "dq_together", "dq_side"})
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


def plan(onprem: Table, cloud: Table, asked: Asked) -> Plan:
    """What will be compared; raises UsageError for what cannot be done as asked."""
    if faults := [*_faults(onprem, cloud, asked)]:
        raise UsageError(
            f"{onprem.name} and {cloud.name} cannot be compared so", why="\n".join(faults)
        )
    shared = [name for name in _wanted(onprem, asked) if _right(asked, name) in cloud.types]
    forms = {name: _form(onprem, cloud, asked, name) for name in shared}
    found = {name: form for name, form in forms.items() if form is not None}
    names = {name: _compared(asked, name, form) for name, form in found.items()}
    return Plan(
        onprem=onprem,
        cloud=cloud,
        key=tuple(names[name] for name in asked.key),
        columns=tuple(each for name, each in names.items() if name not in asked.key),
        only_onprem=tuple(n for n in _wanted(onprem, asked) if n not in forms),
        only_cloud=_only_cloud(cloud, asked, shared),
        unlike=tuple(_unlike(onprem, cloud, asked, n) for n, form in forms.items() if not form),
        hidden=asked.hidden,
        notes=tuple(_notes(found)),
    )


def _wanted(table: Table, asked: Asked) -> list[str]:
    return [column.name for column in table.columns if column.name not in asked.ignored]


def _right(asked: Asked, name: str) -> str:
    return asked.renamed.get(name, name)


def _form(onprem: Table, cloud: Table, asked: Asked, name: str) -> Form | None:
    return common_form(onprem.types[name], cloud.types[_right(asked, name)])


def _compared(asked: Asked, name: str, form: Form) -> Compared:
    left, right = spark_identifier(name), spark_identifier(_right(asked, name))
    tolerance = asked.tolerances.get(name)
    forms = form.onprem.format(left), form.cloud.format(right)
    return Compared(name, form.type, *forms, tolerance)


def _only_cloud(cloud: Table, asked: Asked, shared: Iterable[str]) -> tuple[str, ...]:
    taken = {_right(asked, name) for name in shared}
    return tuple(name for name in _wanted(cloud, asked) if name not in taken)


def _unlike(onprem: Table, cloud: Table, asked: Asked, name: str) -> Unlike:
    return Unlike(name, onprem.types[name], cloud.types[_right(asked, name)])


def _notes(forms: Mapping[str, Form]) -> Iterator[str]:
    for words in dict.fromkeys(form.note for form in forms.values() if form.note):
        names = [name for name, form in forms.items() if form.note == words]
        yield f"{', '.join(names)}: {words}"


def _faults(onprem: Table, cloud: Table, asked: Asked) -> Iterator[str]:
    yield from _nameless(asked, onprem, cloud)
    yield from _unknown(asked.key, onprem.types, "key")
    yield from _unknown([_right(asked, n) for n in asked.key], cloud.types, "key")
    yield from _unknown(asked.ignored, {**onprem.types, **cloud.types}, "ignored column")
    yield from _unknown(asked.renamed, onprem.types, "renamed column")
    yield from _unknown(asked.renamed.values(), cloud.types, "renamed column")
    yield from _unknown(asked.tolerances, onprem.types, "tolerance")
    yield from _unknown(asked.hidden, {**onprem.types, **cloud.types}, "masked column")
    yield from _keys(onprem, cloud, asked)
    yield from _tolerances(onprem, asked)
    yield from _apart(onprem, cloud, asked)


def _nameless(asked: Asked, *tables: Table) -> Iterator[str]:
    for table in tables:
        for name in _wanted(table, asked):
            if name in OURS:
                yield f"{table.name}: the scripts use the name `{name}` themselves; ignore it."
            try:
                spark_identifier(name)
            except Refusal as refused:
                yield f"{table.name}: {refused.what}. {refused.fix}"


def _unknown(names: Iterable[str], known: Mapping[str, str], what: str) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"{what} `{name}` is not there. {suggestion(name, known, 'columns')}"


def _keys(onprem: Table, cloud: Table, asked: Asked) -> Iterator[str]:
    for name in asked.key:
        right = _right(asked, name)
        if name not in onprem.types or right not in cloud.types:
            continue
        if name in asked.ignored:
            yield f"key `{name}` cannot be ignored."
        elif name in asked.tolerances:
            yield f"key `{name}` cannot have a tolerance: keys are equal or not."
        elif _form(onprem, cloud, asked, name) is None:
            kinds = f"{onprem.types[name]} and {cloud.types[right]}"
            yield f"key `{name}` is {kinds}, which have no common form."


def _tolerances(onprem: Table, asked: Asked) -> Iterator[str]:
    if asked.tolerances and not asked.key:
        yield "a tolerance needs a key: without one rows are equal or not."
    for name, tolerance in asked.tolerances.items():
        type_ = onprem.types.get(name, "")
        timely = type_.startswith(("timestamp", "date"))
        if type_ and isinstance(tolerance, timedelta) != timely:
            given = "a length of time as 5 SECONDS" if timely else "a number as 0.01"
            yield f"the tolerance of `{name}`, a column of type {type_}, must be {given}."
        elif type_ and not timely and not type_.startswith(NUMBERS):
            yield f"`{name}` is {type_}: only numbers and times have a tolerance."


def _apart(onprem: Table, cloud: Table, asked: Asked) -> Iterator[str]:
    for name in asked.tolerances:
        if name in onprem.types and _right(asked, name) in cloud.types:
            form = _form(onprem, cloud, asked, name)
            if form is not None and form.type == TWO_PARTS:
                yield f"`{name}` has too many digits for a tolerance: no DECIMAL holds both sides."
