"""The functions of the condition language: a closed table, each total in both ANSI modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from headgate.conditions import builder
from headgate.conditions.ast import NULL, Cast, Expr, Function, Literal
from headgate.conditions.regex.pattern import canonical
from headgate.conditions.type_coercion import agree, shown
from headgate.declarations.errors import Refusal, suggestion
from headgate.declarations.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAX_DECIMAL_PRECISION,
    STRING,
    SqlType,
    decimal,
)

Maker: TypeAlias = Callable[[tuple[Expr, ...]], Expr]


@dataclass(frozen=True)
class Parameter:
    """What an argument has to be."""

    words: str
    accepts: Callable[[Expr], bool]


@dataclass(frozen=True)
class Signature:
    """A function that is rendered under its own name, with the type of its result."""

    parameters: tuple[Parameter, ...]
    result: SqlType
    words: str
    variadic: bool = False


def _is_count(item: Expr) -> bool:
    return isinstance(item, Literal) and item.type == INT and item.value is not None


def _is_text(item: Expr) -> TypeGuard[Literal]:
    return isinstance(item, Literal) and item.type == STRING


def _is_date_or_time(item: Expr) -> bool:
    return item.type == DATE or item.type.is_time


_TEXT = Parameter("text", lambda item: item.type == STRING)
_FIXED = Parameter("a text in quotes, not empty", lambda item: _is_text(item) and bool(item.value))
_FIXED_OR_EMPTY = Parameter("a text in quotes", _is_text)
_COUNT = Parameter("a whole number written out", _is_count)
_DAY = Parameter("a date or a time", _is_date_or_time)
_TIME = Parameter("a time", lambda item: item.type.is_time)
_REAL = Parameter("a FLOAT or DOUBLE", lambda item: item.type in (FLOAT, DOUBLE))

SIGNATURES: dict[str, Signature] = {
    "lower": Signature((_TEXT,), STRING, "the text in lower case"),
    "upper": Signature((_TEXT,), STRING, "the text in upper case"),
    "trim": Signature((_TEXT,), STRING, "the text without blanks at its ends"),
    "ltrim": Signature((_TEXT,), STRING, "the text without blanks at its beginning"),
    "rtrim": Signature((_TEXT,), STRING, "the text without blanks at its end"),
    "length": Signature((_TEXT,), INT, "the number of characters"),
    "substring": Signature(
        (_TEXT, _COUNT, _COUNT), STRING, "so many characters from a place counted from 1"
    ),
    "left": Signature((_TEXT, _COUNT), STRING, "the first characters"),
    "right": Signature((_TEXT, _COUNT), STRING, "the last characters"),
    "replace": Signature(
        (_TEXT, _FIXED, _FIXED_OR_EMPTY), STRING, "the text with one piece put for another"
    ),
    "concat": Signature((_TEXT,), STRING, "the texts joined; NULL if one is NULL", variadic=True),
    "startswith": Signature((_TEXT, _TEXT), BOOLEAN, "whether the text begins with the other"),
    "endswith": Signature((_TEXT, _TEXT), BOOLEAN, "whether the text ends with the other"),
    "contains": Signature((_TEXT, _TEXT), BOOLEAN, "whether the text has the other in it"),
    "instr": Signature((_TEXT, _TEXT), INT, "where the other begins, counted from 1; 0 if nowhere"),
    "isnan": Signature((_REAL,), BOOLEAN, "whether it is not a number; FALSE for NULL"),
    "year": Signature((_DAY,), INT, "the year"),
    "quarter": Signature((_DAY,), INT, "the quarter, 1 to 4"),
    "month": Signature((_DAY,), INT, "the month, 1 to 12"),
    "day": Signature((_DAY,), INT, "the day of the month"),
    "dayofweek": Signature((_DAY,), INT, "the day of the week, Sunday = 1"),
    "dayofyear": Signature((_DAY,), INT, "the day of the year"),
    "hour": Signature((_TIME,), INT, "the hour, 0 to 23"),
    "minute": Signature((_TIME,), INT, "the minute"),
    "second": Signature((_TIME,), INT, "the second"),
    "unix_timestamp": Signature(
        (_TIME,), BIGINT, "whole seconds since 1970; a time without a zone is taken as UTC"
    ),
    "datediff": Signature((_DAY, _DAY), INT, "days from the second to the first"),
    "date_add": Signature((_DAY, _COUNT), DATE, "the date so many days later"),
    "date_sub": Signature((_DAY, _COUNT), DATE, "the date so many days earlier"),
}
_SYNONYMS = {
    "substr": "substring",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "lcase": "lower",
    "ucase": "upper",
    "dayofmonth": "day",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "ceiling": "ceil",
    "rlike": "regexp_like",
    "regexp": "regexp_like",
}
_REFUSED = {
    **dict.fromkeys(("reflect", "java_method"), "it would run arbitrary code"),
    **dict.fromkeys(
        ("now", "current_timestamp", "current_date", "curdate", "localtimestamp"),
        "its value changes from one replay to the next",
    ),
    **dict.fromkeys(
        ("rand", "random", "randn", "uuid", "shuffle"), "its value changes at every call"
    ),
    **dict.fromkeys(
        ("count", "sum", "avg", "min", "max", "first", "last", "collect_list", "any_value"),
        "a condition sees one row at a time",
    ),
    **dict.fromkeys(
        ("regexp_extract", "regexp_replace", "regexp_count", "regexp_instr", "regexp_substr"),
        "a regular expression can take time beyond measure",
    ),
}


def is_known(name: str) -> bool:
    """Whether the name is one of the language's functions."""
    return name.lower() in FUNCTION_NAMES


