"""The usual shape of a record as one regular expression: such a record is sound without more ado.

Spark's JSON reader says whether a record begins with an object whose fields have their types. It
says nothing of what follows the object, of a field that stands twice, of half a surrogate pair, of
a value that it turned into text, of a number that became infinite, of fields that are missing or
unknown. A text of this shape has none of that: the declared fields in their order, each once, and
nothing after them; texts in quotes and without escapes; numbers too short to overflow or to be
rounded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from headgate.spec.dataset import Column
from headgate.spec.types import SqlType

# Within a regular expression within a SQL literal; others would need escapes in the record too.
_PLAIN_NAME = re.compile(r"[^\"'\\$\x00-\x1f\x7f]+")
_TEXT = r' ?+(?>"[^"\\]*+"|null)'
_INTEGER = "[-0-9nul ]{1,24}+"
_ATOM = r'"[^"\\]*+"|true|false|null|[-.0-9]{1,24}+'
_OBJECT = r'\{(?>"[^"\\]*+"|true|false|null|[-.0-9]{1,24}+|[,: ])*+\}'
_OBJECTS = rf"(?>{_OBJECT}|\[(?>{_OBJECT}[, ]{{0,2}}+)*+\])"
# The reader has refused what is no number, so that these need not spell out the grammar.
_VALUES = {
    "STRING": _TEXT,
    "DATE": _TEXT,
    "TIMESTAMP": _TEXT,
    "TIMESTAMP_LTZ": _TEXT,
    "BOOLEAN": "[a-z ]{4,6}+",
    "INT": _INTEGER,
    "BIGINT": _INTEGER,
    "FLOAT": "[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+",
    "DOUBLE": "[-.0-9nul ]{1,24}+(?:e-[0-9]{1,3}+)?+",
}


def usual_shape(
    fields: Sequence[tuple[Column, SqlType]], optional: Collection[str] = (), beside: str = ""
) -> tuple[str, ...]:
    """The expression in parts, one field each; none when a name would need escapes.

    Every repeat is possessive: the time to match grows with the text and nothing else. A field `beside`
    them, a flat object or a list of such, may stand before the last: where else it stands, the record
    is looked at more closely.
    """
    names = [column.name for column, _ in fields] + ([beside] if beside else [])
    if not all(_PLAIN_NAME.fullmatch(name) for name in names):
        return ()
    parts = [_field(column, kind, column.name in optional) for column, kind in fields]
    if beside:
        parts.insert(len(parts) - 1, f'(?:"{re.escape(beside)}": ?+{_OBJECTS}[, ]{{0,2}}+)?+')
    return (r"\A\{", *parts, r"\}\z")


def _field(column: Column, kind: SqlType, is_optional: bool) -> str:
    repeat = "?+" if is_optional else ""
    return f'(?:"{re.escape(column.name)}":{_value(kind)}[, ]{{0,2}}+){repeat}'


def _value(kind: SqlType) -> str:
    if kind.name == "JSON":
        return rf" ?+(?>{_nested(_nested(_nested(_ATOM)))})"
    return _decimal(kind) if kind.name == "DECIMAL" else _VALUES[kind.name]


def _nested(inner: str) -> str:
    """Also a list or an object of those; that its brackets and commas fit is the reader's business."""
    return rf"{_ATOM}|[\[{{](?>{inner}|[,: ])*+[\]}}]"


def _decimal(kind: SqlType) -> str:
    """No more digits than the type holds: the reader would round them away."""
    scale = kind.scale or 0
    whole = (kind.precision or 0) - scale
    digits = f"[0-9]{{1,{whole}}}+" if whole else "0"
    fraction = rf"(?:\.[0-9]{{1,{scale}}}+)?+" if scale else ""
    return f" ?+(?>-?+{digits}{fraction}|null)"
