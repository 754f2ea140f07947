"""Why two rows of one key differ: column by column, both values and the kind of difference.

The kinds are tried in the order of `KINDS`; the first that explains the pair of values counts. A pair that none
explains is `real`: somebody changed the value on one side only.

| kind | the pair is |
|---|---|
| null_empty | NULL on one side, an empty text or collection on the other |
| scale | one decimal at two scales: equal, rounded or cut, or with the point moved |
| zone_shift | two times a whole number of quarter hours apart, at most 14 hours |
| precision | floating numbers that are equal at fewer digits, times with their seconds cut |
| unicode_form | equal texts after NFC or NFKC |
| trim | equal texts without blanks at the ends |
| truncation | the beginning of the other |
| case | equal texts but for upper and lower case |
| real | none of these |
"""

from __future__ import annotations

import math
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Literal

from headgate.config.reference import MASK

Kind = Literal[
    "null_empty",
    "scale",
    "zone_shift",
    "precision",
    "unicode_form",
    "trim",
    "truncation",
    "case",
    "real",
]
QUARTER, FURTHEST = timedelta(minutes=15), timedelta(hours=14)
# Fewer equal digits than these with the point moved are chance: 10 against 100 is another number.
TELLING_DIGITS = 3
FLOAT_DIGITS = 15
# The default context would round at 28 digits; no number of a row that is shown has more than these.
MOST_DIGITS = 300
EXACT = Context(prec=2 * MOST_DIGITS)
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")


def same_value(a: object, b: object) -> bool:
    """Equal as values: NULL is NULL, NaN is NaN, 1.0 is 1.00; a text is never a number."""
    if a is None or b is None:
        return a is b
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    if isinstance(a, datetime) and isinstance(b, datetime):
        return _in_utc(a) == _in_utc(b)
    return a == b


def kind_of(a: object, b: object) -> Kind:
    """Which kind explains a pair of unequal values; the same for (b, a)."""
    found: list[Kind] = [kind for kind, explains in EXPLAINED if explains(a, b)]
    return found[0] if found else "real"


def _null_against_empty(a: object, b: object) -> bool:
    other = b if a is None else a
    if (a is None) == (b is None):
        return False
    return isinstance(other, Sized) and len(other) == 0


def _at_two_scales(a: object, b: object) -> bool:
    one, two = _number(a), _number(b)
    if one is None or two is None:
        return False
    if one == two:
        return True
    digits = _significant(one)
    if digits == _significant(two) and len(digits[1]) >= TELLING_DIGITS:
        return True
    return not _is_float(a, b) and (_rounded(one, two) or _rounded(two, one))


def _zones_apart(a: object, b: object) -> bool:
    one, two = _moment(a), _moment(b)
    if one is None or two is None:
        return False
    apart = abs(one - two)
    return timedelta(0) < apart <= FURTHEST and not apart % QUARTER


def _at_fewer_digits(a: object, b: object) -> bool:
    if _cut_time(a, b) or _cut_time(b, a):
        return True
    one, two = _number(a), _number(b)
    if one is None or two is None or not _is_float(a, b):
        return False
    if min(len(_significant(number)[1]) for number in (one, two)) > 1 and (
        _rounded(one, two) or _rounded(two, one)
    ):
        return True
    return _float_rounding(float(one), float(two))


def _other_unicode_form(a: object, b: object) -> bool:
    return _texts(a, b, lambda text: unicodedata.normalize("NFC", text)) or _texts(a, b, _folded)


def _blanks_at_ends(a: object, b: object) -> bool:
    return _texts(a, b, lambda text: _folded(text).strip())


def _beginning(a: object, b: object) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return _starts(a, b) or _starts(_folded(a).rstrip(), _folded(b).rstrip())
    return isinstance(a, bytes) and isinstance(b, bytes) and _starts(a, b)


def _upper_and_lower(a: object, b: object) -> bool:
    return _texts(a, b, lambda text: _folded(_folded(text).strip().casefold()))


EXPLAINED: tuple[tuple[Kind, Callable[[object, object], bool]], ...] = (
    ("null_empty", _null_against_empty),
    ("scale", _at_two_scales),
    ("zone_shift", _zones_apart),
    ("precision", _at_fewer_digits),
    ("unicode_form", _other_unicode_form),
    ("trim", _blanks_at_ends),
    ("truncation", _beginning),
    ("case", _upper_and_lower),
)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _texts(a: object, b: object, form: Callable[[str], str]) -> bool:
    return isinstance(a, str) and isinstance(b, str) and form(a) == form(b)


def _starts(a: str | bytes, b: str | bytes) -> bool:
    short, long = sorted((a, b), key=len)
    return 0 < len(short) < len(long) and long[: len(short)] == short


def _is_float(*values: object) -> bool:
    return any(isinstance(value, float) for value in values)


