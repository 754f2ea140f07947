"""Lists, structs and maps as JSON: their parts are written as columns, then put together."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import orjson
import pyarrow as pa
import pyarrow.compute as pc

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
