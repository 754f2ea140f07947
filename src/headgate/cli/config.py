"""`headgate config`: choose a profile, show each value and its source, check everything before a start.

`config check` lists all faults at once: contradictions, missing values, storage or databases that
this installation cannot serve, unknown datasets and files that do not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import click

from headgate.config.env_files import (
    ACTIVE,
    Entry,
    Sources,
    activate,
    find_profile,
    from_environment,
    is_file,
    read_profile,
    suggestion,
)
from headgate.config.reference import (
    MASK,
    Described,
    Finding,
    InvalidSettingsError,
    without_secrets,
)
from headgate.config.schema import NAMES, VARIABLES
from headgate.config.settings import Settings, gather, load_settings
from headgate.errors import Fault, UsageError
from headgate.terminal.console import console

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
    from headgate.declarations.errors import suggestion as nearest
    from headgate.declarations.project import available_datasets

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


PROCESS_ONLY = {
    "HEADGATE_CACHE": "Where fetched jars are kept; default `~/.cache/headgate`.",
    "HEADGATE_IVY_SETTINGS": "An Ivy settings file, for a company mirror of Maven artifacts.",
    "HEADGATE_DEBUG": "Show the trace of an error, like `--debug`.",
    "JAVA_HOME": "A Java 17 or 21 to use instead of the one on the path.",
    "NO_COLOR": "No colours on a terminal.",
}


@dataclass(frozen=True)
class Row:
    """One variable as `config show` prints it."""

    variable: str
    value: str
    origin: str
    group: str


@dataclass(frozen=True)
class Report:
    """What `config check` found."""

    profile: str
    faults: tuple[Fault, ...]
    warnings: tuple[str, ...]
    passed: bool


@click.group()
def group() -> None:
    """Choose, show and check settings.

    \b
    Examples:
      headgate config select env/local.env
      headgate config show TOPIC DLQ_TOPIC
      headgate config check
    """


@group.command()
@click.argument("profile")
def select(profile: str) -> None:
    """Make PROFILE (env/local.env, or just local) the active one and show what holds now."""
    sources = gather()
    path = find_profile(sources.root, profile)
    shown = as_typed(path, sources.root)
    alone = Sources(sources.root, (read_profile(path, shown), from_environment({})))
    Settings.from_sources(alone)
    kept = activate(sources.root, path)
    if kept:
        console.warn(f"{ACTIVE} had been edited; the old one is now {kept.name}")
    console.done(f"{shown} is now {ACTIVE}")
    present(gather(sources.root), VARIABLES, brackets=False)


@group.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--brackets", is_flag=True, help="Values in [brackets], white space and all.")
def show(names: tuple[str, ...], brackets: bool) -> None:
    """Every variable: its value, secrets masked, and where the value came from."""
    wanted = [chosen(name) for name in names] or VARIABLES
    present(gather(), wanted, brackets)


@group.command()
def check() -> None:
    """Check the settings against each other and against this machine; list all faults at once."""
    sources = gather()
    faults = (*all_faults(sources),)
    warnings = (*unknown_names(sources), *placeholders(sources), *far_executors(sources))
    report = Report(sources.profile.file, faults, warnings, passed=not faults)
    if console.format != "text":
        console.data(report)
    else:
        for words in warnings:
            console.warn(words)
    if faults:
        raise InvalidSettingsError(faults)
    console.done(summary(sources))


@group.command()
def reference() -> None:
    """Print the reference of all variables (docs/reference/settings.md)."""
    console.data(list(VARIABLES), text=reference_page())


def as_typed(path: Path, root: Path) -> str:
    """A profile as a person would name it: below the project if it is there."""
    full = path.resolve()
    below = full.is_relative_to(root.resolve())
    return full.relative_to(root.resolve()).as_posix() if below else str(path)


def chosen(name: str) -> Described:
    for described in VARIABLES:
        if described.name == name.upper():
            return described
    near = suggestion(name, NAMES.values())
    raise UsageError(
        f"there is no variable {name}",
        fix=f"headgate config show {near}" if near else "headgate config show lists all",
    )


def present(sources: Sources, wanted: Sequence[Described], brackets: bool) -> None:
    """Print the values; when they are at fault, as they are written, and then the faults."""
    fault: InvalidSettingsError | None = None
    settings = Settings(root=sources.root)
    try:
        settings = Settings.from_sources(sources)
    except InvalidSettingsError as error:
        fault = error
    rows = [row(settings, sources, described, brackets, bool(fault)) for described in wanted]
    console.data(rows, text=as_text(rows))
    if fault:
        raise fault


def row(
    settings: Settings, sources: Sources, described: Described, brackets: bool, as_is: bool
) -> Row:
    found = sources.find(described.name)
    value, origin = settings.shown(described.field), settings.origin(described.field)
    if found and (brackets or as_is):
        value, origin = as_given(found.entry, described.secret), found.source.label
    return Row(described.name, f"[{value}]" if brackets else value, origin, described.group)


def as_given(entry: Entry, secret: bool) -> str:
    """The text of an assignment with its blanks, a secret masked between them."""
    masked = entry.raw.replace(entry.value, MASK) if entry.value else entry.raw
    return masked if secret else without_secrets(entry.raw)


def as_text(rows: Sequence[Row]) -> str:
    """Aligned columns under each group's heading."""
    name_width = max(len(row.variable) for row in rows)
    value_width = min(max(len(row.value) for row in rows), 48)
    blocks: list[str] = []
    for heading, members in groupby(rows, key=lambda row: row.group):
        lines = [
            f"  {row.variable:<{name_width}}  {row.value:<{value_width}}  {row.origin}"
            for row in members
        ]
        blocks.append("\n".join([heading, *lines]))
    return "\n\n".join(blocks)


