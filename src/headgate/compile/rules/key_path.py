"""A key inside a record: `partitionColumns[type='PK'].value` as SQL over the record's text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headgate.expr.literals import spark_identifier, spark_literal

_STEP = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?:\[(?:(?P<index>\d+)|(?P<field>[A-Za-z_]\w*)='(?P<text>[^'\[\]]*)')\])?"
)


@dataclass(frozen=True)
class Step:
    """A field; of a list the item at an index, or those items of which a field is a text."""

    name: str
    index: int | None = None
    field: str | None = None
    text: str = ""

    @property
    def is_list(self) -> bool:
        return self.index is not None or self.field is not None


def read_path(path: str) -> tuple[Step, ...]:
    """The steps of a path that the rule set's check has let pass."""
    return tuple(
        Step(
            found["name"],
            int(found["index"]) if found["index"] else None,
            found["field"],
            found["text"] or "",
        )
        for found in _STEP.finditer(path)
    )


def key_value(text: str, path: str) -> str:
    """The key as a STRING; of several items that match, the JSON list of their keys."""
    return _value(f"from_json({text}, {spark_literal(root_schema(path))})", read_path(path))


def root_schema(path: str) -> str:
    """The field in which the key stands, as the JSON reader is asked for it."""
    return _schema(read_path(path))


def value_in_root(path: str) -> str:
    """The key, where the field in which it stands is a column."""
    steps = read_path(path)
    return _value(f"struct({spark_identifier(steps[0].name)})", steps)


def _value(found: str, steps: tuple[Step, ...]) -> str:
    many = False
    for step in steps:
        found, many = _taken(found, many, step)
    if not many:
        return found
    return (
        f"transform(array({found}),"
        " keys -> CASE size(keys) WHEN 0 THEN NULL WHEN 1 THEN keys[0] ELSE to_json(keys) END)[0]"
    )


def _schema(steps: tuple[Step, ...]) -> str:
    """Only the fields on the path, and those that choose among a list's items."""
    step, rest = steps[0], steps[1:]
    inner = _type(step, rest)
    return f"{spark_identifier(step.name)} {inner}"


def _type(step: Step, rest: tuple[Step, ...]) -> str:
    fields = [f"{spark_identifier(step.field)}: STRING"] if step.field else []
    if rest and rest[0].name != step.field:
        fields.append(f"{spark_identifier(rest[0].name)}: {_type(rest[0], rest[1:])}")
    item = f"STRUCT<{', '.join(fields)}>" if fields else "STRING"
    return f"ARRAY<{item}>" if step.is_list else item


def _taken(found: str, many: bool, step: Step) -> tuple[str, bool]:
    name = spark_identifier(step.name)
    if many:
        found = f"transform({found}, item -> item.{name})"
        if step.index is not None:
            return f"transform({found}, items -> get(items, {step.index}))", True
        return (_chosen(f"flatten({found})", step), True) if step.field else (found, True)
    found = f"{found}.{name}"
    if step.index is not None:
        return f"get({found}, {step.index})", False
    return (_chosen(found, step), True) if step.field else (found, False)


def _chosen(found: str, step: Step) -> str:
    field = spark_identifier(step.field or "")
    return f"filter({found}, item -> item.{field} = {spark_literal(step.text)})"
