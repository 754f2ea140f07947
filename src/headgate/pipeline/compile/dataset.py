"""Compile a dataset manifest to its SQL files: bronze, silver, backfill, staging model.

First the manifest is checked against the condition language and names that the SQL uses itself.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import jinja2

from headgate.conditions.grammar import ExprError
from headgate.conditions.parser import parse_condition, parse_value
from headgate.core.sql import fragments
from headgate.core.sql.script import Template
from headgate.core.sql.strict_json import (
    EXTRA,
    OWN_NAMES,
    added_columns,
    bronze_columns,
    bronze_properties,
    read_record,
)
from headgate.declarations.columns import SILVER_OWN_NAMES, Column
from headgate.declarations.errors import Declared
from headgate.errors import DeclarationError, Fault
from headgate.pipeline.compile import silver
from headgate.pipeline.compile.dbt_files import staging_columns, staging_file, staging_source
from headgate.pipeline.compile.templates import seal
from headgate.pipeline.spec import Dataset

BRONZE_BATCH = "05_bronze_batch.sql"
SILVER = "06_silver.sql"
SILVER_INCREMENTAL = "06_silver_incremental.sql"
SILVER_BACKFILL = "06_silver_backfill.sql"
BRONZE_STREAMING = "07_bronze_streaming.sql"
TRIGGER = "Trigger: a batch every 10 seconds, from the earliest offset, until the job is stopped."


def check_dataset(declared: Declared[Dataset]) -> None:
    """Refuse what the closed language does not admit and names that are taken, all at once."""
    faults = [*_expression_faults(declared), *_name_faults(declared)]
    if faults:
        raise DeclarationError(sorted(faults, key=lambda fault: fault.line or 0))


def _expression_faults(declared: Declared[Dataset]) -> list[Fault]:
    dataset, faults = declared.value, list[Fault]()

    def admit(pointer: str, parse: Callable[[], object]) -> None:
        try:
            parse()
        except ExprError as error:
            faults.extend(declared.fault(pointer, f.what, f.why, f.fix) for f in error.faults)

    types = dataset.bronze_types
    for i, text in enumerate(dataset.quality_filters):
        admit(f"quality_filters[{i}]", lambda text=text: parse_condition(text, types))
    admit("partition_date_expr", lambda: parse_value(dataset.partition_date_expr, types))
    return faults


def _name_faults(declared: Declared[Dataset]) -> list[Fault]:
    why = "the compiled SQL uses that name itself"
    dataset = declared.value
    faults = [
        declared.fault(f"columns[{i}].name", f"`{c.name}` is taken", why, "Leave the column out.")
        for i, c in enumerate(dataset.columns)
        if c.name.lower() in OWN_NAMES
    ]
    named = {f"columns[{i}].silver_name": c.silver_name for i, c in enumerate(dataset.columns)}
    named["surrogate_key_name"] = dataset.surrogate_key_name
    named["partition_date_col"] = dataset.partition_date_col
    faults += [
        declared.fault(pointer, f"`{name}` is taken", why, "Choose another name in silver.")
        for pointer, name in named.items()
        if name.lower() in SILVER_OWN_NAMES
    ]
    return faults


@dataclass(frozen=True)
class CompiledDataset:
    """The SQL templates of one dataset, by file name, and the revision they come from."""

    dataset: Dataset
    revision: str
    templates: tuple[Template, ...]
    staging: Template

    def template(self, file: str) -> Template:
        return next(template for template in self.templates if template.file == file)


@dataclass(frozen=True)
class Layout:
    """One file: the Jinja layout that makes it, what it is, and notes for its reader."""

    layout: str
    title: str
    notes: tuple[str, ...]
    write: str = ""


def revision_of(dataset: Dataset, evolved: Sequence[Column] = ()) -> str:
    """The hash of the manifest's canonical content: comments and layout do not count."""
    facts = dataclasses.asdict(dataset)
    if evolved:
        facts["evolved"] = [dataclasses.asdict(column) for column in evolved]
    content = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def compile_dataset(
    declared: Declared[Dataset], layouts: Mapping[str, str], manifest: str
) -> CompiledDataset:
    """The dataset's SQL templates, laid out by the Jinja `layouts` (name → text)."""
    check_dataset(declared)
    dataset = declared.value
    revision = revision_of(dataset)
    lay_out = _layouter(layouts, _pieces(dataset, revision))
    files = {**_bronze_files(dataset), **_silver_files(dataset)}
    model = staging_file(dataset)
    head = fragments.header(f"Every row of {dataset.silver_table}.", manifest, revision)
    return CompiledDataset(
        dataset=dataset,
        revision=revision,
        templates=tuple(
            _made(dataset, file, files[file], lay_out, manifest, revision) for file in sorted(files)
        ),
        staging=Template(model, lay_out("stg.sql.j2", header=head)),
    )


def evolved_bronze(
    dataset: Dataset, evolved: Sequence[Column], layouts: Mapping[str, str], manifest: str
) -> tuple[Template, ...]:
    """The bronze files with the columns that the topic brought beside the declared ones."""
    revision = revision_of(dataset, evolved)
    lay_out = _layouter(layouts, _pieces(dataset, revision, evolved))
    return tuple(
        _made(dataset, file, layout, lay_out, manifest, revision)
        for file, layout in _bronze_files(dataset, evolved).items()
    )


