"""Terms of conditions, and sets of the values a term can have.

A term is a column or an expression taken as it stands; two expressions with the same text are the
same term. Its values are spans of ordered keys, with or without NULL. Terms are taken as
independent of each other, which can only allow more rows than there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, isinf, isnan
from typing import Any, TypeAlias

from headgate.conditions.ast import Arithmetic, Cast, Expr, Function, Literal, children
from headgate.conditions.functions import SIGNATURES
from headgate.conditions.literals import LiteralValue
from headgate.conditions.spark_sql import to_spark
from headgate.conditions.type_coercion import numeric_type
from headgate.declarations.types import DOUBLE, SqlType

# Keys of one term are of one kind and compare with each other; those of different terms never meet.
Key: TypeAlias = Any
# Between two keys: just before one (0) or just after it (1); -1 and 1 first are the ends of all.
Cut: TypeAlias = tuple[int, Key, int]
Span: TypeAlias = tuple[Cut, Cut]

LOWEST: Cut = (-1, 0, 0)
HIGHEST: Cut = (1, 0, 0)


def before(key: Key) -> Cut:
    return (0, key, 0)


def after(key: Key) -> Cut:
    return (0, key, 1)


def whole(cut: Cut) -> Cut:
    """The cut between whole numbers that divides them in the same way."""
    rank, key, side = cut
    if rank or (isinstance(key, int) and not side):
        return cut
    exact = Fraction(key)
    return before(floor(exact) + 1 if side else ceil(exact))


@dataclass(frozen=True)
class Values:
    """Spans in order and apart; `of` makes them so."""

    spans: tuple[Span, ...] = ()
    null: bool = False

    @classmethod
    def of(cls, spans: Iterable[Span], *, null: bool = False) -> Values:
        merged: list[Span] = []
        for low, high in sorted(span for span in spans if span[0] < span[1]):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return cls(tuple(merged), null)

    @classmethod
    def point(cls, *keys: Key) -> Values:
        return cls.of((before(key), after(key)) for key in keys)

    def __bool__(self) -> bool:
        return self.null or bool(self.spans)

    def __and__(self, other: Values) -> Values:
        if len(self.spans) == 1 and len(other.spans) == 1:
            (low, high), (first, last) = self.spans[0], other.spans[0]
            low, high = max(low, first), min(high, last)
            return Values(((low, high),) if low < high else (), self.null and other.null)
        return Values(tuple(_shared(self.spans, other.spans)), self.null and other.null)

    def __or__(self, other: Values) -> Values:
        return Values.of((*self.spans, *other.spans), null=self.null or other.null)

    def __sub__(self, other: Values) -> Values:
        left = Values(tuple(_shared(self.spans, _gaps(other.spans))))
        return Values(left.spans, self.null and not other.null)

    def __le__(self, other: Values) -> bool:
        return not self - other

    @property
    def known(self) -> Values:
        """Without NULL."""
        return Values(self.spans)


def _shared(ones: tuple[Span, ...], others: tuple[Span, ...]) -> Iterable[Span]:
    at, beside = 0, 0
    while at < len(ones) and beside < len(others):
        (low, high), (first, last) = ones[at], others[beside]
        start, end = max(low, first), min(high, last)
        if start < end:
            yield (start, end)
        if high < last:
            at += 1
        else:
            beside += 1


def _gaps(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    cuts = [LOWEST, *(cut for span in spans for cut in span), HIGHEST]
    return tuple((low, high) for low, high in zip(cuts[::2], cuts[1::2], strict=True) if low < high)


NULL_ALONE = Values((), null=True)
ANYTHING = Values(((LOWEST, HIGHEST),), null=True)
_NAN: Key = (1, 0.0)
_LIMITS = {"INT": 31, "BIGINT": 63}
_LEAST = {"length": 0, "instr": 0}
_CALENDAR = {
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "dayofweek": (1, 7),
    "dayofyear": (1, 366),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
_EPOCH = datetime(1970, 1, 1)  # a count of microseconds needs no zone
_NEVER_NULL = frozenset({"isnan"})
_JSON = {"json_text": ("json_value",), "json_value": ()}
_LENIENT = frozenset({"coalesce", "least", "greatest", "isnan"})


@dataclass(frozen=True)
class Term:
    """A key of its own, all values it can have, and the terms that are not NULL where it is not."""

    key: str
    domain: Values
    parents: tuple[Term, ...] = ()
    # The values among which its parents are known; without NULL unless said otherwise.
    settled: Values = ANYTHING.known
    scale: int | None = None
    type: SqlType = DOUBLE

    def values(self, span: Span, *, null: bool = False) -> Values:
        low, high = span
        if self.scale is not None:
            low, high = whole(low), whole(high)
        return Values.of([(low, high)], null=null) & self.domain

    def cut(self, value: LiteralValue, *, behind: bool) -> Cut:
        """Just before or just behind a constant, in this term's keys."""
        if isinstance(value, float) and self.scale is not None:
            if isnan(value) or value == float("inf"):
                return HIGHEST
            if isinf(value):
                return LOWEST
        key = self._key(value)
        return after(key) if behind else before(key)

    def points(self, values: list[LiteralValue]) -> Values:
        found = Values()
        for value in values:
            span = (self.cut(value, behind=False), self.cut(value, behind=True))
            found |= self.values(span)
        return found

    def _key(self, value: LiteralValue) -> Key:
        match value:
            case bool():
                return int(value)
            case int() | float() | Decimal():
                return self._number(value)
            case datetime():
                return _micros(value)
            case date():
                return value.toordinal()
            case _:
                return value

    def _number(self, value: int | float | Decimal) -> Key:
        if self.scale is not None:
            return Fraction(value) * 10**self.scale
        number = float(value)
        return _NAN if isnan(number) else (0, number)


