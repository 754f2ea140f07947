"""What `headgate config check` finds wrong: contradictions, missing values, files that are away."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.config.env_files import ACTIVE, Sources, is_file
from headgate.config.reference import Finding, InvalidSettingsError
from headgate.config.schema import NAMES
from headgate.config.settings import Settings
from headgate.errors import Fault

SQLITE = "jdbc:sqlite:"
REQUIRED = ("dataset", "topic", "dlq_topic")


def all_faults(sources: Sources) -> Iterator[Fault]:
    """What contradicts itself, what is missing, and which files are not there."""
    try:
        Settings.from_sources(sources)
    except InvalidSettingsError as error:
        yield from error.faults
    findings = (
        *missing_parts(sources),
        *missing_values(sources),
        *unknown_dataset(sources),
        *missing_files(sources),
    )
    yield from (finding.located(sources) for finding in findings)


def missing_parts(sources: Sources) -> Iterator[Finding]:
    """Values that are valid but that nothing of this installation can serve."""
    from headgate.core.engine.spark_options import EMBEDDED_FIX, lacking_connector

    storage = sources.find("STORAGE")
    if storage and (lacking := lacking_connector(storage.entry.value)):
        yield Finding("STORAGE", f"is {storage.entry.value}, which {lacking}", EMBEDDED_FIX)
    uri = sources.find("CATALOG_URI")
    if uri and uri.entry.value.startswith("jdbc:") and not uri.entry.value.startswith(SQLITE):
        yield Finding(
            "CATALOG_URI",
            "is a database other than SQLite, through which DuckDB (counts, dbt, certificate) finds"
            " no table",
            f"Write {SQLITE}<file>, or: headgate config select env/embedded.env, which works as it is",
        )


def missing_values(sources: Sources) -> Iterator[Finding]:
    for name in (NAMES[field] for field in REQUIRED):
        found = sources.find(name)
        if found is None or not found.entry.value:
            fix = f"Write {name}=… into {ACTIVE}, or: make env-select ENV=env/embedded.env"
            yield Finding(name, "is not set", fix)


def unknown_dataset(sources: Sources) -> Iterator[Finding]:
    """A slip in DATASET would otherwise show as a missing file."""
    from headgate.declarations.project import available_datasets
    from headgate.declarations.refusal import suggestion as nearest

    found, known = sources.find("DATASET"), available_datasets(sources.root)
    if found and found.entry.value and known and found.entry.value not in known:
        what = f"is {found.entry.value}, which is not declared under datasets/"
        yield Finding("DATASET", what, nearest(found.entry.value, known, "datasets"))


def missing_files(sources: Sources) -> Iterator[Finding]:
    """Judged from the file variables alone, so that other faults do not hide a missing file."""
    data = settings_of(sources, "host_data_dir", "data_path", "dataset")
    if data and data.data_path and not is_file(data.data_file):
        found = sources.find("DATA_PATH")
        followed = found is not None and found.source.label.startswith("DATASET=")
        yield missing_data(data, followed=followed)
    schema = settings_of(sources, "validate_schema", "schema_path")
    if schema and schema.validate_schema and not is_file(schema.schema_file):
        what = f"leads to {schema.schema_file}, which does not exist"
        yield Finding("SCHEMA_PATH", what, "Put the JSON Schema there, or VALIDATE_SCHEMA=false")


def settings_of(sources: Sources, *fields: str) -> Settings | None:
    """Settings of these fields alone, unless they are at fault themselves."""
    found = {field: sources.find(NAMES[field]) for field in fields}
    values = {field: f.entry.value for field, f in found.items() if f and f.entry.value}
    try:
        return Settings.model_validate({"root": sources.root, **values})
    except InvalidSettingsError:
        return None


def missing_data(settings: Settings, *, followed: bool) -> Finding:
    """Another file that is there helps, unless the name follows from the dataset's."""
    folder = settings.data_file.parent
    try:
        there = sorted(path.name for path in folder.glob("*.parquet"))
    except OSError:  # a name that is longer than names can be
        there = []
    what = (
        f"leads to {settings.data_file}, which does not exist"
        f" (HOST_DATA_DIR={settings.host_data_dir}, DATA_PATH={settings.data_path})"
    )
    if there and not followed:
        return Finding("DATA_PATH", what, f"Write DATA_PATH=/data/{there[0]}, which is there")
    sample = f"make sample DATASET={settings.dataset}" if followed else "make sample"
    fix = f"Put the file there, point HOST_DATA_DIR at its folder, or run: {sample}"
    return Finding("DATA_PATH", what, fix)
