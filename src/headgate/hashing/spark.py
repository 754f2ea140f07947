"""Text and hash of a row as one Spark SQL expression of built-in functions; it never raises.

First numbers and times as text: total in both ANSI modes, the same in every time zone. Flat columns
stand side by side in one concat, without functions of functions: those would keep Spark from
compiling the query as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate.conditions.literals import spark_column, spark_literal
from headgate.declarations.errors import Refusal
from headgate.errors import DeclarationError, Fault
from headgate.hashing.contract import HashContract
from headgate.hashing.python import EMPTY, TAGS
from headgate.hashing.types import (
    MOST_DIGITS,
    MOST_SCALE,
    HashType,
    SparkType,
    check_fits,
    parse_spark_type,
    usual_type,
)

# Doubles are exact up to here, and twice rounded still off by less than a half.
_SURE_DIGITS = 15
_LONG_DIGITS = 18
_LONG = "9223372036854775808D"
_DAY = 86_400_000_000
_UNITS = {"s": "unix_seconds", "ms": "unix_millis", "us": "unix_micros"}


def text(value: str) -> str:
    return f"CAST({value} AS STRING)"


def bound(value: str, name: str, body: str) -> str:
    """`body` with `value` worked out once under a name: SQL has no other way inside an expression."""
    return f"element_at(transform(array({value}), {name} -> {body}), 1)"


def decimal_body(column: str, kind: SparkType, scale: int | None) -> str:
    """NULL for NULL alone."""
    if scale is None:
        return exact_decimal(column, kind)
    carried = 1 if kind.scale > scale else 0
    digits = kind.digits + scale + carried
    if digits > MOST_DIGITS:
        return _perhaps_too_long(column, kind, scale)
    if digits <= _SURE_DIGITS:
        rounded = f"CAST({column} AS DECIMAL({digits}, {scale}))" if carried else column
        return text(_times_ten(f"CAST({rounded} AS DOUBLE)", scale))
    if digits <= _LONG_DIGITS:
        held = f"CAST({column} AS DECIMAL({_LONG_DIGITS}, {scale}))"
        return text(f"CAST({held} * {_power(scale)} AS BIGINT)")
    return _digits(f"CAST({column} AS DECIMAL({MOST_DIGITS}, {scale}))", scale)


def _times_ten(double: str, scale: int) -> str:
    product = f"{double} * {spark_literal(float(10**scale))}" if scale else double
    return f"CAST(rint({product}) AS BIGINT)"


def _power(scale: int) -> str:
    return f"{10**scale}BD"


def _digits(value: str, scale: int) -> str:
    """The unscaled digits. How a number below one is printed depends on the ANSI mode."""
    if scale == 0:
        return text(value)
    small = f"CAST({value} AS DECIMAL({scale + 1}, {scale})) * {_power(scale)}"
    whole = text(f"CAST({small} AS DECIMAL({MOST_DIGITS}, 0))")
    return f"IF(abs({value}) < 1BD, {whole}, replace({text(value)}, '.', ''))"


def _perhaps_too_long(column: str, kind: SparkType, scale: int) -> str:
    held = f"try_cast({column} AS DECIMAL({MOST_DIGITS}, {scale}))"
    fits = bound(held, "held", _digits("held", scale))
    return f"CASE WHEN {held} IS NOT NULL THEN {fits} ELSE {exact_decimal(column, kind)} END"


def exact_decimal(column: str, kind: SparkType) -> str:
    """Digits that do not end in zero, and their power of ten."""
    if kind.scale > MOST_SCALE["decimal"]:
        return bound(text(column), "said", _exact_of_text("said"))
    value = column if kind.name == "decimal" else f"CAST({column} AS DECIMAL(20, 0))"
    kept = "trim(TRAILING '0' FROM digits)"
    power = f"length(digits) - length({kept}) - {kind.scale}"
    told = f"IF(digits = '0', '0e0', concat({kept}, 'e', {power}))"
    return bound(_digits(value, kind.scale), "digits", told)


def _exact_of_text(said: str) -> str:
    """From however it was printed, 5E-8 or 0.00000005: no product holds so many digits."""
    mantissa = f"substring_index({said}, 'E', 1)"
    digits = f"trim(LEADING '0' FROM translate({mantissa}, '-.', ''))"
    kept = f"trim(TRAILING '0' FROM {digits})"
    point = f"IF(contains({said}, '.'), length(substring_index({mantissa}, '.', -1)), 0)"
    shift = f"IF(contains({said}, 'E'), try_cast(substring_index({said}, 'E', -1) AS INT), 0)"
    power = f"{shift} - {point} + length({digits}) - length({kept})"
    sign = f"IF(startswith({said}, '-'), '-', '')"
    return f"IF({kept} = '', '0e0', concat({sign}, {kept}, 'e', {power}))"


def double_body(column: str, kind: SparkType, scale: int | None) -> str:
    """NULL for NULL alone."""
    double = column if kind.name == "double" else f"CAST({column} AS DOUBLE)"
    if scale is None:
        return f"IF({column} IS NULL, NULL, format_string('%a', {double} + 0D))"
    product = f"{double} * {spark_literal(float(10**scale))}"
    whole = text(f"CAST(rint({product}) AS BIGINT)")
    other = f"WHEN {column} IS NOT NULL THEN format_string('%a', {double})"
    return f"CASE WHEN abs({product}) < {_LONG} THEN {whole} {other} END"


def timestamp_body(column: str, kind: SparkType, unit: str) -> str:
    """Whole units since 1970; a time without a zone is UTC, whatever the session's zone."""
    if kind.name == "timestamp":
        return text(f"{_UNITS[unit]}({column})")
    day = f"unix_date(CAST({column} AS DATE))"
    seconds = f"({day} * 86400L + hour({column}) * 3600 + minute({column}) * 60 + second({column}))"
    if unit == "s":
        return text(seconds)
    micros = f"CAST(extract(SECOND FROM {column}) * 1000000 AS BIGINT) % 1000000"
    if unit == "ms":
        return text(f"({seconds} * 1000 + ({micros}) div 1000)")
    # The very first second of Spark's calendar does not fit 64 bits as a product.
    return text(f"(CAST({seconds} AS DECIMAL(20, 0)) * 1000000 + {micros})")


