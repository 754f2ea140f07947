"""`headgate dataset`: the group of its verbs, and list, build, show and drift."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.pipeline.cli.draft import new
from headgate.pipeline.cli.manifest import check, remove, scaffold
from headgate.terminal.console import console
from headgate.terminal.project import active_dataset, below, faults_below

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.pipeline.build import Build
    from headgate.pipeline.drift_report import Deviation, DriftReport

_CONF = "build/conf/spark-defaults.conf"


@click.command()
@click.argument("name", required=False)
def drift(name: str | None) -> None:
    """Show fields of the topic that are unknown, missing or of another type.

    The counts are of the batches that bronze has read so far. A field that became a column by
    itself is counted as unknown in the batch that brought it. The last lines declare what is not
    declared: paste them under `columns:` of the manifest.

    \b
    Examples:
      headgate dataset drift
      headgate dataset drift orders
      headgate -o json dataset drift orders
    """
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.core.sql.script import PLACEHOLDERS
    from headgate.declarations.project import find_dataset
    from headgate.pipeline.drift_report import drift_report
    from headgate.pipeline.loader import load_dataset

    settings = load_settings()
    path = find_dataset(settings.root, name or active_dataset(settings))
    with OpsStore.open(settings.ops_store_url) as store:
        found = drift_report(settings, store, load_dataset(path, PLACEHOLDERS).value)
    text = _text(found)
    if not text:
        console.done(f"{found.dataset}: every record so far had the declared fields")
    if text or console.format != "text":
        console.data(found, text=text)


def _text(found: DriftReport) -> str:
    parts = [f"contract: {found.contract}"] if found.deviations else []
    parts += [_line(deviation) for deviation in found.deviations]
    parts += [f"column {name}: {rows:,} rows have a value" for name, rows in found.columns.items()]
    if found.lines:
        parts += ["", "# to declare these, under columns: of the manifest", found.lines.rstrip()]
    return "\n".join(parts)


def _line(d: Deviation) -> str:
    seen = d.first_seen if d.batches == 1 else f"{d.first_seen} to {d.last_seen}"
    words = [f"{d.kind} {d.field}: {d.records:,} records", f"→ {d.becomes}", f"({seen})", d.hint]
    return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Listed:
    """One dataset as `dataset list` prints it."""

    name: str
    topic: str
    bronze: str
    silver: str
    columns: int
    revision: str
    templates: str


@dataclass(frozen=True)
class Written:
    """What `dataset build` wrote."""

    dataset: str
    files: tuple[str, ...]
    edited: tuple[str, ...]


@dataclass(frozen=True)
class ShownFile:
    file: str
    text: str


@dataclass(frozen=True)
class Shown:
    """What runs, file by file, secrets masked."""

    dataset: str
    edited: tuple[str, ...]
    files: tuple[ShownFile, ...]


@click.group()
def group() -> None:
    """Check and compile dataset manifests.

    \b
    Examples:
      headgate dataset new orders --from data/orders.parquet
      headgate dataset check
      headgate dataset scaffold orders
      headgate dataset build
      headgate dataset show --file 06_silver.sql
      headgate dataset drift
    """


group.add_command(check)
group.add_command(new)
group.add_command(scaffold)
group.add_command(drift)
group.add_command(remove)


@group.command()
@click.argument("name", required=False)
@click.option("--refresh", is_flag=True, help="Also bring spark/sql/<NAME>/*.tmpl up to date.")
def build(name: str | None, refresh: bool) -> None:
    """Render the SQL and Spark's configuration into build/, all of it or nothing.

    An edited template under spark/sql/<NAME> is what runs; one that nobody touched follows the
    manifest, and --refresh writes it anew. The engine compiles again whenever a job starts.

    \b
    Examples:
      headgate dataset build
      headgate dataset build orders --refresh
    """
    from headgate.pipeline.build import plan_build, refresh_templates, write_build

    settings = _settings()
    chosen = name or active_dataset(settings)
    with faults_below(settings.root):
        plan = plan_build(settings, chosen)
    refreshed = refresh_templates(settings, chosen) if refresh else ()
    files = [below(path, settings.root) for path in (*refreshed, *write_build(plan))]
    _tell(plan, refreshed=bool(refreshed))
    console.data(Written(chosen, tuple(files), plan.edited), text="\n".join(files))


@group.command()
@click.argument("name", required=False)
@click.option("--file", "only", default=None, help="Only this file, such as 06_silver.sql.")
def show(name: str | None, only: str | None) -> None:
    """Print what `build` would write, secrets masked.

    \b
    Examples:
      headgate dataset show
      headgate dataset show --file 05_bronze_batch.sql
      headgate -o json dataset show orders
    """
    from headgate.errors import UsageError
    from headgate.pipeline.build import plan_build

    settings = _settings()
    with faults_below(settings.root):
        plan = plan_build(settings, name or active_dataset(settings))
    files = tuple(
        ShownFile(below(file.path, settings.root), file.shown)
        for file in plan.files
        if only in (None, file.path.name)
    )
    if not files:
        known = ", ".join(file.path.name for file in plan.files)
        raise UsageError(f"there is no file {only}", fix=f"use one of {known}")
    _tell(plan, refreshed=False)
    text = files[0].text if only else "\n".join(_titled(file) for file in files)
    console.data(Shown(plan.dataset, plan.edited, files), text=text.rstrip("\n"))


@group.command("list")
def list_datasets() -> None:
    """List the datasets and where their data goes."""
    from headgate.declarations.project import available_datasets

    root = _settings().root
    console.data([_listed(root, name) for name in available_datasets(root)])


def _settings() -> Settings:
    from headgate.config.settings import load_settings

    return load_settings()


def _listed(root: Path, name: str) -> Listed:
    from headgate.errors import DeclarationError
    from headgate.pipeline.revision import chosen

    try:
        fresh, picked = chosen(root, name)
    except DeclarationError as error:
        return Listed(name, "", "", "", 0, "", f"not valid: {error.what}")
    dataset = fresh.dataset
    return Listed(
        name,
        dataset.topic,
        dataset.bronze_table,
        dataset.silver_table,
        len(dataset.columns),
        fresh.revision[:12],
        f"edited: {', '.join(picked.edited)}" if picked.edited else "compiled",
    )


def _tell(plan: Build, refreshed: bool) -> None:
    """What a reader of the files should know."""
    for file in plan.edited:
        console.warn(f"spark/sql/{plan.dataset}/{file}.tmpl is edited: it is what runs")
    if plan.behind and not refreshed:
        fix = f"headgate dataset build {plan.dataset} --refresh"
        console.warn(f"spark/sql/{plan.dataset} is behind the manifest: {fix}")
    if plan.assumed_broker:
        console.say(f"the broker is not up: {plan.assumed_broker} is assumed; build again after it")
    if plan.missing_jars:
        console.say(
            f"{plan.missing_jars} jars that {_CONF} names come with the engine's first start"
        )


def _titled(file: ShownFile) -> str:
    return f"-- ── {file.file}\n{file.text}"
