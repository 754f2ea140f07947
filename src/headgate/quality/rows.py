"""Rows as a person writes them in a test, made into the values that conditions see."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import cast

from headgate.conditions.evaluator.twin_values import Value
from headgate.conditions.times import read_date, read_time
from headgate.declarations.refusal import Refusal, suggestion
from headgate.declarations.spec_types import SqlType
from headgate.quality.compile.model import JudgedTable
from headgate.quality.compile.typed import EXTRA, MISSING
from headgate.quality.spec.rule_set import RuleSource

_WHOLE = {"INT": 1 << 31, "BIGINT": 1 << 63}


class FieldRefusal(Refusal):
    """Why a row cannot be taken, and the path of the field that it is about."""

    def __init__(self, path: str, refusal: Refusal) -> None:
        super().__init__(refusal.what, refusal.fix, refusal.why)
        self.path = path


def row_values(judged: JudgedTable, given: Mapping[str, object]) -> dict[str, Value]:
    """The row under the keys that conditions use; a field that is not there is NULL."""
    table = judged.table
    if not table.is_pair:
        return _side(judged, table.first, given, "", "")
    found: dict[str, Value] = {}
    for side, row in given.items():
        if side not in table.sources:
            what, fix = f"there is no source `{side}`", suggestion(side, table.sources, "sources")
            raise FieldRefusal(side, Refusal(what, fix))
        source = table.sources[side]
        if isinstance(row, dict):
            fields = cast("Mapping[str, object]", row)
            found |= _side(judged, source, fields, f"{source.alias}.", f"{side}.")
        elif row is not None:
            raise FieldRefusal(side, Refusal("a side is a row or nothing", "Write its fields."))
    return found


def _side(
    judged: JudgedTable, source: RuleSource, given: Mapping[str, object], before: str, path: str
) -> dict[str, Value]:
    types = {
        key.removeprefix(before): kind
        for key, kind in judged.types.items()
        if key.startswith(before)
    }
    extra = [name for name in given if name not in types]
    missing = [name for name in source.columns if name not in given]
    if extra and not _has_schema_rule(judged):
        what = f"there is no column `{extra[0]}`"
        near = suggestion(extra[0], types, "columns")
        raise FieldRefusal(f"{path}{extra[0]}", Refusal(what, near))
    found: dict[str, Value] = {}
    for name, kind in types.items():
        try:
            found[before + name] = typed_value(given.get(name), kind)
        except Refusal as refusal:
            raise FieldRefusal(f"{path}{name}", refusal) from None
    names = {MISSING: missing, EXTRA: extra}
    return found | {key: ", ".join(listed) for key, listed in names.items() if listed}


def _has_schema_rule(judged: JudgedTable) -> bool:
    rules = judged.rule_set.rules_of(judged.table)
    return any(rule.type == "schema" for rule in rules)


def typed_value(value: object, kind: SqlType) -> Value:
    """The value at the column's type; a Refusal where it has none there."""
    if value is None:
        return None
    found = _typed(value, kind)
    if found is None:
        quotes = kind.name == "STRING" and isinstance(value, int | float)
        fix = "Put it in quotes." if quotes else "Write a value of the column's type, or null."
        raise Refusal(f"`{value}` is no {kind}", fix)
    return found


def _typed(value: object, kind: SqlType) -> Value:
    if kind.name == "BOOLEAN" or isinstance(value, bool):
        return value if isinstance(value, bool) and kind.name == "BOOLEAN" else None
    if kind.name == "STRING":
        return value if isinstance(value, str) else None
    if kind.is_time or kind.name == "DATE":
        return _point(value, kind)
    if kind.name in _WHOLE:
        whole = isinstance(value, int) and -_WHOLE[kind.name] <= value < _WHOLE[kind.name]
        return value if whole and isinstance(value, int) else None
    try:
        if kind.name == "DECIMAL":
            return Decimal(str(value))
        return float(value) if isinstance(value, int | float | str) else None
    except (InvalidOperation, ValueError, OverflowError):
        return None


def _point(value: object, kind: SqlType) -> Value:
    if not isinstance(value, str):
        return None
    found = read_date(value).value if kind.name == "DATE" else read_time(value, kind).value
    return found if isinstance(found, date) else None