def _made(
    dataset: Dataset,
    file: str,
    layout: Layout,
    lay_out: Callable[..., str],
    manifest: str,
    revision: str,
) -> Template:
    notes = (*layout.notes, *fragments.alone(dataset.name, file))
    header = fragments.header(layout.title, manifest, revision, *notes)
    return Template(file, seal(lay_out(layout.layout, header=header, write=layout.write)))


def _bronze_files(dataset: Dataset, evolved: Sequence[Column] = ()) -> dict[str, Layout]:
    name, raw = dataset.name, dataset.bronze_table
    once = "Run alone, it reads the topic from its start to its current end, and appends."
    contract = _contract_notes(dataset, [column.name for column in evolved])
    return {
        BRONZE_BATCH: Layout(
            "bronze.sql.j2", f"Bronze of {name}: topic {dataset.topic} → {raw}.", (*contract, once)
        ),
        BRONZE_STREAMING: Layout(
            "streaming.sql.j2",
            f"Bronze of {name} as a stream: topic {dataset.topic} → {raw}.",
            (TRIGGER, *contract, once),
        ),
    }


def _contract_notes(dataset: Dataset, evolved: Sequence[str]) -> list[str]:
    """What the header says of fields that are not declared."""
    said = {
        "evolve": f"Fields that are no columns are kept in {EXTRA}; the engine makes columns of them.",
        "freeze": f"Fields that are no columns are kept in {EXTRA}, and the columns stay as they are.",
        "quarantine": "A record with an unknown field or without a declared one is refused.",
    }
    came = textwrap.wrap(f"Columns that the topic brought: {', '.join(evolved)}.", 96)
    return [f"Contract {dataset.contract}: {said[dataset.contract]}", *(came if evolved else ())]


def _silver_files(dataset: Dataset) -> dict[str, Layout]:
    name, raw, clean = dataset.name, dataset.bronze_table, dataset.silver_table
    return {
        SILVER: Layout(
            "silver.sql.j2",
            f"Silver of {name}, rebuilt: {raw} → {clean}.",
            ("Run alone, it gives the same rows each time.",),
            silver.rebuild(dataset),
        ),
        SILVER_INCREMENTAL: Layout(
            "silver.sql.j2",
            f"Silver of {name}, brought up to date: new rows of {raw} → {clean}.",
            ("Run alone, it compares all of bronze with silver and changes what is behind.",),
            silver.merge(dataset),
        ),
        SILVER_BACKFILL: Layout(
            "backfill.sql.j2",
            f"Silver of {name} for some dates: {raw} → {clean}.",
            ("Run alone, it makes the rows of every date anew; rows without a date stay.",),
            silver.backfill(dataset),
        ),
    }


def _pieces(dataset: Dataset, revision: str, evolved: Sequence[Column] = ()) -> dict[str, str]:
    """Every fragment that a layout may ask for."""
    wide = dataclasses.replace(dataset, columns=(*dataset.columns, *evolved))
    names = [column.name for column in evolved]
    return {
        "name": fragments.view_stem(dataset.name),
        "topic": dataset.topic,
        "job": fragments.job_name("bronze", dataset.name),
        "revision": revision,
        "table_properties": silver.silver_properties(),
        "dead_letters": fragments.DEAD_LETTERS,
        "dead_letter_table": fragments.dead_letter_table(),
        "bronze_table": fragments.table_name(dataset.bronze_table),
        "bronze_namespace": fragments.namespace(dataset.bronze_table),
        "bronze_columns": bronze_columns(wide),
        "bronze_properties": bronze_properties(wide),
        "read_record": read_record(wide, names),
        "added_columns": added_columns(wide),
        "silver_table": fragments.table_name(dataset.silver_table),
        "silver_namespace": fragments.namespace(dataset.silver_table),
        "silver_columns": silver.silver_columns(dataset),
        "silver_values": silver.silver_values(dataset),
        "silver_names": fragments.lines(silver.silver_names(dataset)),
        "partition_column": silver.partition_column(dataset),
        "key_list": silver.key_list(dataset),
        "dated": silver.dated(dataset),
        "keep": silver.keep(dataset),
        "staging_columns": staging_columns(dataset),
        "staging_source": staging_source(dataset),
    }


@lru_cache(4)
def _environment(layouts: tuple[tuple[str, str], ...]) -> jinja2.Environment:
    """Jinja with these layouts; kept, since all datasets of a project share them."""
    return jinja2.Environment(
        loader=jinja2.DictLoader(dict(layouts)),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # it is SQL, not HTML; names and values are escaped where they are made
    )


def _layouter(layouts: Mapping[str, str], pieces: Mapping[str, str]) -> Callable[..., str]:
    environment = _environment(tuple(layouts.items()))

    def lay_out(layout: str, **more: str) -> str:
        return environment.get_template(layout).render(**pieces, **more)

    return lay_out
