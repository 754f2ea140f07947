"""Turn SQL text into the tree of the closed language: what is not on a list here is refused.

Faults are gathered over the whole text. A part with a fault is None to whatever is around it, which
then reports nothing of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from sqlglot import exp

from headgate.conditions import builder
from headgate.conditions.ast import NULL, Column, Comparison, Expr, Literal, Operation, size
from headgate.conditions.functions import call, is_known, is_refused
from headgate.conditions.grammar import ExprError, ExprFault, position_of, syntax
from headgate.conditions.literals import spark_column
from headgate.conditions.spark_sql import BATCH_TIME
from headgate.declarations.errors import Refusal, suggestion
from headgate.declarations.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    SqlType,
    parse_type,
)

_COMPARISONS: dict[type[exp.Expr], Comparison] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_OPERATIONS: dict[type[exp.Expr], Operation] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_TYPES: dict[exp.DType, SqlType] = {
    exp.DType.TEXT: STRING,
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP_LTZ,
}
_OUTSIDE: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Query: ("a subquery", "Join or look the value up before the condition."),
    exp.Exists: ("a subquery", "Join or look the value up before the condition."),
    exp.Window: ("a window", "A condition sees one row at a time."),
    exp.Lambda: ("a lambda", "Use a plain expression."),
    exp.Placeholder: ("a parameter", "Write the value out."),
    exp.Parameter: ("a parameter", "Write the value out."),
    exp.Star: ("`*`", "Name a column."),
    exp.Alias: ("an alias", "Write the expression alone."),
    exp.Interval: ("an interval", "Use date_add, date_sub or datediff."),
    exp.ILike: ("ILIKE", "Write lower(…) LIKE '…'."),
    exp.Escape: ("ESCAPE", "Take a character literally with a backslash: '50\\\\%'."),
    exp.IntDiv: ("DIV", "Write CAST(a / b AS BIGINT)."),
    exp.RawString: ("a raw text", "Write '…' with \\\\ for a backslash."),
    exp.HexString: ("a hexadecimal constant", "Write a decimal number."),
    exp.Tuple: ("a tuple", "Compare the values one by one."),
    exp.Distinct: ("DISTINCT", "A condition sees one row at a time."),
    exp.Bracket: ("an index", "Declare the element as a column of its own."),
    exp.Dot: ("a path", "Declare the field as a column of its own."),
    exp.Collate: ("COLLATE", "Use lower(…) to compare without regard to case."),
}


MAX_SIZE = 100_000
_TWO = frozenset({"this", "expression"})
# The parts a node may have: one that is not here (`negate`, `symmetric`, a format) would be dropped
# without a word. What is written only as a note for other dialects is left out of account.
_PARTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Column: frozenset({"this", "table"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Null: frozenset(),
    exp.Boolean: frozenset({"this"}),
    exp.Paren: frozenset({"this"}),
    exp.Not: frozenset({"this"}),
    exp.Neg: frozenset({"this"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.RegexpLike: frozenset({"this", "expression", "negate"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.In: frozenset({"this", "expressions"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to", "safe"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.DPipe: frozenset({"this", "expression", "safe"}),
    exp.Div: frozenset({"this", "expression", "typed", "safe"}),
}


def parse_condition(
    text: str,
    columns: Mapping[str, SqlType],
    *,
    sources: Collection[str] = (),
    batch_time: bool = False,
) -> Expr:
    """The condition in `text`; an ExprError has every fault in it.

    With `sources`, a column is known by its key `t1.action` and written so. With `batch_time`, the
    word BATCH_TIME is the time of the batch.
    """
    parser = _Parser(columns, sources, knows_time=batch_time)
    node = syntax(text)
    return parser.finish(parser.made(node, builder.boolean, parser.expr(node)))


def parse_value(
    text: str,
    columns: Mapping[str, SqlType],
    expected: SqlType | None = None,
    *,
    sources: Collection[str] = (),
    batch_time: bool = False,
) -> Expr:
    """The value in `text`, which must be of the type `expected` where one is given."""

    def typed(item: Expr) -> Expr:
        if item.type == NULL:
            raise Refusal("NULL alone has no type", "Name a column.")
        if expected is not None and item.type.name != expected.name:
            raise Refusal(f"this is {item.type}, not {expected}", f"Write CAST(… AS {expected}).")
        return item

    parser = _Parser(columns, sources, knows_time=batch_time)
    node = syntax(text)
    return parser.finish(parser.made(node, typed, parser.expr(node)))


class _Parser:
    def __init__(
        self, columns: Mapping[str, SqlType], sources: Collection[str], *, knows_time: bool
    ) -> None:
        self.columns = columns
        self.sources = sources
        self.knows_time = knows_time
        self.faults: list[ExprFault] = []
        self.sizes: dict[int, tuple[Expr, int]] = {}

    def finish(self, result: Expr | None) -> Expr:
        if result is None or self.faults:
            raise ExprError(self.faults)
        return result

    def made(self, node: exp.Expr, make: Callable[..., Expr], *parts: Expr | None) -> Expr | None:
        """What `make` makes of the parts, unless one has a fault or they do not fit."""
        if any(part is None for part in parts):
            return None
        try:
            return self._bounded(make(*parts))
        except Refusal as refusal:
            return self.refuse(node, refusal.what, refusal.fix, refusal.why)

    def _bounded(self, item: Expr) -> Expr:
        if size(item, self.sizes) > MAX_SIZE:
            raise Refusal(
                "the condition becomes too large",
                "Nest fewer calls of abs, nullif, coalesce and casts of text, or split it.",
                why="what they stand for names its argument more than once",
            )
        return item

    def refuse(self, node: exp.Expr, what: str, fix: str, why: str = "") -> None:
        self.faults.append(ExprFault(what, why, fix, position_of(node)))

    def expr(self, node: exp.Expr) -> Expr | None:
        """The tree of one node; None after a fault."""
        handle = _HANDLERS.get(type(node))
        allowed = _PARTS.get(type(node), _TWO)
        extra = [part for key, part in node.args.items() if part and key not in allowed]
        if handle is None or extra:
            return self._outside(node, *extra)
        return handle(self, node)

    def _outside(self, node: exp.Expr, *parts: object) -> None:
        for kind, (name, fix) in _OUTSIDE.items():
            if any(isinstance(found, kind) for found in (node, *parts)):
                return self.refuse(node, f"{name} is not part of the condition language", fix)
        if isinstance(node, exp.Column) and parts:
            return self._elsewhere(node)
        shown = node.sql("spark")[:40]
        return self.refuse(
            node,
            f"`{shown}` is not part of the condition language",
            "Use what is listed in docs/conditions.md.",
        )

    def column(self, node: exp.Expr) -> Expr | None:
        name = node.name
        if not isinstance(node.this, exp.Identifier):
            return self._outside(node.this)
        if node.text("table"):
            return self._qualified(node)
        if name in self.columns and not self._is_qualified(name):
            return Column(name, self.columns[name])
        if is_refused(name):
            return self.made(node, lambda: call(name, ()))
        return self._no_column(node, name)

    def _qualified(self, node: exp.Expr) -> Expr | None:
        source, name = node.text("table"), node.name
        if self.knows_time and f"{source}.{name}" == BATCH_TIME:
            return self.made(node, partial(builder.batch_time, self.columns))
        if source not in self.sources:
            return self._elsewhere(node)
        key = f"{source}.{name}"
        if key not in self.columns:
            return self._no_column(node, key)
        return Column(name, self.columns[key], source)

    def _is_qualified(self, key: str) -> bool:
        return any(key.startswith(f"{source}.") for source in self.sources)

    def _no_column(self, node: exp.Expr, name: str) -> None:
        def refuse() -> Expr:
            known = [f"{source}.{name}" for source in self.sources]
            ends = [key for key in (name, *known) if key in self.columns]
            near = suggestion(name, self.columns, "columns")
            fix = f"Write {' or '.join(map(self._written, ends))}." if ends else near
            raise Refusal(f"there is no column `{name}`", fix)

        self.made(node, refuse)

    def _written(self, key: str) -> str:
        source, _, name = key.partition(".")
        return spark_column(name, source)

    def _elsewhere(self, node: exp.Expr) -> None:
        """A name with more before it than a source that is known."""
        fix = f"Write the column alone: {node.name}."
        if self.sources:
            fix = suggestion(f"{node.text('table')}.{node.name}", self.columns, "columns")
        self.refuse(node, f"`{node.sql('spark')}` names a table", fix)

    def constant(self, node: exp.Expr) -> Expr | None:
        if isinstance(node, exp.Literal) and not node.is_string:
            return self.made(node, lambda: builder.number(node.name))
        if isinstance(node, exp.Null):
            return Literal(None, NULL)
        if isinstance(node, exp.Boolean):
            return Literal(bool(node.this), BOOLEAN)
        return Literal(node.name, STRING)

    def paren(self, node: exp.Expr) -> Expr | None:
        return self.expr(node.this)

    def comparison(self, node: exp.Expr) -> Expr | None:
        operator = _COMPARISONS[type(node)]
        left, right = self.expr(node.this), self.expr(node.expression)
        return self.made(node, partial(builder.compare, operator), left, right)

    def different(self, node: exp.Expr) -> Expr | None:
        left, right = self.expr(node.this), self.expr(node.expression)
        return self.made(node, _different, left, right)

    def operation(self, node: exp.Expr) -> Expr | None:
        operator = _OPERATIONS[type(node)]
        left, right = self.expr(node.this), self.expr(node.expression)
        return self.made(node, partial(builder.arithmetic, operator), left, right)

    def logic(self, node: exp.Expr) -> Expr | None:
        join = builder.conjunction if isinstance(node, exp.And) else builder.disjunction
        items = [self._condition(item) for item in node.flatten()]
        return self.made(node, partial(_gathered, join), *items)

    def _condition(self, node: exp.Expr) -> Expr | None:
        return self.made(node, builder.boolean, self.expr(node))

    def negation(self, node: exp.Expr) -> Expr | None:
        return self.made(node, builder.negation, self.expr(node.this))

    def negative(self, node: exp.Expr) -> Expr | None:
        return self.made(node, builder.negative, self.expr(node.this))

    def test(self, node: exp.Expr) -> Expr | None:
        item, wanted = self.expr(node.this), node.expression
        if isinstance(wanted, exp.Null):
            return self.made(node, builder.is_null, item)
        if isinstance(wanted, exp.Boolean):
            truth = Literal(bool(wanted.this), BOOLEAN)
            return self.made(node, partial(builder.compare, "<=>"), item, truth)
        return self._outside(node)

    def membership(self, node: exp.Expr) -> Expr | None:
        parts = [self.expr(part) for part in (node.this, *node.expressions)]
        return self.made(node, _is_in, *parts)

    def between(self, node: exp.Expr) -> Expr | None:
        parts = [self.expr(node.args[key]) for key in ("this", "low", "high")]
        return self.made(node, builder.between, *parts)

    def like(self, node: exp.Expr) -> Expr | None:
        item = self.made(node, builder.like, self.expr(node.this), self.expr(node.expression))
        return self.made(node, builder.negation, item) if node.args.get("negate") else item

    def matching(self, node: exp.Expr) -> Expr | None:
        parts = self.expr(node.this), self.expr(node.expression)
        item = self.made(node, partial(_gathered, partial(call, "regexp_like")), *parts)
        return self.made(node, builder.negation, item) if node.args.get("negate") else item

    def case(self, node: exp.Expr) -> Expr | None:
        subject = node.args.get("this")
        parts: list[Expr | None] = []
        for branch in node.args["ifs"]:
            parts += [self._when(branch, subject), self.expr(branch.args["true"])]
        default = node.args.get("default")
        if default is not None:
            parts.append(self.expr(default))
        return self.made(node, _case, *parts)

    def _when(self, branch: exp.Expr, subject: exp.Expr | None) -> Expr | None:
        if subject is None:
            return self._condition(branch.this)
        parts = self.expr(subject), self.expr(branch.this)
        return self.made(branch, partial(builder.compare, "="), *parts)

    def cast(self, node: exp.Expr) -> Expr | None:
        target = self._type(node.args["to"])
        item = self.expr(node.this)
        return (
            None if target is None else self.made(node, partial(builder.cast, target=target), item)
        )

    def _type(self, node: exp.Expr) -> SqlType | None:
        if any(part for key, part in node.args.items() if key not in {"this", "expressions"}):
            return self._outside(node, *node.args.values())
        plain = _TYPES.get(node.this)
        if plain is not None and not node.expressions:
            return plain
        name = plain.name if plain is not None else node.this.name
        numbers = ", ".join(part.sql("spark") for part in node.expressions)
        try:
            return parse_type(f"{name}({numbers})" if numbers else name)
        except Refusal as refusal:
            return self.refuse(node, refusal.what, refusal.fix)

    def function(self, node: exp.Expr) -> Expr | None:
        if not isinstance(node.this, str):
            return self._outside(node)
        if not is_known(node.name):
            return self.made(node, lambda: call(node.name, ()))
        parts = [self.expr(part) for part in node.expressions]
        return self.made(node, partial(_gathered, partial(call, node.name)), *parts)

    def joined(self, node: exp.Expr) -> Expr | None:
        parts = [self.expr(part) for part in node.flatten()]
        return self.made(node, partial(_gathered, partial(call, "concat")), *parts)


def _gathered(make: Callable[[tuple[Expr, ...]], Expr], *parts: Expr) -> Expr:
    return make(parts)


def _is_in(item: Expr, *options: Expr) -> Expr:
    return builder.is_in(item, options)


def _different(left: Expr, right: Expr) -> Expr:
    return builder.negation(builder.compare("<=>", left, right))


def _case(*parts: Expr) -> Expr:
    """Conditions and values by turns; an odd last part is the default."""
    default = parts[-1] if len(parts) % 2 else None
    return builder.case(list(zip(parts[0::2], parts[1::2], strict=False)), default)


_HANDLERS: dict[type[exp.Expr], Callable[[_Parser, exp.Expr], Expr | None]] = {
    exp.Column: _Parser.column,
    exp.Literal: _Parser.constant,
    exp.Null: _Parser.constant,
    exp.Boolean: _Parser.constant,
    exp.Paren: _Parser.paren,
    exp.NullSafeNEQ: _Parser.different,
    exp.And: _Parser.logic,
    exp.Or: _Parser.logic,
    exp.Not: _Parser.negation,
    exp.Neg: _Parser.negative,
    exp.Is: _Parser.test,
    exp.In: _Parser.membership,
    exp.Between: _Parser.between,
    exp.Like: _Parser.like,
    exp.RegexpLike: _Parser.matching,
    exp.Case: _Parser.case,
    exp.Cast: _Parser.cast,
    exp.TryCast: _Parser.cast,
    exp.Anonymous: _Parser.function,
    exp.DPipe: _Parser.joined,
    **dict.fromkeys(_COMPARISONS, _Parser.comparison),
    **dict.fromkeys(_OPERATIONS, _Parser.operation),
}
