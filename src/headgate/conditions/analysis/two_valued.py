"""Translate a condition's tree into the formulas on which it is true and on which it is false.

Patterns of LIKE and RLIKE count by their literal prefix. `Reader.odd` collects the parts that can
never, or must always, be true.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from string import ascii_lowercase, ascii_uppercase
from typing import Literal as OneOf

from headgate.conditions.analysis.formulas import (
    ALWAYS,
    NEVER,
    Atom,
    Both,
    Either,
    Formula,
    Truth,
    among,
    certain,
    is_null,
    opposite,
)
from headgate.conditions.analysis.terms import (
    HIGHEST,
    LOWEST,
    NULL_ALONE,
    Span,
    Term,
    Values,
    before,
    opaque,
    term_of,
)
from headgate.conditions.ast import (
    And,
    Between,
    Case,
    Column,
    Compare,
    Comparison,
    Expr,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)
from headgate.conditions.literals import LiteralValue
from headgate.conditions.regex.nodes import LAST
from headgate.conditions.spark_sql import to_spark
from headgate.declarations.types import BOOLEAN

_REGEX_SIGNS = frozenset("\\^$.|?*+()[]{}")
_REPEATS = frozenset("?*+{")


def prefix_span(prefix: str) -> Span:
    """All texts that begin so: texts are ordered by their code points."""
    kept = prefix.rstrip(chr(LAST))
    if not kept:
        return before(prefix), HIGHEST
    code = ord(kept[-1]) + 1
    following = chr(0xE000 if code == 0xD800 else code)
    return before(prefix), before(kept[:-1] + following)


def prefix_of_like(pattern: str) -> tuple[str, OneOf["all", "prefix", "part"]]:
    """The text before the first wildcard, and whether that is all there is to the pattern."""
    prefix, at = "", 0
    while at < len(pattern):
        sign = pattern[at]
        if sign in "%_":
            rest = pattern[at:]
            return prefix, "prefix" if rest.strip("%") == "" else "part"
        at += 2 if sign == "\\" else 1
        prefix += pattern[at - 1]
    return prefix, "all"


def prefix_of_regex(pattern: str) -> str:
    """The plain characters behind `^`, where the pattern is one sequence."""
    if not pattern.startswith("^") or "|" in pattern:
        return ""
    prefix = ""
    for sign in pattern[1:]:
        if sign in _REPEATS:
            return prefix[:-1]
        if sign in _REGEX_SIGNS:
            break
        prefix += sign
    return prefix


_FLIPPED: dict[Comparison, Comparison] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# How two values stand to each other: less, equal, greater, one of them NULL, both NULL.
_SIGNS: dict[Comparison, tuple[int, ...]] = {
    "=": (0,),
    "<=>": (0,),
    "<>": (-1, 1),
    "<": (-1,),
    "<=": (-1, 0),
    ">": (1,),
    ">=": (0, 1),
}
_NEVER_LETTERS = {"upper": ascii_lowercase, "lower": ascii_uppercase}
_TRUE = Values(((before(1), before(2)),))
_ONE_NULL, _BOTH_NULL = 2, 3
_ORDERED = Values(((before(-1), before(_ONE_NULL)),))
_PLAIN = (Compare, In, Between, Like)


@dataclass
class Reader:
    """Reads conditions; `odd` gathers the parts that can never, or must always, be true.

    `known` are the keys of columns that are never NULL.
    """

    known: Collection[str] = ()
    odd: list[tuple[Expr, bool]] = field(default_factory=list[tuple[Expr, bool]])

    def read(self, expr: Expr) -> Truth:
        match expr:
            case And():
                return _all([self.read(item) for item in expr.items])
            case Or():
                return _any([self.read(item) for item in expr.items])
            case Not():
                return self.read(expr.item).negated()
            case IsNull():
                return self._is_null(expr.item)
            case Literal():
                return _constant(expr.value)
            case Case():
                return self._case(expr)
            case Function() if expr.name == "coalesce":
                return self._coalesced([self.read(item) for item in expr.arguments])
            case _:
                return self._noted(expr, self._simple(expr))

    def _simple(self, expr: Expr) -> Truth:
        match expr:
            case Compare():
                return self._compare(expr)
            case In():
                return self._in(expr)
            case Between():
                return self._between(expr)
            case Like():
                return self._like(expr)
            case Function() if expr.name in {"startswith", "regexp_like"}:
                return self._prefixed(expr)
            case _:
                return among(term_of(expr), _TRUE)

    def _noted(self, expr: Expr, truth: Truth) -> Truth:
        if isinstance(expr, _PLAIN):
            for part, holds in ((truth.true, False), (truth.false, True)):
                if isinstance(part, Atom) and not part.values:
                    self.odd.append((expr, holds))
        return truth

    def _is_null(self, item: Expr) -> Truth:
        if item.type == BOOLEAN and children_decide(item):
            found = self.read(item)
            return Truth(found.null, opposite(found.null))
        if isinstance(item, Literal):
            return _constant(item.value is None)
        if self._is_known(item):
            self.odd.append((IsNull(item), False))
            return _constant(False)
        return is_null(term_of(item))

    def _is_known(self, item: Expr) -> bool:
        """Whether it is never NULL, as far as can be seen."""
        match item:
            case Literal():
                return item.value is not None
            case Column():
                return item.key in self.known
            case Function() if item.name == "coalesce":
                return any(self._is_known(argument) for argument in item.arguments)
            case _:
                return False

    def _compare(self, expr: Compare) -> Truth:
        left, right, operator = expr.left, expr.right, expr.operator
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, operator = right, left, _FLIPPED.get(operator, operator)
        if not isinstance(right, Literal) or isinstance(left, Literal):
            return _ordered(left, right, operator)
        if left.type == BOOLEAN and isinstance(right.value, bool) and children_decide(left):
            return self._is(left, right.value, operator)
        if right.value is None and operator == "<=>":
            return self._is_null(left)
        return _with_constant(left, operator, right)

    def _is(self, item: Expr, wanted: bool, operator: Comparison) -> Truth:
        found = self.read(item) if wanted else self.read(item).negated()
        if operator == "<=>":
            return Truth(found.true, opposite(found.true))
        return found.negated() if operator == "<>" else found

    def _in(self, expr: In) -> Truth:
        return _chosen(
            expr.item,
            expr.options[0],
            lambda term: term.points(
                [option.value for option in expr.options if _can_be(expr.item, option.value)]
            ),
        )

    def _between(self, expr: Between) -> Truth:
        low, high = expr.low, expr.high
        if isinstance(low, Literal) and isinstance(high, Literal) and low.type == high.type:
            return _chosen(
                expr.item,
                low,
                lambda term: term.values(
                    (term.cut(low.value, behind=False), term.cut(high.value, behind=True))
                ),
            )
        above = self._compare(Compare(">=", expr.item, low))
        return _all([above, self._compare(Compare("<=", expr.item, high))])

    def _like(self, expr: Like) -> Truth:
        prefix, exact = prefix_of_like(expr.pattern)
        if exact == "all":
            return _chosen(expr.item, None, lambda term: term.points([prefix]))
        if exact == "prefix":
            return _chosen(expr.item, None, lambda term: term.values(prefix_span(prefix)))
        return _begins(among(term_of(expr), _TRUE), expr.item, prefix)

    def _prefixed(self, expr: Function) -> Truth:
        item, wanted = expr.arguments
        text = wanted.value if isinstance(wanted, Literal) else None
        if expr.name == "startswith" and isinstance(text, str):
            return _chosen(item, None, lambda term: term.values(prefix_span(text)))
        found = among(term_of(expr), _TRUE)
        if expr.name == "regexp_like" and isinstance(text, str):
            return _begins(found, item, prefix_of_regex(text))
        return found

    def _case(self, expr: Case) -> Truth:
        true: list[Formula] = []
        false: list[Formula] = []
        earlier: list[Formula] = []
        for branch in expr.branches:
            when, then = self.read(branch.when).true, self.read(branch.then)
            true.append(Both((*earlier, when, then.true)))
            false.append(Both((*earlier, when, then.false)))
            earlier.append(opposite(when))
        if expr.default is not None:
            last = self.read(expr.default)
            true.append(Both((*earlier, last.true)))
            false.append(Both((*earlier, last.false)))
        return Truth(Either(tuple(true)), Either(tuple(false)))

    def _coalesced(self, items: list[Truth]) -> Truth:
        found = items[-1]
        for item in reversed(items[:-1]):
            found = Truth(
                Either((item.true, Both((item.null, found.true)))),
                Either((item.false, Both((item.null, found.false)))),
            )
        return found


def children_decide(expr: Expr) -> bool:
    """Whether a BOOLEAN is logic over other parts, not a value of its own."""
    if isinstance(expr, Function):
        return expr.name in {"coalesce", "startswith", "regexp_like"}
    return isinstance(expr, And | Or | Not | IsNull | Case | Compare | In | Between | Like)


def _all(items: list[Truth]) -> Truth:
    return Truth(Both(tuple(i.true for i in items)), Either(tuple(i.false for i in items)))


def _any(items: list[Truth]) -> Truth:
    return Truth(Either(tuple(i.true for i in items)), Both(tuple(i.false for i in items)))


def _constant(value: LiteralValue) -> Truth:
    return Truth(ALWAYS if value is True else NEVER, ALWAYS if value is False else NEVER)


def _chosen(item: Expr, beside: Literal | None, choose: Callable[[Term], Values]) -> Truth:
    """True where the item is among chosen values; looks through `coalesce(item, constant)`."""
    other = None if beside is None else beside.type
    instead = _instead(item)
    if instead is None:
        term = term_of(item, other)
        return among(term, choose(term))
    inner, constant = instead
    term = term_of(inner, other)
    values = choose(term)
    null_is_in = bool(term.points([constant.value]) & values)
    return certain(term, values | NULL_ALONE if null_is_in else values.known)


def _instead(item: Expr) -> tuple[Expr, Literal] | None:
    """The value and the constant of `coalesce(value, constant)`."""
    if not isinstance(item, Function) or item.name != "coalesce" or len(item.arguments) != 2:
        return None
    inner, constant = item.arguments
    if not isinstance(constant, Literal) or constant.value is None or isinstance(inner, Literal):
        return None
    return (inner, constant) if inner.type == constant.type == item.type else None


def _with_constant(left: Expr, operator: Comparison, right: Literal) -> Truth:
    value = right.value
    if value is None:
        return Truth(NEVER, NEVER)
    if operator == "<=>":
        term = term_of(left, right.type)
        return certain(term, term.points([value]))
    if operator == "=" and not _can_be(left, value):
        return _chosen(left, right, lambda _: Values())
    return _chosen(left, right, lambda term: _compared(term, operator, value))


def _can_be(item: Expr, value: LiteralValue) -> bool:
    """Whether the item can have the value, as far as upper and lower case tell."""
    never = _NEVER_LETTERS.get(item.name, "") if isinstance(item, Function) else ""
    return not isinstance(value, str) or not any(letter in never for letter in value)


def _compared(term: Term, operator: Comparison, value: LiteralValue) -> Values:
    low, high = term.cut(value, behind=False), term.cut(value, behind=True)
    match operator:
        case "<":
            return term.values((LOWEST, low))
        case "<=":
            return term.values((LOWEST, high))
        case ">":
            return term.values((high, HIGHEST))
        case ">=":
            return term.values((low, HIGHEST))
        case "<>":
            return term.domain.known - term.values((low, high))
        case _:
            return term.values((low, high))


def _ordered(left: Expr, right: Expr, operator: Comparison) -> Truth:
    """Two values of the row: how they stand to each other is a term of its own."""
    one, two = to_spark(left), to_spark(right)
    signs = _SIGNS[operator]
    if one > two:
        left, right, one, two = right, left, two, one
        signs = tuple(-sign for sign in signs)
    parents = tuple(term_of(item) for item in (left, right) if not isinstance(item, Literal))
    possible = (0, _BOTH_NULL) if one == two else (-1, 0, 1, _ONE_NULL, _BOTH_NULL)
    domain = _signs(*possible)
    term = opaque(f"order of {one} and {two}", domain, parents, _ORDERED)
    if operator == "<=>":
        return certain(term, _signs(0, _BOTH_NULL))
    values = _signs(*signs)
    return Truth(Atom(term, values & domain), Atom(term, (_ORDERED & domain) - values))


def _signs(*signs: int) -> Values:
    return Values.of((before(sign), before(sign + 1)) for sign in signs)


def _begins(found: Truth, item: Expr, prefix: str) -> Truth:
    """What is true only of texts that begin so."""
    if not prefix:
        return found
    term = term_of(item)
    return Truth(Both((found.true, Atom(term, term.values(prefix_span(prefix))))), found.false)
