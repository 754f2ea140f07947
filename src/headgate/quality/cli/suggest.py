"""`headgate rules suggest`: propose rules from the values of a Parquet file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from headgate.terminal.console import Parts, console
from headgate.terminal.project import active_dataset

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.suggest.proposals import Suggested, Suggestion
    from headgate.quality.suggest.survey import RuleWishes


@dataclass(frozen=True)
class Proposed:
    """One proposal as a script sees it."""

    name: str
    part: str
    why: str
    flags_rows: int | None
    off: bool


@dataclass(frozen=True)
class Proposals:
    """What `rules suggest` found; `text` is the rule set."""

    table: str
    file: str
    rows: int
    rows_looked_at: int
    proposed: tuple[Proposed, ...]
    text: str


@click.command()
@click.option("--dataset", default=None, help="Its Parquet file, topic, key and event time.")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="A Parquet file; default: the dataset's.",
)
@click.option("--name", default=None, help="What the table is called; default: the dataset.")
@click.option("--topic", default=None, help="Default: the dataset's, or <name>.events.")
@click.option("--event-time", default=None, help="The column with the event time.")
@click.option("--key", default=None, help="Columns that tell rows apart, with commas.")
@click.option("--sensitive", multiple=True, help="A column whose values are shown nowhere.")
@click.option("--rows", type=click.IntRange(min=0), default=None, help="Look at so many; 0: all.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Default: stdout.")
def rules_suggest(
    dataset: str | None,
    file: Path | None,
    name: str | None,
    topic: str | None,
    event_time: str | None,
    key: str | None,
    sensitive: tuple[str, ...],
    rows: int | None,
    out: Path | None,
) -> None:
    """Propose rules from the values of a Parquet file, with what speaks for each.

    The result is a rule set that is valid as it stands: columns, keys and times that may not be
    missing, ranges with a margin, small sets of values, forms of text, the order of two times. A
    comment says how many rows of the file each would flag; what only a stream can tell is there as
    a comment. Columns that look personal are tagged sensitive, and none of their values is shown.

    \b
    Examples:
      headgate rules suggest --dataset orders
      headgate rules suggest --dataset orders --out rules/orders.yml
      headgate rules suggest --file data/flights.parquet --name flights --sensitive tailnum
    """
    from headgate.config.settings import load_settings
    from headgate.quality.suggest.rule_set import suggested_text
    from headgate.quality.suggest.survey import suggest

    settings = load_settings()
    columns = tuple(part.strip() for part in key.split(",") if part.strip()) if key else ()
    given = _Given(dataset, file, name, topic, event_time, columns, sensitive, rows)
    _require_free(out)
    with Parts() as watcher:
        found = suggest(_wishes(settings, given), watcher)
    text = suggested_text(found)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    console.data(_proposals(found, text), text=str(out) if out else text.rstrip("\n"))
    on = sum(not one.off for one in found.found)
    console.done(f"{on} proposed, {len(found.found) - on} more as comments: read each of them")


@dataclass(frozen=True)
class _Given:
    """The options as they were given."""

    dataset: str | None
    file: Path | None
    name: str | None
    topic: str | None
    event_time: str | None
    key: tuple[str, ...]
    sensitive: tuple[str, ...]
    rows: int | None


def _wishes(settings: Settings, given: _Given) -> RuleWishes:
    from headgate.core.profiler.model import snake_case
    from headgate.errors import UsageError
    from headgate.quality.suggest.survey import RuleWishes

    if given.file is None or given.dataset is not None:
        return _of_dataset(settings, given)
    name = given.name or snake_case(given.file.stem)
    if not name:
        raise UsageError(f"{given.file} gives the table no name", fix="say it with --name")
    return RuleWishes(
        table=_free(settings, name, chosen=given.name is not None),
        file=given.file,
        topic=given.topic or f"{name}.events",
        key=given.key,
        event_time=given.event_time,
        sensitive=given.sensitive,
        rows=given.rows,
    )


class DatasetDefaults(Protocol):
    """What a rule set takes of a dataset's manifest where no option says otherwise."""

    @property
    def topic(self) -> str: ...
    @property
    def dlq_topic(self) -> str: ...
    @property
    def dedup_key(self) -> tuple[str, ...]: ...
    @property
    def key_field(self) -> str | None: ...
    @property
    def event_ts_col(self) -> str: ...


def _of_dataset(settings: Settings, given: _Given) -> RuleWishes:
    """What the manifest says of its topic, key and event time holds for its rules too."""
    from headgate.app import DECLARED_DATASET, load
    from headgate.core.profiler.model import snake_case
    from headgate.quality.suggest.survey import RuleWishes

    name = given.dataset or active_dataset(settings)
    dataset: DatasetDefaults = load(DECLARED_DATASET)(settings, name)
    return RuleWishes(
        table=_free(settings, given.name or snake_case(name), chosen=given.name is not None),
        file=given.file or _data_file(settings, name),
        topic=given.topic or dataset.topic,
        dlq_topic=None if given.topic else dataset.dlq_topic,
        key=given.key or dataset.dedup_key,
        pk=None if given.key else dataset.key_field,
        event_time=given.event_time or dataset.event_ts_col,
        sensitive=given.sensitive,
        rows=given.rows,
    )


def _data_file(settings: Settings, dataset: str) -> Path:
    from headgate.errors import UsageError

    file = settings.data_file_of(dataset)
    if not file.is_file():
        raise UsageError(
            f"the dataset {dataset} has no Parquet file",
            why=f"there is none at {file}",
            fix=f"headgate feed sample --dataset {dataset} makes one; or give --file",
        )
    return file


def _free(settings: Settings, name: str, *, chosen: bool) -> str:
    """A name that no rule set has; a name that the user chose is not changed."""
    from headgate.core.profiler.model import free_name
    from headgate.quality.spec.loader import rule_files, tables_in

    taken = {table for path in rule_files(settings.root) for table in tables_in(path)}
    return name if chosen else free_name(taken, name, f"{name}_suggested")


def _require_free(out: Path | None) -> None:
    from headgate.errors import UsageError

    if out is not None and out.exists():
        raise UsageError(f"{out} is there already", fix="choose another name, or delete it first")


def _proposals(found: Suggested, text: str) -> Proposals:
    looked = found.draft.profile.looked
    return Proposals(
        found.place.table,
        found.draft.profile.file,
        looked.of,
        looked.rows,
        tuple(_proposed(one) for one in found.found),
        text,
    )


def _proposed(one: Suggestion) -> Proposed:
    return Proposed(one.name, one.part, one.why, one.rows, one.off)
