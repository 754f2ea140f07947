"""Which keys each form of a rule takes: those it needs, those it may have, and no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from headgate.declarations.refusal import suggestion
from headgate.quality.spec.rule_set import Aggregate, Measure, NullHandling, Rule, RuleType

_Found: TypeAlias = Iterator[tuple[str, str, str]]
_ALL_NULLS: tuple[NullHandling, ...] = ("default", "fail", "skip")


@dataclass(frozen=True)
class Form:
    """`needs` lists alternatives; `nulls` are the ways with NULL that change anything."""

    needs: tuple[tuple[str, ...], ...]
    may: tuple[str, ...] = ()
    nulls: tuple[NullHandling, ...] = _ALL_NULLS

    @property
    def keys(self) -> tuple[str, ...]:
        return (*(key for keys in self.needs for key in keys), *self.may)


_LIMITS = Form((("field",), ("min", "max")))
_LOOKUP = Form((("field",), ("values", "values_file")))
FORMS: dict[RuleType, Form] = {
    "required": Form((("fields", "field"),), nulls=("default", "fail")),
    "range": _LIMITS,
    "threshold": _LIMITS,
    "regex": Form((("field",), ("pattern",))),
    "timestamp_freshness": Form((("field",),), ("max_age_seconds",)),
    "cross_field": Form((("left",), ("op",), ("right",))),
    "lookup_in": _LOOKUP,
    "lookup_not_in": _LOOKUP,
    "unique": Form((("fields", "field"),), ("horizon",), nulls=("default", "skip")),
    "custom_sql": Form((("sql",),), nulls=("default", "skip")),
    "schema": Form((), ("allow_unknown",), nulls=("default", "skip")),
}
PARAMETERS = tuple(dict.fromkeys(key for form in FORMS.values() for key in form.keys))
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_SAME_OPERATORS = {"==": "=", "!=": "<>"}
_WITH_FIELD: tuple[Measure, ...] = ("null_rate", "distinct_count", "sum", "quantile")
_TOGETHER = {"min", "max"}


def operator(text: str) -> str:
    """The operator that `text` spells, in the spelling of the language."""
    return _SAME_OPERATORS.get(text, text)


def form_faults(place: str, parts: Sequence[Rule | Aggregate]) -> _Found:
    """The keys that a rule lacks or has too many; for aggregates `place` is their list."""
    for at, part in enumerate(parts):
        if isinstance(part, Rule):
            yield from _rule(place, part)
        else:
            yield from _aggregate(f"{place}[{at}]", part)


def given_keys(rule: Rule) -> tuple[str, ...]:
    """The parameters that were written, not those left at their defaults."""
    return tuple(key for key in PARAMETERS if not _is_default(getattr(rule, key)))


def _is_default(value: object) -> bool:
    """Nothing, no items or false; the number 0 is a value."""
    return value is None or value is False or value == ()


def _rule(place: str, rule: Rule) -> _Found:
    if (rule.when is None) == (rule.type is None):
        both = "both `when` and `type`" if rule.when else "neither `when` nor `type`"
        yield place, f"the rule has {both}", "Write a condition, or a type with its keys."
        return
    form = FORMS[rule.type] if rule.type else Form((), nulls=("default", "skip"))
    named = f"`type: {rule.type}`" if rule.type else "a rule with `when`"
    given = given_keys(rule)
    for key in given:
        if key not in form.keys:
            yield f"{place}.{key}", f"{named} has no key `{key}`", _takes(key, form)
    for keys in form.needs:
        yield from _needed(place, named, keys, [key for key in keys if key in given])
    if rule.null_handling not in form.nulls:
        yield f"{place}.null_handling", *_null_words(rule)
    yield from _values(place, rule)


def _takes(key: str, form: Form) -> str:
    return suggestion(key, form.keys, "keys of this form") if form.keys else "Leave it out."


def _needed(place: str, named: str, keys: tuple[str, ...], given: list[str]) -> _Found:
    if not given:
        yield place, f"{named} lacks {_either(keys)}", "Add it."
    elif len(given) > 1 and not _TOGETHER.issuperset(keys):
        yield f"{place}.{given[1]}", f"{named} has {' and '.join(given)}", "Keep one of them."


def _either(keys: tuple[str, ...]) -> str:
    return " or ".join(f"`{key}`" for key in keys)


def _null_words(rule: Rule) -> tuple[str, str]:
    if rule.type == "required":
        return "it could never match: `required` asks for NULL alone", "Leave null_handling out."
    return "it changes nothing here", "Leave it out, and say IS NULL where you mean it."


def _values(place: str, rule: Rule) -> _Found:
    if rule.op is not None and operator(rule.op) not in OPERATORS:
        fix = f"Write one of {', '.join(OPERATORS)}."
        yield f"{place}.op", f"`{rule.op}` is not an operator", fix
    yield from _finite(place, rule)
    yield from _ordered(place, rule.min, rule.max)
    if len(set(rule.fields)) < len(rule.fields):
        yield f"{place}.fields", "a field is listed twice", "Keep one."


def _finite(place: str, part: Rule | Aggregate) -> _Found:
    for key in ("min", "max"):
        value = getattr(part, key)
        if isinstance(value, float) and not isfinite(value):
            yield f"{place}.{key}", "the number is too large", "Write a smaller one, or none."


def _ordered(place: str, low: object, high: object) -> _Found:
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        yield f"{place}.max", f"max {high} is below min {low}", "Swap them."


def _aggregate(place: str, aggregate: Aggregate) -> _Found:
    measure = aggregate.measure
    if aggregate.min is None and aggregate.max is None:
        yield place, "it has neither `min` nor `max`", "Say which values are good."
    yield from _finite(place, aggregate)
    yield from _ordered(place, aggregate.min, aggregate.max)
    if measure in _WITH_FIELD and aggregate.field is None:
        yield place, f"{measure} lacks `field`", "Name the column that is measured."
    if measure == "row_count" and aggregate.field is not None:
        yield f"{place}.field", "row_count counts all rows", "Leave it out, or use null_rate."
    if (measure == "quantile") != (aggregate.quantile is not None):
        wrong = f"{place}.quantile" if aggregate.quantile is not None else place
        yield wrong, "`quantile` goes with the measure quantile", "Write both, as quantile: 0.95."
    if aggregate.quantile is not None and not 0 < aggregate.quantile < 1:
        what = f"{aggregate.quantile:g} is not between 0 and 1"
        yield f"{place}.quantile", what, "Write for example 0.95."
    if measure == "null_rate":
        for key in ("min", "max"):
            value = getattr(aggregate, key)
            if value is not None and not 0 <= value <= 1:
                yield f"{place}.{key}", f"{value:g} is no share of rows", "Write 0 to 1."
