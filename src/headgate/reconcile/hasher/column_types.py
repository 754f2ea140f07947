"""Which columns of Cassandra can be hashed as which logical types, the same as in Kafka Connect.

What one side reads as a text and the other as a number, or each writes in its own way, would differ
for equal rows: it is refused at the start, in words.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.errors import SettingsError
from headgate.hashing.hash_contract_types import HashType
from headgate.reconcile.cassandra.session import TableShape

_WHOLE = ("tinyint", "smallint", "int", "bigint", "varint", "counter")
SCALARS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("text", "varchar", "ascii"), ("string", "uuid")),
    "boolean": ("boolean",),
    **dict.fromkeys(_WHOLE, ("integer", "decimal", "double")),
    "decimal": ("decimal",),
    **dict.fromkeys(("float", "double"), ("double",)),
    "timestamp": ("timestamp",),
    "date": ("date",),
    **dict.fromkeys(("uuid", "timeuuid"), ("uuid",)),
    "blob": ("binary",),
}
COLLECTIONS: Mapping[str, tuple[str, ...]] = {
    "list": ("list", "set"),
    "set": ("set",),
    "map": ("map",),
}


def require_types(shape: TableShape, kinds: Mapping[str, HashType]) -> None:
    """Refuse a contract that reads a column as something that it is not."""
    for name, kind in kinds.items():
        column = shape.columns.get(name)
        if column is not None and not fits(column.cql_type, kind):
            allowed = ", ".join(allowed_of(column.cql_type)) or "none"
            raise SettingsError(
                f"{shape.name}: the column {name} is {column.cql_type}"
                f" and cannot be hashed as {kind.name}",
                why=f"allowed: {allowed}",
                fix="correct the field's type in the hash contract, or take the field out",
            )


def fits(cql_type: str, kind: HashType) -> bool:
    """Whether values of the column are values of the logical type."""
    word, inner = _parts(cql_type)
    if word == "frozen":
        return fits(inner[0], kind)
    if kind.name not in allowed_of(cql_type):
        return False
    return all(fits(part, item) for part, item in zip(inner, kind.items, strict=True))


def allowed_of(cql_type: str) -> tuple[str, ...]:
    word, inner = _parts(cql_type)
    if word == "frozen":
        return allowed_of(inner[0])
    return COLLECTIONS.get(word, ()) if inner else SCALARS.get(word, ())


def _parts(cql_type: str) -> tuple[str, list[str]]:
    """`map<int, frozen<list<text>>>` as map, and [int, frozen<list<text>>]."""
    word, opened, rest = cql_type.strip().partition("<")
    if not opened:
        return word, []
    parts, depth = [""], 0
    for sign in rest.rpartition(">")[0]:
        depth += (sign == "<") - (sign == ">")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return word, [part.strip() for part in parts]
