"""A row's text and hash as one Spark SQL expression of built-in functions; it never raises.

Flat columns stand side by side in one concat, without functions of functions: those would keep Spark
from compiling the query as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate.conditions.expr_literals import spark_column, spark_literal
from headgate.declarations.refusal import Refusal
from headgate.errors import DeclarationError, Fault
from headgate.hashing.hash_contract import HashContract
from headgate.hashing.hash_contract_types import HashType
from headgate.hashing.spark_numbers import (
    decimal_body,
    double_body,
    text,
    timestamp_body,
    timestamp_iso,
    with_point,
)
from headgate.hashing.spark_types import SparkType, check_fits, parse_spark_type, usual_type
from headgate.hashing.values import EMPTY, TAGS

_DIGESTS = {"SHA-256": "sha2({}, 256)", "SHA-512": "sha2({}, 512)", "MD5": "md5({})"}
_TEXTS = ("string", "uuid")


@dataclass(frozen=True)
class Part:
    """A column, or a name inside a collection, with its logical type and Spark's."""

    value: str
    kind: HashType
    column: SparkType
    depth: int = 0

    @property
    def is_null(self) -> str:
        return f"{self.value} IS NULL"

    @property
    def null(self) -> str:
        """What stands for null."""
        return EMPTY[self.kind.name].decode() if self.kind.nulls_empty else "n;"


def row_hash_sql(
    contract: HashContract, types: Mapping[str, str] | None = None, source: str = ""
) -> str:
    """The hash of a row, in lower-case hexadecimal.

    `types` are the table's column types, as `dict(frame.dtypes)` tells them: with them the expression
    is quicker, and a column that does not fit is refused here. Without them each is the usual one.
    """
    return _DIGESTS[contract.algorithm].format(row_text_sql(contract, types, source))


def row_text_sql(
    contract: HashContract, types: Mapping[str, str] | None = None, source: str = ""
) -> str:
    """The text of a row."""
    parts = _parts(contract, types, source)
    if contract.hash_version == 1:
        ordered = sorted(parts, key=lambda name: name.encode())
        return f"concat_ws('|', {', '.join(_old_text(parts[name]) for name in ordered)})"
    pieces = [piece for part in parts.values() for piece in _pieces(part)]
    return _concat(pieces)


def usual_types(contract: HashContract) -> dict[str, str]:
    """The column types that are taken where none are given; exact decimals have none."""
    known = (field for field in contract.fields if not _unknown(field.kind))
    return {field.name: str(usual_type(field.kind)) for field in known}


def _unknown(kind: HashType) -> bool:
    """Whether it has an exact decimal in it, whose column's own scale nobody can guess."""
    own = kind.name == "decimal" and kind.scale is None
    return own or any(_unknown(item) for item in kind.items)


def _parts(contract: HashContract, types: Mapping[str, str] | None, source: str) -> dict[str, Part]:
    found, faults = dict[str, Part](), list[Fault]()
    for field in contract.fields:
        try:
            column = _column_type(field.name, field.kind, types)
            check_fits(field.kind, column)
            found[field.name] = Part(spark_column(field.name, source), field.kind, column)
        except Refusal as refusal:
            faults.append(Fault(contract.name, None, field.name, refusal.what, refusal.fix))
    if faults:
        raise DeclarationError(faults)
    return found


def _column_type(name: str, kind: HashType, types: Mapping[str, str] | None) -> SparkType:
    if types is None:
        return usual_type(kind)
    if name not in types:
        raise Refusal("the table has no such column", "Add it, or take it out of the contract.")
    return parse_spark_type(types[name])


def _concat(pieces: list[str]) -> str:
    return pieces[0] if len(pieces) == 1 else f"concat({', '.join(pieces)})"


def _pieces(part: Part) -> Iterator[str]:
    """The text in parts that are never NULL, so that all columns share one concat."""
    name = part.kind.name
    if name in _TEXTS:
        yield from _text_pieces(part)
    elif name == "boolean":
        yield f"CASE WHEN {part.value} THEN 'btrue;' WHEN NOT {part.value} THEN 'bfalse;' ELSE 'n;' END"
    elif part.kind.items:
        yield f"coalesce({_collection(part)}, {spark_literal(part.null)})"
    else:
        yield f"IF({part.is_null}, {spark_literal(part.null[:-1])}, '{TAGS[name]}')"
        yield f"coalesce({_body(part)}, '')"
        yield "';'"


def _text_pieces(part: Part) -> Iterator[str]:
    value, tag = _string(part), TAGS[part.kind.name]
    yield f"IF({part.is_null}, {spark_literal(part.null)}, '{tag}')"
    yield f"coalesce({text(f'octet_length({value})')}, '')"
    yield f"IF({part.is_null}, '', ':')"
    yield f"coalesce({value}, '')"


def _string(part: Part) -> str:
    if part.kind.name == "uuid":
        return f"lower({part.value})"
    return f"trim({part.value})" if part.kind.trim else part.value


def _body(part: Part) -> str:
    """What stands between tag and end; NULL for NULL."""
    match part.kind.name:
        case "decimal":
            return decimal_body(part.value, part.column, part.kind.scale)
        case "double":
            return double_body(part.value, part.column, part.kind.scale)
        case "timestamp":
            return timestamp_body(part.value, part.column, str(part.kind.unit))
        case "date":
            return text(f"unix_date({part.value})")
        case "binary":
            return f"hex({part.value})"
        case _:
            return text(part.value)


def _collection(part: Part) -> str:
    """NULL for NULL."""
    name, tag = f"x{part.depth}", TAGS[part.kind.name]
    items = [_concat(list(_pieces(item))) for item in _inside(part, name)]
    source = part.value if len(items) == 1 else f"map_entries({part.value})"
    texts = f"transform({source}, {name} -> {_concat(items)})"
    if part.kind.name == "set":
        texts = f"array_distinct({texts})"
    if part.kind.name != "list":
        texts = f"sort_array({texts})"
    return f"concat('{tag}', size({texts}), ':', array_join({texts}, ''))"


def _inside(part: Part, name: str) -> Iterator[Part]:
    values = (name,) if len(part.kind.items) == 1 else (f"{name}.key", f"{name}.value")
    for value, kind, column in zip(values, part.kind.items, part.column.items, strict=True):
        yield Part(value, kind, column, part.depth + 1)


def _old_text(part: Part) -> str:
    """The text of version 1; never NULL, since concat_ws leaves NULL out, bar and all."""
    match part.kind.name:
        case "string" | "uuid":
            body = _string(part)
        case "list" | "set" | "map":
            body = _collection(part)
        case "decimal" | "double" if part.kind.scale is not None:
            body = with_point(_body(part), part.kind.scale)
        case "date":
            body = text(part.value)
        case "timestamp":
            body = timestamp_iso(part.value, part.column, str(part.kind.unit))
        case _:
            body = _body(part)
    return f"coalesce({body}, '')"
