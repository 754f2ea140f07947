"""What must hold of a template that a person edited: its steps are there, its columns as declared."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from headgate.core.sql.bronze import ADDED_COLUMNS
from headgate.core.sql.compile_script import Script, parse_script
from headgate.core.sql.drift import own_columns
from headgate.core.sql.render import Template
from headgate.declarations.spec_columns import RESERVED_COLUMNS
from headgate.errors import DeclarationError, Fault
from headgate.pipeline.compile.compile_silver import ORIGIN
from headgate.pipeline.compile.seal import Chosen, conflict_line
from headgate.pipeline.spec import Dataset

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
