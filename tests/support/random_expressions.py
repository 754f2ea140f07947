"""Random well-typed trees, made through the same constructors as parsed ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import combinations_with_replacement, product
from random import Random

from headgate.conditions import builder
from headgate.conditions.ast import Column, Expr, Literal
from headgate.conditions.functions import FUNCTION_NAMES, call
from headgate.declarations.errors import Refusal
from headgate.declarations.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    SqlType,
    decimal,
)

MONEY, WIDE, FINE = decimal(10, 2), decimal(38, 2), decimal(20, 12)
COLUMNS: dict[str, SqlType] = {
    "i": INT,
    "j": INT,
    "n": BIGINT,
    "d": DOUBLE,
    "e": DOUBLE,
    "f": FLOAT,
    "m": MONEY,
    "w": WIDE,
    "p": FINE,
    "s": STRING,
    "t": STRING,
    "Mixed Case": STRING,
    "back`tick": STRING,
    "day": DATE,
    "date": DATE,
    "ts": TIMESTAMP,
    "tz": TIMESTAMP_LTZ,
    "flag": BOOLEAN,
}
HOSTILE_TEXTS = (
    "",
    "'",
    "\\",
    "\\'",
    "a\\",
    "''",
    '"',
    "`",
    "\x00",
    "\n\r\t",
    "\u202e\u2066",
    "${spark.app.name}",
    "$${x}",
    "--",
    "/* x */",
    "; DROP TABLE x",
    "{{ x }}",
    "%_",
    "\U0001f600",
    "\U000e0041",
    "\u00a0\u2028",
    "\x1a\x7f",
    "2024-01-31",
    " 12 ",
    "1e400",
    "NaN",
    "-9223372036854775809",
    "true",
    "\\u0041",
    "$\\{",
    "12.5",
    " -0.005 ",
    "1e-2147483647",
    "1E+3",
    "0x1p-3",
    "-infinity",
    "1d",
    "\x7f7\x00",
    "2147483648",
    "\u0661",
    "No",
    "12:30",
    "2024-02-29T23:59:59.1234567Z",
    "2024-01-31 12:30:00 Europe/Berlin",
    "1969-12-31 23:59:59.5+02:00",
    "0000-02-29",
    "-290308-12-21 19:59:06",
    "+1234567-8-9 x",
    "\u1e9e\u0130\ufb01\u01c5",
    "A\u03a3 \u03a3a \u0391\u03a3\u0301",
    "\u1c89\ua7dc\U00010d50",
    "\uffff\ue000\U0010ffff",
)
PATTERNS = ("a", "^[0-9]+$", "^\\S{2,9}$", "^ *x", "[^a-z]$", "^(?:[a-c]|\\d{2})?-")
KINDS = (INT, BIGINT, DOUBLE, MONEY, STRING, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_LTZ)
_TEXT_CALLS = ("lower", "upper", "trim", "ltrim", "rtrim")
_MANY = 12  # Spark looks longer lists up in a table instead of comparing one by one
_DATE_PARTS = ("year", "quarter", "month", "day", "dayofweek", "dayofyear")


def random_expr(rng: Random, kind: SqlType, depth: int) -> Expr:
    """A tree of that kind of type; what does not fit together is drawn again."""
    while True:
        try:
            if depth <= 0 or rng.random() < 0.15:
                return _leaf(rng, kind)
            return _inner(rng, kind, depth - 1)
        except Refusal:
            depth -= 1


def every_form() -> list[Expr]:
    """Each cast, function of one value, comparison and operation, on the columns themselves."""
    columns = [Column(name, kind) for name, kind in COLUMNS.items()]
    targets = (*KINDS, WIDE, FINE, decimal(5, 5), decimal(3, 0))
    numbers = [column for column in columns if column.type.is_numeric]
    makers: list[Callable[[], Expr]] = [
        *(partial(builder.cast, column, target) for column in columns for target in targets),
        *(partial(call, name, [column]) for name in FUNCTION_NAMES for column in columns),
        *(
            partial(builder.arithmetic, operator, left, right)
            for operator in ("+", "-", "*", "/", "%")
            for left, right in product(numbers, numbers)
        ),
        *(
            partial(builder.compare, operator, left, right)
            for operator in ("=", "<", ">=", "<=>")
            for left, right in combinations_with_replacement(columns, 2)
        ),
    ]
    return list(dict.fromkeys(made for maker in makers if (made := _admitted(maker)) is not None))


# Comparison, logic and NULL alone, on types that every SQL engine has.
PLAIN = ("i", "j", "n", "d", "e", "m", "s", "t", "flag")


def random_logic(rng: Random, depth: int) -> Expr:
    """A condition of nothing but comparisons, logic and NULL, over PLAIN columns."""
    if depth <= 0:
        return _plain_predicate(rng)
    parts = [random_logic(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    return rng.choice(
        (
            builder.conjunction(parts),
            builder.disjunction(parts),
            builder.negation(parts[0]),
            builder.is_null(parts[0]),
            builder.compare(rng.choice(("=", "<>", "<=>")), parts[0], parts[1]),
            builder.case([(parts[0], parts[1])], parts[-1]),
            call("coalesce", parts),
        )
    )


def _plain_predicate(rng: Random) -> Expr:
    name = rng.choice(PLAIN)
    item = Column(name, COLUMNS[name])
    alike = [Column(other, COLUMNS[other]) for other in PLAIN if _alike(item.type, COLUMNS[other])]
    others = [rng.choice((rng.choice(alike), _constant(rng, item.type))) for _ in range(2)]
    if item.type == BOOLEAN:
        return rng.choice((item, builder.compare("<=>", item, others[0]), builder.is_null(item)))
    operator = rng.choice(("=", "<>", "<", "<=", ">", ">=", "<=>"))
    constants = [_constant(rng, item.type) for _ in range(rng.choice((2, _MANY)))]
    return rng.choice(
        (
            builder.compare(operator, item, others[0]),
            builder.between(item, *others),
            builder.is_in(item, constants),
            builder.is_null(item),
        )
    )


def _alike(one: SqlType, other: SqlType) -> bool:
    exact = {"INT", "BIGINT"}
    return one.name == other.name or {one.name, other.name} <= exact


def _admitted(maker: Callable[[], Expr]) -> Expr | None:
    try:
        return maker()
    except Refusal:
        return None


def random_condition(rng: Random, depth: int) -> Expr:
    return random_expr(rng, BOOLEAN, depth)


def _leaf(rng: Random, kind: SqlType) -> Expr:
    names = [name for name, known in COLUMNS.items() if known.name == kind.name]
    if rng.random() < 0.6:
        name = rng.choice(names)
        return Column(name, COLUMNS[name])
    if kind == TIMESTAMP_LTZ and rng.random() < 0.3:
        return builder.batch_time(COLUMNS)
    return _constant(rng, kind)


def _constant(rng: Random, kind: SqlType) -> Literal:
    match kind.name:
        case "INT":
            return Literal(rng.choice((0, 1, -1, 7, 2147483647, -2147483647)), INT)
        case "BIGINT":
            return Literal(rng.choice((0, 5, 9223372036854775807, -9223372036854775807)), BIGINT)
        case "DOUBLE" | "FLOAT":
            return Literal(rng.choice((0.0, -0.0, 0.1, -2.5, 1e22, 1e-7, 1.7e308)), DOUBLE)
        case "DECIMAL":
            value = Decimal(rng.choice(("0", "0.5", "-1.50", "99999999.99", "0.000001")))
            return Literal(value, builder.decimal_type(value))
        case "BOOLEAN":
            return Literal(rng.random() < 0.5, BOOLEAN)
        case "DATE":
            return Literal(rng.choice((date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31))), DATE)
        case "TIMESTAMP":
            return Literal(rng.choice((datetime(1, 1, 1), datetime(2024, 1, 1, 1, 2, 3, 45))), kind)
        case "TIMESTAMP_LTZ":
            return Literal(datetime(2024, 1, 1, 12, tzinfo=UTC), kind)
        case _:
            return Literal(rng.choice(HOSTILE_TEXTS), STRING)


def _inner(rng: Random, kind: SqlType, depth: int) -> Expr:
    def sub(wanted: SqlType) -> Expr:
        return random_expr(rng, wanted, depth)

    forms: list[Callable[[], Expr]] = [
        lambda: builder.case([(sub(BOOLEAN), sub(kind))], sub(kind)),
        lambda: builder.case([(sub(BOOLEAN), sub(kind)), (sub(BOOLEAN), sub(kind))], None),
        lambda: call("coalesce", [sub(kind), sub(kind)]),
        lambda: call("nullif", [sub(kind), sub(kind)]),
    ]
    if kind != BOOLEAN:
        forms.append(lambda: call(rng.choice(("least", "greatest")), [sub(kind), sub(kind)]))
    own = _own_forms(rng, kind, sub)
    return rng.choice(own if rng.random() < 0.75 else forms)()


def _own_forms(
    rng: Random, kind: SqlType, sub: Callable[[SqlType], Expr]
) -> list[Callable[[], Expr]]:
    if kind == BOOLEAN:
        return _conditions(rng, sub)
    if kind.is_numeric:
        return _numbers(rng, kind, sub)
    if kind == STRING:
        return _texts(rng, sub)
    if kind == DATE:
        day = Literal(rng.choice((0, 1, -1, 400, 2147483647)), INT)
        return [
            lambda: call(rng.choice(("date_add", "date_sub")), [sub(DATE), day]),
            lambda: builder.cast(sub(rng.choice((TIMESTAMP, TIMESTAMP_LTZ, STRING))), DATE),
        ]
    return [lambda: builder.cast(sub(STRING), kind)]


TIMES = (TIMESTAMP, TIMESTAMP_LTZ)


def _numbers(
    rng: Random, kind: SqlType, sub: Callable[[SqlType], Expr]
) -> list[Callable[[], Expr]]:
    forms: list[Callable[[], Expr]] = [
        lambda: builder.arithmetic(rng.choice(("+", "-", "*", "%")), sub(kind), sub(kind)),
        lambda: builder.negative(sub(kind)),
        lambda: call("abs", [sub(kind)]),
    ]
    others = [other for other in (INT, BIGINT, DOUBLE, FLOAT, MONEY, STRING) if other != kind]
    if kind.is_integral:
        forms += [
            lambda: call("length", [sub(STRING)]),
            lambda: call(rng.choice(_DATE_PARTS), [sub(rng.choice((DATE, *TIMES)))]),
            lambda: call(rng.choice(("hour", "minute", "second")), [sub(rng.choice(TIMES))]),
            lambda: call("datediff", [sub(DATE), sub(TIMESTAMP)]),
            lambda: call("unix_timestamp", [sub(rng.choice(TIMES))]),
            lambda: call("seconds_between", [sub(TIMESTAMP_LTZ), sub(TIMESTAMP)]),
            lambda: call("instr", [sub(STRING), sub(STRING)]),
            lambda: call(rng.choice(("floor", "ceil")), [sub(rng.choice((DOUBLE, MONEY)))]),
        ]
    if kind == DOUBLE:
        forms.append(lambda: builder.arithmetic("/", *(sub(rng.choice((INT, MONEY, DOUBLE))),) * 2))
        forms.append(lambda: builder.arithmetic("+", sub(DOUBLE), sub(FLOAT)))
    if kind.name == "DECIMAL":
        forms.append(lambda: call("round", [sub(kind), Literal(rng.randint(0, 3), INT)]))
    decimals = (MONEY, WIDE, FINE, decimal(38, 38), decimal(5, 5))
    target = rng.choice(decimals) if kind.name == "DECIMAL" else kind
    forms.append(lambda: builder.cast(sub(rng.choice(others)), target))
    return forms


def _texts(rng: Random, sub: Callable[[SqlType], Expr]) -> list[Callable[[], Expr]]:
    def count() -> Literal:
        return Literal(rng.choice((0, 1, -1, 5, 2147483647, -2147483647)), INT)

    return [
        lambda: call(rng.choice(_TEXT_CALLS), [sub(STRING)]),
        lambda: call("substring", [sub(STRING), count(), count()]),
        lambda: call(rng.choice(("left", "right")), [sub(STRING), count()]),
        lambda: call("concat", [sub(STRING), sub(STRING)]),
        lambda: call(
            "replace",
            [sub(STRING), Literal(rng.choice(HOSTILE_TEXTS[1:]), STRING), _constant(rng, STRING)],
        ),
        lambda: builder.cast(sub(rng.choice((INT, BIGINT, MONEY, DATE, *TIMES, BOOLEAN))), STRING),
    ]


def _conditions(rng: Random, sub: Callable[[SqlType], Expr]) -> list[Callable[[], Expr]]:
    kind = rng.choice(KINDS)
    other = rng.choice((INT, BIGINT, DOUBLE, FLOAT, MONEY)) if kind.is_numeric else kind
    ordered = kind if kind != BOOLEAN else INT
    operators = ("=", "<>", "<=>") if kind == BOOLEAN else ("=", "<>", "<", "<=", ">", ">=", "<=>")
    several = rng.randint(2, 3)
    return [
        lambda: builder.compare(rng.choice(operators), sub(kind), sub(other)),
        lambda: builder.compare(rng.choice(operators), sub(kind), sub(other)),
        lambda: builder.conjunction([sub(BOOLEAN) for _ in range(several)]),
        lambda: builder.disjunction([sub(BOOLEAN) for _ in range(several)]),
        lambda: builder.negation(sub(BOOLEAN)),
        lambda: builder.is_null(sub(kind)),
        lambda: builder.is_in(sub(kind), [_constant(rng, kind) for _ in range(several)]),
        lambda: builder.is_in(sub(kind), [_constant(rng, kind) for _ in range(_MANY)]),
        lambda: call("regexp_like", [sub(STRING), Literal(rng.choice(PATTERNS), STRING)]),
        lambda: builder.between(sub(ordered), sub(ordered), sub(ordered)),
        lambda: builder.like(
            sub(STRING), Literal(rng.choice(("a%", "%b%", "_", "", "\\%", "\\\\_'%")), STRING)
        ),
        lambda: call(
            rng.choice(("startswith", "endswith", "contains")), [sub(STRING), sub(STRING)]
        ),
        lambda: call("isnan", [sub(DOUBLE)]),
    ]
