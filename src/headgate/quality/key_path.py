"""A key inside a record: the steps of a path such as `partitionColumns[type='PK'].value`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headgate.conditions.expr_literals import spark_identifier

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


def root_schema(path: str) -> str:
    """The field in which the key stands, as a column with what the path needs of it."""
    return _schema(read_path(path))


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