def timestamp_iso(column: str, kind: SparkType, unit: str) -> str:
    """As version 1 writes it: `2024-01-31T12:30:00.123Z`."""
    count = f"CAST({timestamp_body(column, kind, 'us')} AS DECIMAL(20, 0))"
    parts = [
        f"CAST(date_from_unix_date(CAST((at - pmod(at, {_DAY})) / {_DAY} AS INT)) AS STRING)",
        "'T'",
        f"lpad(pmod(at, {_DAY}) div 3600000000, 2, '0')",
        "':'",
        "lpad(pmod(at, 3600000000) div 60000000, 2, '0')",
        "':'",
        "lpad(pmod(at, 60000000) div 1000000, 2, '0')",
    ]
    if unit != "s":
        digits = "lpad(CAST(pmod(at, 1000000) AS INT), 6, '0')"
        parts += ["'.'", digits if unit == "us" else f"left({digits}, 3)"]
    return bound(count, "at", f"concat({', '.join(parts)}, 'Z')")


def with_point(body: str, scale: int) -> str:
    """A scaled integer with its point put back; exact and hexadecimal numbers as they are."""
    if scale == 0:
        return body
    digits = f"lpad(ltrim('-', whole), greatest(length(ltrim('-', whole)), {scale + 1}), '0')"
    sign = "IF(startswith(whole, '-'), '-', '')"
    told = (
        f"concat({sign}, left({digits}, length({digits}) - {scale}), '.', right({digits}, {scale}))"
    )
    return bound(body, "whole", f"IF(whole RLIKE '[a-zN]', whole, {told})")


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