def is_refused(name: str) -> bool:
    """Whether Spark has a function of that name which the language leaves out on purpose."""
    return name.lower() in _REFUSED


def call(name: str, arguments: Sequence[Expr]) -> Expr:
    """The call of a function of the table; any other is refused."""
    folded = name.lower()
    known = _SYNONYMS.get(folded, folded)
    maker = _MAKERS.get(known)
    if maker is not None:
        return maker(tuple(arguments))
    signature = SIGNATURES.get(known)
    if signature is None:
        raise _unknown(name)
    return _plain(known, signature, tuple(arguments))


def _unknown(name: str) -> Refusal:
    why = _REFUSED.get(name.lower(), "")
    near = suggestion(name, FUNCTION_NAMES, "functions")
    fix = near if near.startswith("Did") and not why else "docs/conditions.md lists what there is."
    return Refusal(f"the function `{name}` is not part of the condition language", fix, why=why)


def _plain(name: str, signature: Signature, arguments: tuple[Expr, ...]) -> Expr:
    wanted = signature.parameters
    if signature.variadic:
        wanted = wanted * max(len(arguments), 1)
    _count(name, arguments, len(wanted), len(wanted))
    for at, (argument, parameter) in enumerate(zip(arguments, wanted, strict=True), 1):
        if not parameter.accepts(argument):
            raise Refusal(
                f"argument {at} of {name} is {shown(argument)}", f"It must be {parameter.words}."
            )
    return Function(name, arguments, signature.result)


