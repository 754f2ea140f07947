"""Distinguishes SQL templates that a person edited from compiled ones, and checks the edited ones.

A compiled template's header holds a digest of its text, so an unedited one is recognised whatever release wrote
it. An edited template is what runs; it must still have every step and the declared columns.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from headgate.core.sql.script import Script, Template, parse_script
from headgate.core.sql.strict_json import ADDED_COLUMNS, own_columns
from headgate.declarations.columns import RESERVED_COLUMNS
from headgate.errors import DeclarationError, Fault
from headgate.pipeline.compile.silver import ORIGIN
from headgate.pipeline.spec import Dataset

_SEAL = re.compile(r"^-- Digest (?P<digest>[0-9a-f]{12}): [^\n]*\n", re.MULTILINE)
# What `git merge-file` leaves where two sides changed the same lines.
_MARKER = re.compile(r"^(?:<{7}|>{7}|\|{7}) ", re.MULTILINE)
_WORDS = "while it fits, the manifest rules; once edited, this file is what runs."


@dataclass(frozen=True)
class Chosen:
    """What runs: the compiled templates, save those that a person edited."""

    templates: tuple[Template, ...]
    edited: tuple[str, ...]
    behind: tuple[str, ...]


def seal(text: str) -> str:
    """The template with its digest at the end of its header."""
    head = 0
    for line in text.splitlines(keepends=True):
        if not line.startswith("--"):
            break
        head += len(line)
    return f"{text[:head]}-- Digest {_digest(text)}: {_WORDS}\n{text[head:]}"


def is_sealed(text: str) -> bool:
    """Whether the text is exactly what was compiled."""
    plain = text.replace("\r\n", "\n")
    found = _SEAL.search(plain)
    return found is not None and found["digest"] == _digest(_SEAL.sub("", plain, count=1))


def conflict_line(text: str) -> int | None:
    """The line of the first conflict marker, counted from 1."""
    found = _MARKER.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else None


def choose(fresh: Sequence[Template], written: Mapping[str, str]) -> Chosen:
    """An edited template wins over the compiled one; an untouched one that is behind does not."""
    differing = [t.file for t in fresh if t.file in written and written[t.file] != t.text]
    edited = tuple(file for file in differing if not is_sealed(written[file]))
    return Chosen(
        templates=tuple(
            Template(t.file, written[t.file]) if t.file in edited else t for t in fresh
        ),
        edited=edited,
        behind=tuple(file for file in differing if file not in edited),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


BRONZE_STEPS = ("clock", "revision", "source", "accept", "refuse")
SILVER_STEPS = ("source", "rebuild")
MERGE_STEPS = ("source", "classify", "append", "merge")
BACKFILL_STEPS = ("source", "backfill")


def check_edited(dataset: Dataset, chosen: Chosen, folder: str) -> None:
    """Refuse edited templates that the engine could not run, all faults at once."""
    faults: list[Fault] = []
    for template in chosen.templates:
        if template.file in chosen.edited:
            faults += _faults(dataset, Template(f"{folder}/{template.file}.tmpl", template.text))
    if faults:
        raise DeclarationError(faults)


def _faults(dataset: Dataset, template: Template) -> list[Fault]:
    if line := conflict_line(template.text):
        fix = "Keep one side, and remove the lines with <<<<<<<, |||||||, ======= and >>>>>>>."
        return [Fault(template.file, line, "conflict", "two versions stand here", fix)]
    script = parse_script(template.file, template.text)
    if "bronze" in template.file.rsplit("/", 1)[-1]:
        return [
            *_missing(script, BRONZE_STEPS),
            *_other_columns(script, "accept", bronze_names(dataset)),
        ]
    if script.named("merge"):
        return _missing(script, MERGE_STEPS)
    if template.file.endswith("_backfill.sql.tmpl"):
        return _missing(script, BACKFILL_STEPS)
    return [
        *_missing(script, SILVER_STEPS),
        *_other_columns(script, "rebuild", silver_names(dataset)),
    ]


def bronze_names(dataset: Dataset) -> list[str]:
    columns = (column.name for column in dataset.columns)
    return [*columns, *own_columns(dataset), *RESERVED_COLUMNS]


def silver_names(dataset: Dataset) -> list[str]:
    names = [column.silver_name for column in dataset.columns]
    return [dataset.surrogate_key_name, *names, dataset.partition_date_col, *ORIGIN]


def _missing(script: Script, steps: Sequence[str]) -> list[Fault]:
    faults: list[Fault] = []
    for step in steps:
        try:
            script.one(step)
        except DeclarationError as error:
            faults.extend(error.faults)
    return faults


def _other_columns(script: Script, step: str, declared: Sequence[str]) -> list[Fault]:
    """Without BY NAME rows are inserted by position, so then the order counts too."""
    line = next((s.line for s in script.steps if s.name == step), None)
    if line is None:
        return []
    try:
        tree = sqlglot.parse_one(script.named(step)[0], read="spark")
    except SqlglotError as error:
        words = str(error).splitlines()[0]
        return [Fault(script.file, line, step, f"cannot be read: {words}", "Mend the statement.")]
    select = tree.find(exp.Select)
    given = _selected(select, script) if select else []
    by_name = isinstance(tree, exp.Insert) and bool(tree.args.get("by_name"))
    if given == list(declared) or (by_name and sorted(given) == sorted(declared)):
        return []
    return [
        Fault(
            script.file,
            line,
            step,
            f"gives the columns {', '.join(given) or 'of another statement'}",
            f"Give exactly: {', '.join(declared)}.",
        )
    ]


def _selected(select: exp.Select, script: Script) -> list[str]:
    """The columns of a query; those of `record.*` stand in the call of strict_json above it."""
    names: list[str] = []
    for column in select.expressions:
        if not column.is_star:
            names.append(column.alias_or_name)
            continue
        unused = {item.name for item in column.find_all(exp.Identifier)}
        names += [name for name in _record_columns(script) if name not in unused]
    return names


def _record_columns(script: Script) -> list[str]:
    """The columns that strict_json gives, as far as a view of the file calls it."""
    for statement in script.named("view"):
        for call in sqlglot.parse_one(statement, read="spark").find_all(exp.Anonymous):
            if call.name == "strict_json" and len(call.expressions) > 1:
                fields = exp.DataType.build(f"STRUCT<{call.expressions[1].name}>", dialect="spark")
                return [*(field.name for field in fields.expressions), *ADDED_COLUMNS]
    return []
