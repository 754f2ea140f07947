"""Texts that are cast to decimals and times: which of them Spark is given to read.

Spark would read more, but not to the end: it computes 10 to the power of an exponent (`1e-99999999`
takes minutes, `1e-2147483647` raises even in try_cast), takes today's date for a time of day, looks
zones up in its own tables, and drops a zone where the type has none.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.conditions.ast import Branch, Case, Expr, Function, Literal
from headgate.conditions.regex.regex_init import canonical, compiled
from headgate.declarations.spec_types import BOOLEAN, STRING, SqlType


@dataclass(frozen=True)
class TextForm:
    """How a text has to be written, as a regular expression and in words."""

    pattern: str
    words: str

    def matches(self, text: str) -> bool:
        return compiled(self.pattern).search(text) is not None


# No DECIMAL needs more: it has 38 digits at most.
EXPONENT_DIGITS = 3
_MINUTE = "[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,9})?"
NUMBER = TextForm(
    canonical(
        f"^ *[-+]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[Ee][-+]?[0-9]{{1,{EXPONENT_DIGITS}}})? *$"
    ),
    "a number, with an exponent of at most three digits",
)
_CLOCK = TextForm(canonical(f"^ *{_MINUTE})?)? *$"), "2024-01-31 12:30:00.123456")
_POINT = TextForm(
    canonical(f"^ *{_MINUTE}(?:Z|[-+][0-9]{{2}}:[0-9]{{2}})?)?)? *$"),
    "2024-01-31 12:30:00Z, or with a zone as +02:00",
)
FORMS = {"DECIMAL": NUMBER, "TIMESTAMP": _CLOCK, "TIMESTAMP_LTZ": _POINT}


def formed(item: Expr, target: SqlType) -> Expr:
    """The text where it is in the form that the type's texts have, else NULL."""
    form = FORMS.get(target.name)
    if item.type != STRING or form is None or _is_formed(item, form):
        return item
    return Case((Branch(_matches(item, form), item),), None, STRING)


def unformed(item: Expr, target: SqlType) -> Expr:
    """The text that `formed` was given; any other value is returned as it is."""
    form = FORMS.get(target.name)
    if form is not None and isinstance(item, Case) and _is_formed(item, form):
        return item.branches[0].then
    return item


def _matches(item: Expr, form: TextForm) -> Expr:
    return Function("regexp_like", (item, Literal(form.pattern, STRING)), BOOLEAN)


def _is_formed(item: Expr, form: TextForm) -> bool:
    match item:
        case Case(branches=(Branch(when=when, then=then),), default=None):
            return when == _matches(then, form)
        case _:
            return False
