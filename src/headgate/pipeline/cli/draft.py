"""`headgate dataset new`: draft a manifest from a Parquet file, check it, then write it; keep old files."""

from __future__ import annotations

import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.errors import DeclarationError, UsageError, count_of
from headgate.terminal.console import Parts, console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.profiler.draft import Draft
    from headgate.pipeline.spec import Dataset


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PREVIOUS = ".previous"


class DraftFiles:
    """Where a dataset's manifest and the schema of its rows stand."""

    def __init__(self, root: Path, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"`{name}` is not a name for a dataset",
                fix="use letters, digits, underscores and hyphens, not beginning with a digit",
            )
        self._root, self._name = root, name
        self.manifest = root / "datasets" / name / "dataset.yml"
        self.schema = root / "schemas" / f"{name}.json"

    def require_free(self, source: Path, force: bool) -> None:
        """Refuse to overwrite what is there, unless that is wanted."""
        there = [path for path in (self.manifest, self.schema) if path.exists()]
        if there and not force:
            raise UsageError(
                f"{there[0].relative_to(self._root)} exists already",
                why="a draft would take the place of what somebody wrote",
                fix=f"headgate dataset new {self._name} --from {source} --force (the old file "
                "is kept beside it), or --dry-run to see the draft, or choose another name",
            )

    def texts(self, draft: Draft) -> tuple[str, str]:
        """Manifest and schema; a draft that would not pass its own check never gets out."""
        from headgate.core.sql.script import PLACEHOLDERS
        from headgate.pipeline.compile.dataset import compile_dataset
        from headgate.pipeline.draft import draft_text, row_schema
        from headgate.pipeline.loader import load_dataset
        from headgate.pipeline.revision import layouts

        text = draft_text(draft)
        with tempfile.TemporaryDirectory(prefix="headgate-draft-") as folder:
            trial = Path(folder) / "datasets" / self._name / "dataset.yml"
            trial.parent.mkdir(parents=True)
            trial.write_text(text, encoding="utf-8")
            declared = load_dataset(trial, PLACEHOLDERS)
            compile_dataset(declared, layouts(self._root), str(self.manifest))
        self._require_own(declared.value)
        return text, row_schema(draft)

    def _require_own(self, drafted: Dataset) -> None:
        """Two datasets must not share a topic or a table."""
        from headgate.core.sql.script import PLACEHOLDERS
        from headgate.declarations.project import available_datasets, find_dataset
        from headgate.pipeline.loader import load_dataset

        own = _places(drafted)
        for name in available_datasets(self._root):
            try:
                other = load_dataset(find_dataset(self._root, name), PLACEHOLDERS).value
            except DeclarationError:
                continue
            if name != self._name and own & _places(other):
                raise UsageError(
                    f"{sorted(own & _places(other))[0]} belongs to the dataset {name}",
                    why=f"the names of {self._name}'s tables and topics are made from its own",
                    fix="choose a name that differs from it in more than hyphens and case",
                )

    def write(self, manifest: str, schema: str) -> list[Path]:
        """Both files whole; where the old ones went, if there were any."""
        from headgate.core.runtime.journal import whole_file

        kept = list[Path]()
        for path, text in ((self.manifest, manifest), (self.schema, schema)):
            if path.exists():
                kept.append(path.replace(path.with_name(path.name + _PREVIOUS)))
            with whole_file(path) as part:
                part.write_text(text, encoding="utf-8")
        return kept


def _places(dataset: Dataset) -> set[str]:
    """Tables and topics, as catalogs compare them."""
    tables = (dataset.bronze_table, dataset.silver_table)
    return {dataset.topic, dataset.dlq_topic, *(table.lower() for table in tables)}


NEXT = (
    "make scaffold",
    "make up",
    "make create-topics generate process",
    "make dbt-build",
    "make validate certify",
)


@dataclass(frozen=True)
class Drafted:
    """What `dataset new` found and wrote; `text` is what it would write on a dry run."""

    dataset: str
    rows: int
    rows_looked_at: int
    columns: int
    event_time: str
    key: tuple[str, ...]
    rows_sharing_a_key: int
    manifest: str
    schema: str
    written: bool
    text: str
    next: tuple[str, ...]


