"""Record batches as JSON, one line a row: what `orjson.dumps` gives for the row, column by column.

Two things differ from it, both so that nothing is lost on the way: NaN and the infinities are
written as the tokens NaN, Infinity and -Infinity, which no strict JSON reader accepts (orjson
would write null), and nanoseconds are kept where there are any.
"""

# pyarrow ships no types and makes its compute functions at import, unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headgate.feeds.arrow import absent_rows, doubles

Texts = list[bytes]

NULL = b"null"
_TO_ESCAPE = re.compile(rb'["\\\x00-\x1f]')
_ESCAPED = {bytes([n]): orjson.dumps(chr(n))[1:-1] for n in (*range(0x20), 0x22, 0x5C)}


class JsonRows:
    """Writes the batches of one schema; each column has one writer, chosen once."""

    def __init__(self, schema: pa.Schema) -> None:
        self._writers = [writer_of(field.type) for field in schema]
        names = (orjson.dumps(name).replace(b"%", b"%%") for name in schema.names)
        self._row = b"{" + b",".join(name + b":%b" for name in names) + b"}"

    def lines(self, batch: pa.RecordBatch) -> Texts:
        """One JSON object a row, in the order of the columns."""
        columns = (
            write(column) for write, column in zip(self._writers, batch.columns, strict=True)
        )
        return list(map(self._row.__mod__, zip(*columns, strict=True)))


def keys(column: pa.Array) -> list[bytes | None]:
    """The column as message keys: plain text, no key where the value is null."""
    if _is_text(column.type):
        return _plain(column).cast(pa.large_binary()).to_pylist()
    texts = writer_of(column.type)(column)
    return [None if text == NULL else text.strip(b'"') for text in texts]


def writer_of(kind: pa.DataType) -> Callable[[pa.Array], Texts]:
    """How a column of that type is written; a TypeError where `can_write` is false."""
    for suits, write in _WRITERS:
        if suits(kind):
            return write
    raise TypeError(f"a column of type {kind} cannot be written as JSON")


def can_write(kind: pa.DataType) -> bool:
    return any(suits(kind) for suits, _ in _WRITERS)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _doubles(column: pa.Array) -> Texts:
    values = doubles(column)
    if not len(values):
        return []
    # One call for the column: orjson's own digits, split where it put the commas.
    texts = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")
    for row in np.flatnonzero(~np.isfinite(values)).tolist():
        texts[row] = _beyond_json(values[row])
    return _with_nulls(texts, column)


def _beyond_json(value: float) -> bytes:
    if value != value:
        return b"NaN"
    return b"Infinity" if value > 0 else b"-Infinity"


def _with_nulls(texts: Texts, column: pa.Array) -> Texts:
    for row in absent_rows(column):
        texts[row] = NULL
    return texts


def _bare(column: pa.Array) -> Texts:
    """Values whose text in Arrow is their text in JSON: integers, booleans, decimals."""
    return _with_nulls(column.cast(pa.string()).cast(pa.binary()).to_pylist(), column)


def _texts(column: pa.Array) -> Texts:
    distinct = _plain(column).dictionary_encode()
    # Few values repeat often: each is escaped once.
    values = [_quoted(value) for value in distinct.dictionary.cast(pa.large_binary()).to_pylist()]
    return [NULL if code is None else values[code] for code in distinct.indices.to_pylist()]


def _quoted(value: bytes) -> bytes:
    return b'"' + _TO_ESCAPE.sub(lambda found: _ESCAPED[found[0]], value) + b'"'


def _times(column: pa.Array) -> Texts:
    zone = column.type.tz
    if zone not in (None, "UTC", "+00:00"):
        return _one_by_one(column)
    zoneless = column.cast(pa.timestamp(column.type.unit)) if zone else column
    texts = _isoformat(zoneless)
    suffix = b'+00:00"' if zone else b'"'
    return [NULL if text is None else b'"' + text + suffix for text in texts]


def _isoformat(column: pa.Array) -> list[bytes | None]:
    """Seconds, and a fraction only where there is one: six digits, or nine if it needs them."""
    texts = _at(column, "s")
    for unit in ("us", "ns"):
        finer = column.cast(pa.timestamp(_coarser(unit)), safe=False).cast(column.type, safe=False)
        exact = pc.equal(finer, column)
        if pc.all(exact, min_count=0).as_py():
            break
        texts = pc.if_else(exact, texts, _at(column, unit))
    return pc.replace_substring(texts, " ", "T").cast(pa.binary()).to_pylist()


def _coarser(unit: str) -> str:
    return {"us": "s", "ns": "us"}[unit]


def _at(column: pa.Array, unit: str) -> pa.Array:
    return column.cast(pa.timestamp(unit), safe=False).cast(pa.string())


def _dates(column: pa.Array) -> Texts:
    texts = column.cast(pa.date32()).cast(pa.string()).cast(pa.binary()).to_pylist()
    return [NULL if text is None else b'"' + text + b'"' for text in texts]


def _one_by_one(column: pa.Array) -> Texts:
    return [orjson.dumps(value) for value in column.to_pylist()]


def _nulls(column: pa.Array) -> Texts:
    return [NULL] * len(column)


_WRITERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Texts]], ...] = (
    (pa.types.is_floating, _doubles),
    (pa.types.is_integer, _bare),
    (_is_text, _texts),
    (pa.types.is_timestamp, _times),
    (pa.types.is_date, _dates),
    (pa.types.is_time, _one_by_one),
    (pa.types.is_boolean, _bare),
    (pa.types.is_decimal, _bare),
    (pa.types.is_null, _nulls),
)
