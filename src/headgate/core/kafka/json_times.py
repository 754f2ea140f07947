"""Times as JSON: what Python's isoformat gives, with nanoseconds where there are any."""

# pyarrow ships no types and makes its compute functions at import, unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kafka.json_nested import NULL, Texts


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
