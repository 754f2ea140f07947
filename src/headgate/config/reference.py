"""Describe variables to people: name, help, type, choices, default, and what is wrong with a value.

`Variable` stands beside a field's type in the schema; `describe` turns a model into the rows that the
reference page, `config show` and the checks read. Secrets are masked here, also inside URLs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from headgate.config.env_files import Sources, suggestion
from headgate.errors import Fault, SettingsError

MASK = "********"
NOT_SET = "(not set)"
SECRET_IN_TEXT = re.compile(
    r"(://[^:/@\s]*:)[^@\s]+(?=@)|((?:password|token|secret)=)[^&;\s]+", re.IGNORECASE
)
KINDS = {bool: "true or false", int: "whole number", float: "number", Path: "folder"}
WORDS = {
    "int": "must be a whole number",
    "float": "must be a number",
    "bool": "must be true or false",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "greater_than": "must be above {gt}",
    "literal_error": "must be one of {expected}",
    "extra_forbidden": "is no setting",
}


@dataclass(frozen=True)
class Variable:
    """Stands beside a field's type; a heading opens a group that lasts to the next heading."""

    help: str
    heading: str = ""
    default: str = ""
    name: str = ""
    form: str = ""
    secret: bool = False


@dataclass(frozen=True)
class Described:
    """One variable as the reference, `config show` and the checks see it."""

    field: str
    name: str
    group: str
    help: str
    kind: str
    default: str
    choices: tuple[str, ...]
    secret: bool


@dataclass(frozen=True)
class Finding:
    """Something wrong with one variable, before it is known which file says so."""

    name: str
    what: str
    fix: str

    def located(self, sources: Sources | None) -> Fault:
        if sources is None:
            return Fault("settings", None, self.name, self.what, self.fix)
        found = sources.find(self.name)
        if found is None:
            return Fault(sources.profile.file, None, self.name, self.what, self.fix)
        return Fault(found.source.file, found.entry.line, self.name, self.what, self.fix)


class InvalidSettingsError(SettingsError):
    """Everything that is wrong with the settings, at once."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(sorted(faults, key=lambda fault: (fault.file, fault.line or 0)))
        if len(faults) == 1:
            one = faults[0]
            place = f"{one.file}:{one.line}" if one.line else one.file
            super().__init__(f"{one.field} {one.what}", why=f"found in {place}", fix=one.fix)
        else:
            super().__init__(
                f"{len(faults)} settings are not valid",
                why="\n".join(fault.sentence() for fault in self.faults),
                fix="correct them, then: headgate config check",
            )


def as_written(value: object) -> str:
    """A value as it would stand in an env file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def without_secrets(value: object) -> str:
    """A value with passwords and tokens inside URLs masked."""
    return SECRET_IN_TEXT.sub(lambda m: f"{m[1] or m[2]}{MASK}", as_written(value))


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The members of a union or of `Annotated`, else the type itself."""
    inner = [a for a in get_args(annotation) if a is not type(None)]
    return (annotation,) if get_origin(annotation) is Literal or not inner else (inner[0],)


def choices_of(annotation: Any) -> tuple[str, ...]:
    only = alternatives(annotation)[0]
    return tuple(map(str, get_args(only))) if get_origin(only) is Literal else ()


def default_of(info: FieldInfo, variable: Variable) -> str:
    if variable.default or info.default_factory is not None:
        return variable.default
    return "" if info.default is None else f"`{as_written(info.default)}`"


def describe(model: type[BaseModel]) -> tuple[Described, ...]:
    """All variables of a model in the order of its fields, each under its group."""
    found: list[Described] = []
    group = ""
    for field, info in model.model_fields.items():
        variable = next((m for m in info.metadata if isinstance(m, Variable)), None)
        if variable is None:
            continue
        group = variable.heading or group
        choices = choices_of(info.annotation)
        kind = variable.form or KINDS.get(alternatives(info.annotation)[0], "text")
        name = variable.name or field.upper()
        default = default_of(info, variable)
        found.append(
            Described(field, name, group, variable.help, kind, default, choices, variable.secret)
        )
    return tuple(found)


def words_for(error: ErrorDetails, form: str) -> str:
    """A pydantic error in our words."""
    kind = error["type"]
    if kind == "string_pattern_mismatch":
        return f"must be {form}"
    words = WORDS.get(kind) or WORDS.get(kind.split("_")[0]) or f"is not valid: {error['msg']}"
    return words.format(**error.get("ctx", {}))


def value_finding(error: ErrorDetails, described: Described) -> Finding:
    """What is wrong with a single value, and what to write instead."""
    given = MASK if described.secret else as_written(error["input"])
    what = f"is '{given}' but {words_for(error, described.kind)}"
    near = suggestion(given, [choice.upper() for choice in described.choices], cutoff=0.5)
    instead = near.lower() if near else (*described.choices, described.default.strip("`"))[0]
    fix = f"Write {described.name}={instead}" if instead else f"Correct {described.name}"
    return Finding(described.name, what, fix)
