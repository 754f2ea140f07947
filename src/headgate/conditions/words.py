"""A condition in plain words, as `fare is below 0, or is missing`: what a rule says to a reader.

Every condition has words. A negation is pushed inwards, which changes nothing where values are
missing: the words hold on a row exactly when the condition does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headgate.conditions.ast import (
    And,
    Arithmetic,
    Between,
    Case,
    Cast,
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
from headgate.conditions.forms import unformed
from headgate.conditions.value_words import (
    constant,
    is_span,
    listed,
    options,
    seconds,
    span_words,
    type_words,
    value,
)
from headgate.declarations.spec_types import BOOLEAN, STRING, SqlType

_OPPOSITE: dict[Comparison, Comparison] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
}
_ORDER: dict[Comparison, str] = {
    "<": "is below",
    "<=": "is at most",
    ">": "is above",
    ">=": "is at least",
}
_TIME_ORDER: dict[Comparison, str] = {
    "<": "is before",
    "<=": "is not after",
    ">": "is after",
    ">=": "is not before",
}
_SEARCHES = {
    "startswith": ("begins with", "does not begin with"),
    "endswith": ("ends with", "does not end with"),
    "contains": ("contains", "does not contain"),
    "regexp_like": ("matches", "does not match"),
}


@dataclass(frozen=True)
class _Clause:
    """What is spoken of, and what is said of it; the subject is told once where it stays."""

    subject: str
    verb: str

    def after(self, before: _Clause | None) -> str:
        repeated = before is not None and self.subject == before.subject
        return self.verb if repeated or not self.subject else f"{self.subject} {self.verb}"


def in_words(condition: Expr) -> str:
    """The condition in words; any expression of the language has some."""
    return _said(condition, holds=True) if condition.type == BOOLEAN else _value(condition)


def _said(expr: Expr, *, holds: bool) -> str:
    match expr:
        case Not():
            return _said(expr.item, holds=not holds)
        case And():
            return _joined(expr.items, "and" if holds else "or", holds=holds)
        case Or():
            return _joined(expr.items, "or" if holds else "and", holds=holds)
        case _:
            return _clause(expr, holds=holds).after(None)


def _joined(items: tuple[Expr, ...], word: str, *, holds: bool) -> str:
    parts: list[str] = []
    before: _Clause | None = None
    for item in items:
        if _is_joined(item):
            words, before = f"({_said(item, holds=holds)})", None
        else:
            clause = _clause(item, holds=holds)
            words, before = clause.after(before), clause
        parts.append(words)
    return f", {word} ".join(parts)


def _is_joined(expr: Expr) -> bool:
    return isinstance(expr, And | Or) or (isinstance(expr, Not) and _is_joined(expr.item))


def _clause(expr: Expr, *, holds: bool) -> _Clause:
    match expr:
        case Not():
            return _clause(expr.item, holds=not holds)
        case Compare():
            return _compared(expr, holds=holds)
        case IsNull():
            return _missing(expr.item, holds=holds)
        case In():
            verb = "is" if len(expr.options) == 1 else "is one of"
            verb = verb if holds else verb.replace("is", "is not", 1)
            return _Clause(_value(expr.item), f"{verb} {options(expr.options)}")
        case Between():
            verb = "is between" if holds else "is not between"
            limits = f"{_value(expr.low)} and {_value(expr.high)}"
            return _Clause(_value(expr.item), f"{verb} {limits}")
        case Like():
            return _Clause(_value(expr.item), _like(expr.pattern, holds=holds))
        case Function() if expr.type == BOOLEAN:
            return _test(expr, holds=holds)
        case And() | Or():
            return _Clause("", f"({_said(expr, holds=holds)})")
        case _:
            return _Clause(_value(expr), f"is {'true' if holds else 'false'}")


def _value(expr: Expr) -> str:
    return value(expr, _other)


def _other(expr: Expr) -> str:
    """What is neither a column nor a sum: a choice, or a condition in the place of a value."""
    match expr:
        case Case():
            return _choice(expr)
        case Function() if expr.type != BOOLEAN:
            return f"{expr.name} of {listed([_value(item) for item in expr.arguments])}"
        case _:
            return f"whether {_said(expr, holds=True)}"


def _choice(expr: Case) -> str:
    branches = [f"{_value(b.then)} where {_said(b.when, holds=True)}, else" for b in expr.branches]
    default = "missing" if expr.default is None else _value(expr.default)
    return f"({' '.join(branches)} {default})"


def _compared(expr: Compare, *, holds: bool) -> _Clause:
    subject, other = _value(expr.left), _value(expr.right)
    if expr.operator == "<=>":
        verb = "equals" if holds else "differs from"
        return _Clause(subject, f"{verb} {other} (missing equals missing)")
    operator = expr.operator if holds else _OPPOSITE[expr.operator]
    left, right = expr.left, expr.right
    if isinstance(left, Arithmetic) and is_span(left) and isinstance(right, Literal):
        length = seconds(right.value) if isinstance(right.value, int) else other
        return _Clause(span_words(left, _value), f"{_verb(operator, left.type, right)} {length}")
    order = " in the order of text" if operator in _ORDER and left.type == STRING else ""
    return _Clause(subject, f"{_verb(operator, left.type, right)} {other}{order}")


def _verb(operator: Comparison, kind: SqlType, other: Expr) -> str:
    if operator in ("=", "<>"):
        if isinstance(other, Literal):
            return "is" if operator == "=" else "is not"
        return "equals" if operator == "=" else "differs from"
    timely = kind.is_time or kind.name == "DATE"
    return (_TIME_ORDER if timely else _ORDER)[operator]


def _missing(item: Expr, *, holds: bool) -> _Clause:
    if isinstance(item, Cast) and item.item.type == STRING:
        kind = type_words(item.type)
        verb = f"is missing or not {kind}" if holds else f"is {kind}"
        return _Clause(_value(unformed(item.item, item.type)), verb)
    if item.type == BOOLEAN and not isinstance(item, Column):
        verb = "cannot be told" if holds else "can be told"
        return _Clause(_value(item) if isinstance(item, Case | Cast) else _other(item), verb)
    return _Clause(_value(item), "is missing" if holds else "is present")


def _test(expr: Function, *, holds: bool) -> _Clause:
    search = _SEARCHES.get(expr.name)
    subject, *others = expr.arguments
    if search and others:
        wanted = _pattern(others[0]) if expr.name == "regexp_like" else _value(others[0])
        return _Clause(_value(subject), f"{search[0 if holds else 1]} {wanted}")
    if expr.name == "isnan":
        return _Clause(_value(subject), "is not a number" if holds else "is a number or missing")
    words = f"{expr.name} of {listed([_value(item) for item in expr.arguments])}"
    return _Clause(words, f"is {'true' if holds else 'false'}")


def _pattern(item: Expr) -> str:
    """As people write it: the end of the text is a dollar sign, whatever it became to run."""
    text = item.value if isinstance(item, Literal) else None
    return constant(re.sub(r"\\z$", "$", text)) if isinstance(text, str) else _value(item)


def _like(pattern: str, *, holds: bool) -> str:
    """The three usual shapes by name, any other as it is written."""
    inner = pattern.strip("%")
    shape = (pattern.startswith("%"), pattern.endswith("%"))
    plain = inner and not set(inner) & set("%_\\") and len(pattern) - len(inner) == sum(shape)
    names = {(False, True): "startswith", (True, False): "endswith", (True, True): "contains"}
    if plain and shape in names:
        return f"{_SEARCHES[names[shape]][0 if holds else 1]} {constant(inner)}"
    return f"{'has' if holds else 'does not have'} the form {constant(pattern)}"