def _number(value: object) -> Decimal | None:
    """A finite number, also one that is written as text; a leading zero makes it no number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return _of_float(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, str):
        return Decimal(value) if len(value) < 100 and _NUMBER.fullmatch(value) else None
    return value if isinstance(value, Decimal) and value.is_finite() else None


def _of_float(value: float) -> Decimal:
    """The shortest decimal that is this float; 2.0 has no decimals."""
    return Decimal(int(value)) if value.is_integer() else Decimal(repr(value))


def _significant(number: Decimal) -> tuple[int, tuple[int, ...]]:
    """Sign and digits without zeros at either end."""
    sign, digits, _ = number.as_tuple()
    text = "".join(map(str, digits)).strip("0")
    return sign, tuple(map(int, text))


def _decimals(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def _rounded(short: Decimal, long: Decimal) -> bool:
    """Whether the one is the other at fewer decimals, rounded or cut; never if nothing is left."""
    places = _decimals(short)
    if not short or places >= _decimals(long) or len(long.as_tuple().digits) > MOST_DIGITS:
        return False
    step = Decimal(1).scaleb(-places)
    modes = (ROUND_HALF_UP, ROUND_HALF_EVEN, ROUND_DOWN)
    return any(long.quantize(step, mode, context=EXACT) == short for mode in modes)


def _float_rounding(a: float, b: float) -> bool:
    """Whether the one is the other in single precision, or both agree in fifteen digits."""
    if not (math.isfinite(a) and math.isfinite(b)) or not a or not b:
        return False
    if _single(a) == b or _single(b) == a:
        return True
    return f"{a:.{FLOAT_DIGITS - 1}e}" == f"{b:.{FLOAT_DIGITS - 1}e}"


def _single(value: float) -> float:
    try:
        found: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.inf
    return found


def _moment(value: object) -> datetime | None:
    """A point in time, in UTC; a time without a zone is taken as UTC, as everywhere."""
    if isinstance(value, datetime):
        return _in_utc(value)
    if isinstance(value, str) and _TIME.fullmatch(value):
        try:
            return _in_utc(datetime.fromisoformat(value))
        except ValueError:
            return None
    return None


def _in_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _cut_time(short: object, long: object) -> bool:
    """Whether the one is the other without its milliseconds, seconds or time of day."""
    whole = _moment(long)
    if whole is None:
        return False
    if isinstance(short, date) and not isinstance(short, datetime):
        return datetime.combine(short, time(), UTC) == whole.replace(
            hour=0, minute=0, second=0, microsecond=0
        )
    cut = _moment(short)
    return cut is not None and cut != whole and cut in _coarser(whole)


def _coarser(whole: datetime) -> tuple[datetime, ...]:
    """The moment in milliseconds, seconds and minutes, cut, and to the nearest where it is usual."""
    millis = whole.replace(microsecond=whole.microsecond // 1000 * 1000)
    second = whole.replace(microsecond=0)
    nearest = (whole + timedelta(microseconds=500), whole + timedelta(microseconds=500_000))
    return (
        millis,
        second,
        second.replace(second=0),
        nearest[0].replace(microsecond=nearest[0].microsecond // 1000 * 1000),
        nearest[1].replace(microsecond=0),
    )


LONGEST = 200
# Two such texts look the same on a screen.
LOOK_ALIKE: frozenset[Kind] = frozenset({"unicode_form", "trim"})


def shown_key(pk: str) -> str:
    """A key in one line; what a terminal would obey, or could not show, is written as an escape."""
    return _short(pk if pk.isprintable() else ascii(pk)[1:-1])


def shown_value(value: object, kind: Kind = "real") -> str | None:
    """A value in one line; None is NULL."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value, kind)
        case bytes():
            return _short(f"0x{value.hex()}")
        case datetime():
            return _show_time(value)
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case _:
            return _short(str(value))


def _text(value: str, kind: Kind) -> str:
    """In quotes; with escapes for what cannot be seen."""
    if kind in LOOK_ALIKE or not value.isprintable():
        return _short(ascii(value))
    return _short(f"'{value}'")


def _show_time(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


KINDS: tuple[Kind, ...] = (*(kind for kind, _ in EXPLAINED), "real")
Row = Mapping[str, object]
Same = Callable[[str, object, object], bool]


@dataclass(frozen=True)
class Difference:
    """One column in which the two sides differ; a masked value keeps its kind."""

    column: str
    kind: Kind
    onprem: str | None
    cloud: str | None


@dataclass(frozen=True)
class RowDifference:
    """What reading one key on both sides gave."""

    pk: str
    found: str
    differences: tuple[Difference, ...] = ()

    @property
    def kinds(self) -> frozenset[Kind]:
        return frozenset(found.kind for found in self.differences)


# What `found` can say.
EQUAL, DIFFERENT = "equal", "different"
NOT_ONPREM, NOT_CLOUD, NOWHERE = "not on-prem", "not in the cloud", "on neither side"


def by_value(column: str, onprem: object, cloud: object) -> bool:
    """Two values are the same if they are equal as values, NULL and NaN included."""
    return same_value(onprem, cloud)


def row_difference(
    pk: str,
    onprem: Row | None,
    cloud: Row | None,
    columns: Iterable[str],
    hidden: frozenset[str] = frozenset(),
    same: Same = by_value,
) -> RowDifference:
    """The columns in which two rows differ; `same` says what counts as equal, as a contract does."""
    if onprem is None or cloud is None:
        return RowDifference(pk, _missing(onprem, cloud))
    pairs = ((name, onprem.get(name), cloud.get(name)) for name in columns)
    differing = [(name, a, b) for name, a, b in pairs if not same(name, a, b)]
    told = tuple(_difference(name, a, b, name in hidden) for name, a, b in differing)
    return RowDifference(pk, DIFFERENT if told else EQUAL, told)


def count_kinds(rows: Iterable[RowDifference]) -> dict[Kind, int]:
    """How often each kind was found, in the order in which kinds are tried; those found only."""
    found = Counter(difference.kind for row in rows for difference in row.differences)
    return {kind: found[kind] for kind in KINDS if found[kind]}


def _missing(onprem: Row | None, cloud: Row | None) -> str:
    if onprem is None and cloud is None:
        return NOWHERE
    return NOT_ONPREM if onprem is None else NOT_CLOUD


def _difference(column: str, onprem: object, cloud: object, hidden: bool) -> Difference:
    kind = kind_of(onprem, cloud)
    if hidden:
        return Difference(column, kind, _masked(onprem), _masked(cloud))
    return Difference(column, kind, shown_value(onprem, kind), shown_value(cloud, kind))


def _masked(value: object) -> str | None:
    return None if value is None else MASK
