"""Record batches as JSON, one line a row: what `orjson.dumps` gives for the row, column by column.

Some things differ from it, all so that nothing is lost on the way: NaN and the infinities are
written as the tokens NaN, Infinity and -Infinity, which no strict JSON reader accepts (orjson
would write null), nanoseconds are kept where there are any, decimals keep their digits, and one
that has more digits than Spark's decimals is text. A zoned time is written in UTC.
"""

# pyarrow ships no types and makes its compute functions at import, unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa

from headgate.core.kafka.arrow import absent_rows, doubles
from headgate.core.kafka.json_nested import (
    NULL,
    Texts,
    Write,
    is_nested,
    nested_writer,
    parts,
    row_pattern,
)
from headgate.core.kafka.json_times import clock_times, dates, times
from headgate.declarations.spec_types import MAX_DECIMAL_PRECISION

_TO_ESCAPE = re.compile(rb'["\\\x00-\x1f]')
_ESCAPED = {bytes([n]): orjson.dumps(chr(n))[1:-1] for n in (*range(0x20), 0x22, 0x5C)}


class JsonRows:
    """Writes the batches of one schema; each column has one writer, chosen once."""

    def __init__(self, schema: pa.Schema) -> None:
        self._writers = [writer_of(field.type) for field in schema]
        self._row = row_pattern(schema.names)

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


def writer_of(kind: pa.DataType) -> Write:
    """How a column of that type is written; a TypeError where `can_write` is false."""
    for suits, write in _WRITERS:
        if suits(kind):
            return write
    if can_write(kind):
        return nested_writer(kind, writer_of) if is_nested(kind) else _decoded(kind)
    raise TypeError(f"a column of type {kind} cannot be written as JSON")


def can_write(kind: pa.DataType) -> bool:
    """Whether JSON has such a value: bytes it has not."""
    if is_nested(kind):
        return all(can_write(part) for part in parts(kind))
    if pa.types.is_dictionary(kind):
        return can_write(kind.value_type)
    return any(suits(kind) for suits, _ in _WRITERS)


def written_as_text(kind: pa.DataType) -> bool:
    """Whether its values stand in quotes."""
    if pa.types.is_dictionary(kind):
        return written_as_text(kind.value_type)
    return any(test(kind) for test in (_is_text, _is_moment, is_uuid, is_long_decimal))


def is_uuid(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.UuidType)


def is_long_decimal(kind: pa.DataType) -> bool:
    """More digits than a decimal of Spark holds."""
    return pa.types.is_decimal(kind) and kind.precision > MAX_DECIMAL_PRECISION


def _is_moment(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, _is_json)
    return any(test(kind) for test in tests)


def _is_json(kind: pa.DataType) -> bool:
    """JSON text that the file marks as such; it goes as the text it is."""
    return isinstance(kind, pa.JsonType)


def _plain(column: pa.Array) -> pa.Array:
    if _is_json(column.type):
        return column.storage
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _decoded(kind: pa.DataType) -> Write:
    write = writer_of(kind.value_type)

    def decoded(column: pa.Array) -> Texts:
        return write(column.dictionary_decode())

    return decoded


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
    """Values whose text in Arrow is their text in JSON: integers and booleans."""
    return _with_nulls(column.cast(pa.string()).cast(pa.binary()).to_pylist(), column)


def _decimals(column: pa.Array) -> Texts:
    """All digits and no exponent: readers take a number with an exponent for a double."""
    texts = _bare(column)
    for row, text in enumerate(texts):
        if b"E" in text:
            texts[row] = format(Decimal(text.decode()), "f").encode()
    return texts


def _counts(column: pa.Array) -> Texts:
    """A duration as a number of its unit."""
    return _bare(column.cast(pa.int64()))


def _long_decimals(column: pa.Array) -> Texts:
    return [text if text == NULL else b'"' + text + b'"' for text in _decimals(column)]


def _uuids(column: pa.Array) -> Texts:
    """Their usual text, in groups of hexadecimal digits."""
    values = column.storage.to_pylist()
    return [NULL if v is None else b'"%b"' % str(UUID(bytes=v)).encode() for v in values]


def _texts(column: pa.Array) -> Texts:
    distinct = _plain(column).dictionary_encode()
    # Few values repeat often: each is escaped once.
    values = [_quoted(value) for value in distinct.dictionary.cast(pa.large_binary()).to_pylist()]
    return [NULL if code is None else values[code] for code in distinct.indices.to_pylist()]


def _quoted(value: bytes) -> bytes:
    return b'"' + _TO_ESCAPE.sub(lambda found: _ESCAPED[found[0]], value) + b'"'


def _nulls(column: pa.Array) -> Texts:
    return [NULL] * len(column)


_WRITERS: tuple[tuple[Callable[[pa.DataType], bool], Write], ...] = (
    (pa.types.is_floating, _doubles),
    (pa.types.is_integer, _bare),
    (_is_text, _texts),
    (pa.types.is_timestamp, times),
    (pa.types.is_date, dates),
    (pa.types.is_time, clock_times),
    (pa.types.is_duration, _counts),
    (is_uuid, _uuids),
    (pa.types.is_boolean, _bare),
    (is_long_decimal, _long_decimals),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_null, _nulls),
)
