"""Arrow arrays to and from numpy by their buffers.

`pyarrow.array` and `Array.to_numpy` do the same, but they import pandas first, which takes longer
than a small sample or a small file does.
"""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