def _count(name: str, arguments: Sequence[Expr], least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"at least {least}"
        raise Refusal(
            f"{name} has {len(arguments)} arguments", f"It takes {wanted}, separated by commas."
        )


_ANY_NUMBER = 1_000
# Spark turns the sign of a decimal by way of 34 digits: more are rounded, and may then not fit.
_MAX_ABS_DIGITS = 34


def _agreeing(name: str, least: int) -> Maker:
    def make(arguments: tuple[Expr, ...]) -> Expr:
        _count(name, arguments, least, _ANY_NUMBER)
        agreed, common = agree(arguments)
        if name != "coalesce" and common == BOOLEAN:
            raise Refusal("TRUE and FALSE have no order", "Use AND or OR.")
        return Function(name, agreed, common)

    return make


def _if(arguments: tuple[Expr, ...]) -> Expr:
    _count("if", arguments, 3, 3)
    when, then, otherwise = arguments
    return builder.case([(when, then)], otherwise)


def _nullif(arguments: tuple[Expr, ...]) -> Expr:
    _count("nullif", arguments, 2, 2)
    item, unwanted = arguments
    return builder.case([(builder.compare("=", item, unwanted), Literal(None, NULL))], item)


def _number(name: str, item: Expr) -> Expr:
    if not item.type.is_numeric:
        raise Refusal(f"{name} needs a number, not {shown(item)}", "Cast it with try_cast first.")
    return Cast(item, DOUBLE) if item.type == FLOAT else item


def _abs(arguments: tuple[Expr, ...]) -> Expr:
    _count("abs", arguments, 1, 1)
    item = _number("abs", arguments[0])
    if (item.type.precision or 0) > _MAX_ABS_DIGITS:
        raise Refusal(
            f"abs of {shown(item)} is not exact in Spark",
            f"Cast it to a DECIMAL with at most {_MAX_ABS_DIGITS} digits, or to DOUBLE.",
        )
    if not item.type.is_integral:
        return Function("abs", (item,), item.type)
    # The least INT has no positive counterpart: `abs` raises on it, a difference gives NULL.
    below = builder.compare("<", item, Literal(0, INT))
    return builder.case([(below, builder.negative(item))], item)


def _rounded(name: str) -> Maker:
    def make(arguments: tuple[Expr, ...]) -> Expr:
        _count(name, arguments, 1, 1)
        item = _number(name, arguments[0])
        if item.type.is_integral:
            return item
        if item.type == DOUBLE:
            return Function(name, (item,), BIGINT)
        precision, scale = item.type.precision or 0, item.type.scale or 0
        whole = precision if scale == 0 else precision - scale + 1
        return Function(name, (item,), decimal(whole, 0))

    return make


def _round(arguments: tuple[Expr, ...]) -> Expr:
    _count("round", arguments, 2, 2)
    item, places = arguments
    scale = places.value if isinstance(places, Literal) else None
    if item.type.name != "DECIMAL" or not isinstance(scale, int) or scale < 0:
        raise Refusal(
            "round takes a DECIMAL and a number of decimals",
            "Write for example round(CAST(… AS DECIMAL(18, 6)), 2).",
        )
    precision, before = item.type.precision or 0, item.type.scale or 0
    kept = min(scale, before)
    places = min(precision - before + kept + 1, MAX_DECIMAL_PRECISION)
    return Function("round", arguments, decimal(places, kept))


def _cased(name: str) -> Maker:
    def make(arguments: tuple[Expr, ...]) -> Expr:
        made = _plain(name, SIGNATURES[name], arguments)
        inner = arguments[0]
        # Spark leaves the inner one of two away, though lower(upper('ß')) would be 'ss'.
        if isinstance(inner, Function) and inner.name in _CASES:
            return Function(name, inner.arguments, made.type)
        return made

    return make


def _replace(arguments: tuple[Expr, ...]) -> Expr:
    made = _plain("replace", SIGNATURES["replace"], arguments)
    old, new = (len(str(item.value).encode()) for item in arguments[1:] if _is_text(item))
    if new > old:
        raise Refusal(
            "the new piece is longer than the old one",
            "Put a piece of the same length or less.",
            why="nested calls could make a text that no memory holds",
        )
    return made


def _regexp_like(arguments: tuple[Expr, ...]) -> Expr:
    _count("regexp_like", arguments, 2, 2)
    item, pattern = arguments
    if item.type != STRING:
        raise Refusal(f"RLIKE needs text, not {shown(item)}", "Compare it instead.")
    if not _is_text(pattern) or not isinstance(pattern.value, str):
        raise Refusal("the pattern of RLIKE is not a constant", "Write it as text in quotes.")
    return Function("regexp_like", (item, Literal(canonical(pattern.value), STRING)), BOOLEAN)


def _date(arguments: tuple[Expr, ...]) -> Expr:
    _count("date", arguments, 1, 1)
    return builder.cast(arguments[0], DATE)


def _seconds_between(arguments: tuple[Expr, ...]) -> Expr:
    _count("seconds_between", arguments, 2, 2)
    later, earlier = (call("unix_timestamp", (argument,)) for argument in arguments)
    return builder.arithmetic("-", later, earlier)


def _operation(name: str, make: Callable[[Expr, Expr], Expr]) -> Maker:
    def maker(arguments: tuple[Expr, ...]) -> Expr:
        _count(name, arguments, 2, 2)
        return make(arguments[0], arguments[1])

    return maker


_CASES = ("lower", "upper")
_MAKERS: dict[str, Maker] = {
    **{name: _cased(name) for name in _CASES},
    "coalesce": _agreeing("coalesce", 1),
    "least": _agreeing("least", 2),
    "greatest": _agreeing("greatest", 2),
    "if": _if,
    "nullif": _nullif,
    "abs": _abs,
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "round": _round,
    "replace": _replace,
    "regexp_like": _regexp_like,
    "date": _date,
    "seconds_between": _seconds_between,
    "mod": _operation("mod", lambda a, b: builder.arithmetic("%", a, b)),
    "try_add": _operation("try_add", lambda a, b: builder.arithmetic("+", a, b)),
    "try_subtract": _operation("try_subtract", lambda a, b: builder.arithmetic("-", a, b)),
    "try_multiply": _operation("try_multiply", lambda a, b: builder.arithmetic("*", a, b)),
    "try_divide": _operation("try_divide", lambda a, b: builder.arithmetic("/", a, b)),
    "try_mod": _operation("try_mod", lambda a, b: builder.arithmetic("%", a, b)),
}
FUNCTION_NAMES = tuple(sorted({*SIGNATURES, *_MAKERS, *_SYNONYMS}))
