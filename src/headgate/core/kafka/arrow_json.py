"""Arrow record batches as JSON, one object per row, as the values and keys of Kafka messages.

Column by column, each with one writer chosen once; the result is what `orjson.dumps` gives for the row,
with these differences, so that nothing is lost: NaN and the infinities are written as the tokens NaN,
Infinity and -Infinity (no strict JSON reader accepts them; orjson would write null), nanoseconds are
kept where there are any, decimals keep their digits, a decimal with more digits than Spark has is text,
a zoned time is written in UTC. Numpy views of Arrow buffers are made here without `pyarrow.array` and
`Array.to_numpy`, which import pandas first: that takes longer than a small file does.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.declarations.types import MAX_DECIMAL_PRECISION

# pyarrow ships no types, so what comes from it is unknown to the checker.


Array = NDArray[Any]  # a column has any type


def from_numpy(values: Array, kind: pa.DataType, absent: Array) -> pa.Array:
    """An Arrow array of these values, NULL where `absent` is true."""
    validity = _bits(~absent) if absent.any() else None
    if pa.types.is_string(kind):
        return _strings(values, validity)
    data = (
        _bits(values) if pa.types.is_boolean(kind) else pa.py_buffer(np.ascontiguousarray(values))
    )
    return pa.Array.from_buffers(kind, len(values), [validity, data])


def doubles(column: pa.Array) -> NDArray[np.float64]:
    """The values of a column of numbers; what stands where it is NULL means nothing."""
    exact = column.cast(pa.float64())
    if not len(exact):
        return np.empty(0)
    return np.frombuffer(exact.buffers()[1])[exact.offset : exact.offset + len(exact)]


def absent_rows(column: pa.Array) -> list[int]:
    """Where the column is NULL."""
    if not column.null_count:
        return []
    bits = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")
    return np.flatnonzero(bits[column.offset : column.offset + len(column)] == 0).tolist()


def _bits(flags: Array) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags.astype(bool), bitorder="little"))


def _strings(values: Array, validity: pa.Buffer | None) -> pa.Array:
    texts = [str(value).encode() for value in values.tolist()]
    offsets = np.zeros(len(texts) + 1, dtype=np.int32)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


# pyarrow ships no types, so what comes from it is unknown to the checker.


Texts = list[bytes]
Write = Callable[[pa.Array], Texts]
WriterOf = Callable[[pa.DataType], Write]

NULL = b"null"
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def is_nested(kind: pa.DataType) -> bool:
    return is_list(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind)


def is_list(kind: pa.DataType) -> bool:
    return any(test(kind) for test in _LISTS)


def parts(kind: pa.DataType) -> tuple[pa.DataType, ...]:
    """The types that values of a nested type are made of."""
    if pa.types.is_map(kind):
        return (kind.key_type, kind.item_type)
    if pa.types.is_struct(kind):
        return tuple(field.type for field in kind)
    return (kind.value_type,)


def nested_writer(kind: pa.DataType, writer_of: WriterOf) -> Write:
    if pa.types.is_map(kind):
        return _map_writer(writer_of(kind.key_type), writer_of(kind.item_type))
    if pa.types.is_struct(kind):
        return _struct_writer(kind, [writer_of(field.type) for field in kind])
    return _list_writer(writer_of(kind.value_type))


def row_pattern(names: list[str]) -> bytes:
    """An object with these fields, a `%b` for each value."""
    fields = (orjson.dumps(name).replace(b"%", b"%%") + b":%b" for name in names)
    return b"{" + b",".join(fields) + b"}"


def _struct_writer(kind: pa.DataType, writers: list[Write]) -> Write:
    pattern = row_pattern([field.name for field in kind])

    def write(column: pa.Array) -> Texts:
        fields = [w(part) for w, part in zip(writers, column.flatten(), strict=True)]
        rows = map(pattern.__mod__, zip(*fields, strict=True)) if fields else [b"{}"] * len(column)
        return _or_null(list(rows), column)

    return write


def _list_writer(item: Write) -> Write:
    def write(column: pa.Array) -> Texts:
        items = iter(item(column.flatten()))
        return _or_null([b"[" + _joined(items, n) + b"]" for n in _lengths(column)], column)

    return write


def _map_writer(key: Write, item: Write) -> Write:
    def write(column: pa.Array) -> Texts:
        # Its keys and items are those of the whole array that a slice was cut from.
        whole = column.take(pa.array(range(len(column)), pa.int64()))
        first = whole.offsets[0].as_py() if len(whole) else 0
        pairs = zip(map(_name, key(whole.keys[first:])), item(whole.items[first:]), strict=False)
        texts = (name + b":" + value for name, value in pairs)
        return _or_null([b"{" + _joined(texts, n) + b"}" for n in _lengths(whole)], column)

    return write


def _lengths(column: pa.Array) -> list[int]:
    if pa.types.is_map(column.type):
        ends = column.offsets.to_pylist()
        return [end - begin for begin, end in pairwise(ends)]
    return pc.fill_null(pc.list_value_length(column), 0).to_pylist()


def _joined(items: Iterator[bytes], count: int) -> bytes:
    return b",".join(next(items) for _ in range(count))


def _name(text: bytes) -> bytes:
    """A key is always text in JSON."""
    return text if text.startswith(b'"') else b'"' + text + b'"'


def _or_null(texts: Texts, column: pa.Array) -> Texts:
    if not column.null_count:
        return texts
    valid = column.is_valid().to_pylist()
    return [text if there else NULL for text, there in zip(texts, valid, strict=True)]


# pyarrow ships no types and makes its compute functions at import, unknown to the checker.


def times(column: pa.Array) -> Texts:
    zoned = column.type.tz is not None
    texts = _isoformat(column.cast(pa.timestamp(column.type.unit)) if zoned else column)
    suffix = b'+00:00"' if zoned else b'"'
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


def dates(column: pa.Array) -> Texts:
    texts = column.cast(pa.date32()).cast(pa.string()).cast(pa.binary()).to_pylist()
    return [NULL if text is None else b'"' + text + b'"' for text in texts]


def clock_times(column: pa.Array) -> Texts:
    """Without a fraction that is zero, as Python writes them."""
    texts = column.cast(pa.string())
    return _in_quotes(pc.replace_substring_regex(texts, r"\.0+$", ""))


def _in_quotes(column: pa.Array) -> Texts:
    texts = column.cast(pa.string()).cast(pa.binary()).to_pylist()
    return [NULL if text is None else b'"' + text + b'"' for text in texts]


# pyarrow ships no types and makes its compute functions at import, unknown to the checker.


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