def unknown_names(sources: Sources) -> Iterator[str]:
    """Unknown names are ignored, but one that looks like a slip is worth a word."""
    profile = sources.profile
    known = [*NAMES.values(), *PROCESS_ONLY]
    for name, entry in profile.entries.items():
        place = f"{profile.file}:{entry.line}"
        if name in PROCESS_ONLY:
            yield f"{place}: {name} has no effect here; set it in the environment"
        elif name not in known and (near := suggestion(name, known)):
            yield f"{place}: {name} is unknown and ignored; did you mean {near}?"


def placeholders(sources: Sources) -> Iterator[str]:
    profile = sources.profile
    for name, entry in profile.entries.items():
        if "your-" in entry.value:
            yield f"{profile.file}:{entry.line}: {name}={entry.value} still has to be filled in"


def far_executors(sources: Sources) -> Iterator[str]:
    try:
        settings = Settings.from_sources(sources)
    except InvalidSettingsError:
        return
    if settings.storage == "local" and not settings.spark_master.startswith("local"):
        yield f"SPARK_MASTER={settings.spark_master} with STORAGE=local: executors on other machines cannot see the tables"


def summary(sources: Sources) -> str:
    settings = load_settings(sources.root)
    axes = [f"{NAMES[f]}={settings.shown(f)}" for f in ("broker", "catalog", "storage", "mode")]
    data = f", data {settings.data_file}" if settings.data_path else ""
    return f"{sources.profile.file} is valid: {', '.join(axes)}{data}"


def reference_page() -> str:
    """The reference in Markdown, made from the variables' own descriptions."""
    parts = [INTRODUCTION]
    for heading, members in groupby(VARIABLES, key=lambda described: described.group):
        lines = [reference_line(described) for described in members]
        parts.append("\n".join([f"## {heading}", "", HEADER, *lines]))
    only = [f"| `{name}` | {words} |" for name, words in PROCESS_ONLY.items()]
    parts.append("\n".join([ENVIRONMENT_ONLY, *only]))
    return "\n\n".join(parts)


def reference_line(described: Described) -> str:
    values = ", ".join(f"`{choice}`" for choice in described.choices) or described.kind
    secret = " Secret: masked wherever it is shown." if described.secret else ""
    return f"| `{described.name}` | {described.help}{secret} | {values} | {described.default} |"


HEADER = "| variable | what it says | values | default |\n|---|---|---|---|"
INTRODUCTION = """# Settings

Made by `headgate config reference`; do not edit it by hand.

A value is taken from the strongest source that gives it: the environment, then what running local
services wrote about themselves, then the active profile (`.env`, or `env/embedded.env` when there
is none), then the default. Blanks around a value and a comment after a blank are taken off; an
empty value means the default; unknown names are ignored. `headgate config show` prints every value
with its source, `headgate config check` lists everything that is wrong.

TOPIC, DLQ_TOPIC, DATA_PATH and SCHEMA_PATH of a profile are those of the profile's DATASET. With
another `DATASET=x` in the environment they are `x.events`, `x.events.dlq`, `/data/x.parquet` and
`/schemas/x.json`, unless the environment gives them too."""
ENVIRONMENT_ONLY = """## Read from the environment only

| variable | what it says |
|---|---|"""