def term_of(expr: Expr, other: SqlType | None = None) -> Term:
    """The term for a value, as it is compared with one of the type `other`."""
    kind = expr.type
    if other is not None and kind.is_numeric and other.is_numeric:
        common = numeric_type((kind, other))
        if common == DOUBLE and kind.name not in {"INT", "DOUBLE"}:
            inner = term_of(expr)
            return Term(f"DOUBLE({inner.key})", _rounded(kind), (inner,))
    return Term(
        to_spark(expr),
        _domain(expr, kind),
        tuple(_parents(expr)),
        scale=_scale(kind),
        type=kind,
    )


def _parents(expr: Expr) -> list[Term]:
    if isinstance(expr, Function) and expr.name in _JSON:
        # Where a value has a text there is a value, and where there is a value there is JSON.
        beside = [replace(expr, name=name) for name in _JSON[expr.name]]
        return [term_of(part) for part in (*beside, expr.arguments[0])]
    strict = isinstance(expr, Arithmetic | Cast) or (
        isinstance(expr, Function) and expr.name not in _LENIENT and expr.name in SIGNATURES
    )
    return [term_of(part) for part in children(expr) if strict and not isinstance(part, Literal)]


def _scale(kind: SqlType) -> int | None:
    if kind.name in {"DOUBLE", "FLOAT", "STRING"}:
        return None
    return (kind.scale or 0) if kind.name == "DECIMAL" else 0


def _domain(expr: Expr, kind: SqlType) -> Values:
    low, high = _type_limits(kind)
    if isinstance(expr, Function):
        if expr.name in _NEVER_NULL:
            return Values(((low, high),))
        least, most = _CALENDAR.get(expr.name, (_LEAST.get(expr.name), None))
        low = low if least is None else before(least)
        high = high if most is None else before(most + 1)
    rest = _divisor(expr)
    if rest:
        low, high = before(1 - rest), before(rest)
    return Values(((low, high),), null=True)


def _divisor(expr: Expr) -> int:
    """The whole number by which whole numbers are divided for their rest; 0 where it is none."""
    if not isinstance(expr, Arithmetic) or expr.operator != "%" or not expr.type.is_integral:
        return 0
    by = expr.right.value if isinstance(expr.right, Literal) else None
    return abs(by) if isinstance(by, int) else 0


def _type_limits(kind: SqlType) -> Span:
    if kind.name in _LIMITS:
        limit = 1 << _LIMITS[kind.name]
        return before(-limit), before(limit)
    if kind.name == "DECIMAL":
        limit = 10 ** (kind.precision or 0)
        return before(1 - limit), before(limit)
    if kind.name == "BOOLEAN":
        return before(0), before(2)
    if kind.name == "STRING":
        return before(""), HIGHEST
    return ANYTHING.spans[0]


def _rounded(kind: SqlType) -> Values:
    """The doubles to which values of the type are rounded when they are compared with one."""
    if kind.name == "BIGINT":
        limit = 2.0 ** _LIMITS["BIGINT"]
    elif kind.name == "DECIMAL":
        limit = float(10 ** ((kind.precision or 0) - (kind.scale or 0)))
    else:
        return ANYTHING
    return Values(((before((0, -limit)), after((0, limit))),), null=True)


def _micros(value: datetime) -> int:
    offset = value.utcoffset()
    plain = value.replace(tzinfo=None)
    since = plain - _EPOCH if offset is None else plain - offset - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def opaque(key: str, domain: Values, parents: tuple[Term, ...], settled: Values) -> Term:
    """A term that is no value of the language, as the order of two values."""
    return Term(key, domain, parents, settled, scale=0)
