"""How a column of a sample is drawn: numpy arrays from one stream of random numbers.

A longer draw from the same stream begins with the shorter one, so that a sample of any size
begins with the rows of a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headgate.core.kafka.arrow import Array
from headgate.pipeline.generator.spec_sample import (
    After,
    Between,
    Choice,
    Code,
    Lognormal,
    Normal,
    Product,
    SampleColumn,
    Sum,
    Uniform,
    Value,
    When,
)

Made: TypeAlias = Mapping[str, Array]
Stream: TypeAlias = np.random.Generator

MICROSECONDS = 1_000_000
SECONDS_A_DAY = 86_400
# Without I, L, O and U, which a person misreads.
LETTERS = np.array(list("0123456789ABCDEFGHJKMNPQRSTVWXYZ"))
_TYPES: Mapping[str, type[np.generic]] = {
    "BIGINT": np.int64,
    "INT": np.int32,
    "DOUBLE": np.float64,
    "BOOLEAN": np.bool_,
    "STRING": np.object_,
    "TIMESTAMP(6)": np.int64,
}


def draw(column: SampleColumn, stream: Stream, rows: int, made: Made) -> Array:
    """The column's values; times are microseconds since 1970."""
    form = column.forms[0]
    values = _settled(_DRAWS[form](getattr(column, form), stream, rows, made), column)
    return _where(values, column.when, column.type, made) if column.when else values


def cell(value: Value, type_name: str) -> bool | int | float | str:
    """A declared value as the column stores it; `NaN` and `Infinity` are numbers of DOUBLE."""
    if type_name == "TIMESTAMP(6)":
        return microseconds(datetime.fromisoformat(str(value)))
    if type_name == "DOUBLE":
        return float(value or 0.0)
    if type_name in ("BIGINT", "INT"):
        return int(value or 0)
    return value if isinstance(value, bool) else str(value)


def microseconds(moment: datetime) -> int:
    """A zone-less time as Parquet stores it."""
    return round(moment.replace(tzinfo=UTC).timestamp()) * MICROSECONDS + moment.microsecond


def _settled(values: Array, column: SampleColumn) -> Array:
    if column.decimals is not None:
        values = np.round(values, column.decimals)
    elif column.type in ("BIGINT", "INT") and values.dtype.kind == "f":
        values = np.rint(values)
    return values.astype(_TYPES[column.type], copy=False)


def _where(values: Array, when: When, type_name: str, made: Made) -> Array:
    chosen = np.isin(made[when.column], np.array(when.one_of))
    return np.where(chosen, values, cell(when.otherwise, type_name)).astype(values.dtype)


def _choice(form: Choice, stream: Stream, rows: int, made: Made) -> Array:
    weights = form.weights or (1.0,) * len(form.values)
    values: Array = np.array(form.values, dtype=object if _text(form.values[0]) else None)
    return values[_pick(weights, stream.random(rows))]


def _text(value: Value) -> bool:
    return isinstance(value, str)


def _pick(weights: tuple[float, ...], uniform: NDArray[np.float64]) -> NDArray[np.intp]:
    edges = np.cumsum(np.array(weights, dtype=np.float64))
    return np.searchsorted(edges[:-1], uniform * float(edges[-1]), side="right")


def _constant(form: Value, stream: Stream, rows: int, made: Made) -> Array:
    return np.full(rows, form, dtype=object if _text(form) else None)


def _code(form: Code, stream: Stream, rows: int, made: Made) -> Array:
    drawn = LETTERS[(stream.random((rows, form.length)) * len(LETTERS)).astype(np.int64)]
    return np.array([form.prefix + "".join(letters) for letters in drawn], dtype=object)


def _uniform(form: Uniform, stream: Stream, rows: int, made: Made) -> Array:
    return form.low + (form.high - form.low) * stream.random(rows)


def _normal(form: Normal, stream: Stream, rows: int, made: Made) -> Array:
    return np.clip(form.mean + form.sigma * stream.standard_normal(rows), form.low, form.high)


def _lognormal(form: Lognormal, stream: Stream, rows: int, made: Made) -> Array:
    scaled = form.median * np.exp(form.sigma * stream.standard_normal(rows))
    return np.clip(scaled, form.low, form.high)


def _sum(form: Sum, stream: Stream, rows: int, made: Made) -> Array:
    total = np.full(rows, form.base)
    for name in form.of:
        total = total + made[name]
    return total


def _product(form: Product, stream: Stream, rows: int, made: Made) -> Array:
    result = np.full(rows, form.factor)
    for name in form.of:
        result = result * made[name]
    return result


def _time(form: Between, stream: Stream, rows: int, made: Made) -> Array:
    seconds = round((form.end - form.start).total_seconds())
    if not form.hourly:
        offsets = np.floor(seconds * stream.random(rows))
    else:
        day, hour, second = stream.random((rows, 3)).T
        days = np.floor(max(1, seconds // SECONDS_A_DAY) * day)
        offsets = (days * 24 + _pick(form.hourly, hour)) * 3600 + np.floor(3600 * second)
    return microseconds(form.start) + offsets.astype(np.int64) * MICROSECONDS


def _after(form: After, stream: Stream, rows: int, made: Made) -> Array:
    return made[form.column] + np.rint(made[form.seconds]).astype(np.int64) * MICROSECONDS


_DRAWS: Mapping[str, Callable[[Any, Stream, int, Made], Array]] = {  # each form has its own model
    "choice": _choice,
    "constant": _constant,
    "code": _code,
    "uniform": _uniform,
    "normal": _normal,
    "lognormal": _lognormal,
    "sum": _sum,
    "product": _product,
    "time": _time,
    "after": _after,
}