@click.command()
@click.argument("name")
@click.option(
    "--from",
    "file",
    required=True,
    type=click.Path(path_type=Path),
    help="The Parquet file that the events are made from.",
)
@click.option("--event-time", metavar="COLUMN", help="When the event happened. Default: found out.")
@click.option(
    "--key", metavar="A,B", help="Columns that tell two events apart. Default: found out."
)
@click.option("--rows", type=click.IntRange(min=0), help="Rows to look at; 0: all of a large file.")
@click.option("--dry-run", is_flag=True, help="Print the manifest and write nothing.")
@click.option("--force", is_flag=True, help="Overwrite a manifest; the old one is kept beside it.")
def new(
    name: str,
    file: Path,
    event_time: str | None,
    key: str | None,
    rows: int | None,
    dry_run: bool,
    force: bool,
) -> None:
    """Draft datasets/NAME/dataset.yml from a Parquet file, every choice explained in it.

    Types come from the file's columns. The event time is chosen by names and null rates, the key
    is the smallest combination of columns that is unique in all rows. A large file is looked at in
    part, and the manifest says so. `--event-time kafka_timestamp` takes the time of the record.

    \b
    Examples:
      headgate dataset new orders --from data/orders.parquet
      headgate dataset new orders --from data/orders.parquet --dry-run
      headgate dataset new orders --from data/orders.parquet --event-time paid_at --key order_id
    """
    from headgate.config.settings import load_settings
    from headgate.core.profiler.draft import Wishes, draw_up

    settings = load_settings()
    files = DraftFiles(settings.root, name)
    if not dry_run:
        files.require_free(file, force)
    columns = tuple(part.strip() for part in key.split(",") if part.strip()) if key else ()
    with Parts() as watcher:
        draft = draw_up(Wishes(name, file, event_time, columns, rows), watcher)
    manifest, schema = files.texts(draft)
    kept = [] if dry_run else files.write(manifest, schema)
    drafted = _drafted(settings, draft, files, file, "" if not dry_run else manifest)
    listed = f"{drafted.manifest}\n{drafted.schema}"
    console.data(drafted, text=manifest.rstrip() if dry_run else listed)
    _tell(draft, drafted, kept)


def _drafted(settings: Settings, draft: Draft, files: DraftFiles, file: Path, text: str) -> Drafted:
    return Drafted(
        dataset=draft.name,
        rows=draft.profile.looked.of,
        rows_looked_at=draft.profile.looked.rows,
        columns=len(draft.profile.columns),
        event_time=draft.event_time,
        key=draft.key.columns,
        rows_sharing_a_key=draft.key.sharing,
        manifest=files.manifest.relative_to(settings.root).as_posix(),
        schema=files.schema.relative_to(settings.root).as_posix(),
        written=not text,
        text=text,
        next=(f"export DATASET={draft.name}{_where(settings, draft.name, file)}", *NEXT),
    )


def _where(settings: Settings, name: str, file: Path) -> str:
    """What the settings must say of the file: nothing when it stands where it is looked for."""
    folder = (settings.root / Path(settings.host_data_dir).expanduser()).resolve()
    path = file.resolve()
    given = list[str]()
    if not path.is_relative_to(folder):
        folder = path.parent
        given.append(f" HOST_DATA_DIR={shlex.quote(str(folder))}")
    if path != folder / f"{name}.parquet":
        given.append(f" DATA_PATH={shlex.quote(f'/data/{path.relative_to(folder).as_posix()}')}")
    return "".join(given)


def _is_part(drafted: Drafted) -> bool:
    return drafted.rows_looked_at < drafted.rows


def _tell(draft: Draft, drafted: Drafted, kept: list[Path]) -> None:
    """What was decided, what to look at, and what comes next."""
    from headgate.core.profiler.model import about_event_time, about_losses

    for path in kept:
        console.say(f"the file that was there is kept as {path.name}")
    others = f" (or: {', '.join(draft.other_times)})" if draft.other_times else ""
    console.say(f"event time: {draft.event_time}{others}")
    for words in about_event_time(draft.profile, draft.event_time):
        console.warn(words.rstrip("."))
    console.say(f"key: {', '.join(draft.key.columns)}")
    if draft.key.sharing:
        in_part = f" of the {drafted.rows_looked_at:,} looked at" if _is_part(drafted) else ""
        verb = "has" if draft.key.sharing == 1 else "have"
        console.warn(
            f"{count_of(draft.key.sharing, 'row')}{in_part} {verb} the key of another row:"
            " silver keeps the newest of each and drops the others as duplicates"
        )
    for column in draft.columns:
        for words in about_losses(column):
            console.warn(f"{column.name}: {words}")
    if not drafted.rows:
        console.warn("the file has no rows: event time and key are guesses")
    if not drafted.written:
        return
    console.done(f"{drafted.manifest} has no faults: read it, correct it, then")
    for command in drafted.next:
        console.say(f"  {command}")
