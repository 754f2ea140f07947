"""A dataset manifest → its SQL files. Pure: the same manifest gives the same bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jinja2

from headgate.compile import bronze, fragments, silver
from headgate.compile.fragments import table_name
from headgate.compile.render import Template
from headgate.errors import DeclarationError, Fault
from headgate.expr.faults import ExprError
from headgate.expr.literals import spark_identifier
from headgate.expr.parse import parse_condition, parse_value
from headgate.spec.dataset import Dataset
from headgate.spec.declared import Declared

BRONZE_BATCH = "05_bronze_batch.sql"
SILVER = "06_silver.sql"
SILVER_INCREMENTAL = "06_silver_incremental.sql"
BRONZE_STREAMING = "07_bronze_streaming.sql"
# The manifest's placeholders stay placeholders in the templates; rendering fills them.
PLACEHOLDERS = {"TOPIC": "${TOPIC}", "DLQ_TOPIC": "${DLQ_TOPIC}"}


@dataclass(frozen=True)
class CompiledDataset:
    """The SQL templates of one dataset, by file name, and the revision they come from."""

    name: str
    revision: str
    templates: tuple[Template, ...]

    def template(self, file: str) -> Template:
        return next(template for template in self.templates if template.file == file)


def revision_of(dataset: Dataset) -> str:
    """The hash of the manifest's canonical content: comments and layout do not count."""
    content = json.dumps(dataclasses.asdict(dataset), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def check_conditions(declared: Declared[Dataset]) -> None:
    """Refuse what the closed language does not admit, every place at once."""
    dataset = declared.value
    faults: list[Fault] = []

    def admit(pointer: str, parse: Callable[[], object]) -> None:
        try:
            parse()
        except ExprError as error:
            faults.extend(declared.fault(pointer, f.what, f.why, f.fix) for f in error.faults)

    for i, text in enumerate(dataset.quality_filters):
        admit(f"quality_filters[{i}]", lambda text=text: parse_condition(text, dataset.bronze_types))
    admit(
        "partition_date_expr",
        lambda: parse_value(dataset.partition_date_expr, dataset.bronze_types),
    )
    if faults:
        raise DeclarationError(faults)


def compile_dataset(
    declared: Declared[Dataset], layouts: Mapping[str, str], manifest: str
) -> CompiledDataset:
    """The dataset's SQL templates, laid out by the Jinja `layouts` (name → text)."""
    check_conditions(declared)
    dataset = declared.value
    revision = revision_of(dataset)
    lay_out = _layouter(layouts)
    shared = _shared(dataset, revision)
    head = (manifest, revision)
    raw, clean = dataset.bronze_table, dataset.silver_table
    files = {
        BRONZE_BATCH: lay_out(
            "bronze.sql.j2",
            **shared,
            header=fragments.header(
                f"Bronze of {dataset.name}: topic {dataset.topic} → {raw}.", *head,
                "Runs alone in spark-sql: it reads the topic from its start to its current end.",
            ),
        ),
        SILVER: lay_out(
            "silver.sql.j2",
            **shared,
            header=fragments.header(
                f"Silver of {dataset.name}, rebuilt: {raw} → {clean}.", *head,
                "Runs alone in spark-sql and gives the same rows each time.",
            ),
            write=silver.rebuild(dataset, table_name(clean)),
        ),
        SILVER_INCREMENTAL: lay_out(
            "silver.sql.j2",
            **shared,
            header=fragments.header(
                f"Silver of {dataset.name}, brought up to date: new rows of {raw} → {clean}.", *head,
                "Run alone it compares all of bronze with silver and changes what is behind.",
            ),
            write=silver.merge(dataset, table_name(clean)),
        ),
        BRONZE_STREAMING: lay_out(
            "streaming.sql.j2",
            **shared,
            header=fragments.header(
                f"Bronze of {dataset.name} as a stream: topic {dataset.topic} → {raw}.", *head,
                "Run alone in spark-sql it reads the topic once; the engine repeats it.",
            ),
        ),
    }
    return CompiledDataset(
        dataset.name,
        revision,
        tuple(Template(file, text) for file, text in files.items()),
    )


def _shared(dataset: Dataset, revision: str) -> dict[str, str]:
    identifiers = [spark_identifier(column.name) for column in dataset.columns]
    return {
        "name": dataset.name,
        "topic": dataset.topic,
        "job": f"bronze-{dataset.name}",
        "revision": revision,
        "table_properties": fragments.properties(),
        "dead_letters": fragments.DEAD_LETTERS,
        "dead_letter_table": fragments.dead_letter_table(),
        "bronze_table": table_name(dataset.bronze_table),
        "bronze_namespace": fragments.namespace(dataset.bronze_table),
        "bronze_columns": bronze.bronze_columns(dataset),
        "bronze_values": bronze.bronze_values(dataset),
        "json_schema": bronze.json_schema(dataset),
        "json_options": fragments.options(bronze.read_options(dataset)),
        "json_write_options": fragments.options(bronze.write_options(dataset)),
        "json_fields": fragments.lines(identifiers),
        "field_names": ", ".join(identifiers),
        "refusals": bronze.refusals(dataset),
        "reason_words": bronze.reason_words(dataset),
        "silver_table": table_name(dataset.silver_table),
        "silver_namespace": fragments.namespace(dataset.silver_table),
        "silver_columns": silver.silver_columns(dataset),
        "silver_values": silver.silver_values(dataset),
        "silver_names": fragments.lines(map(spark_identifier, silver.silver_names(dataset))),
        "partition_column": spark_identifier(dataset.partition_date_col),
        "key_names": ", ".join(silver.key_names(dataset)),
        "keep": silver.keep(dataset),
    }


def _layouter(layouts: Mapping[str, str]) -> Callable[..., str]:
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(dict(layouts)),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # it is SQL, not HTML; names and values are escaped where they are made
    )
    return lambda layout, /, **values: environment.get_template(layout).render(values)
