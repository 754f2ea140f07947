"""`headgate feed`: write sample data, send a Parquet file to its topic; planting verbs are loaded from the demos."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from headgate.app import FEED
from headgate.terminal.console import Progress, console
from headgate.terminal.lazy_group import LazyCommands
from headgate.terminal.project import active_dataset

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.pipeline.generator.parquet_to_kafka import Mode, Plan
    from headgate.pipeline.generator.sample import SampleFile

DEFAULT_ROWS = 50_000
MODES = ("burst", "realtime", "batch")
METRICS_FILE = "generator.json"


@click.group(cls=LazyCommands, lazy=FEED)
def group() -> None:
    """Make sample data and send it to the topic.

    \b
    Examples:
      headgate feed sample --rows 50000
      headgate feed generate --max-events 10000
      headgate feed rules customer --rows 10000
      headgate feed pairs --keys 20000
      headgate feed events --count 300
    """


@click.command("sample")
@click.option("--rows", type=click.IntRange(min=1), default=DEFAULT_ROWS, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=42, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Default: the file of DATA_PATH.")
@click.option("--dataset", help="Default: DATASET.")
@click.option("--yes", is_flag=True, help="Overwrite a file that is no sample.")
def sample(rows: int, seed: int, out: Path | None, dataset: str | None, yes: bool) -> None:
    """Write a Parquet file of made-up rows, and beside it what was planted in them.

    The rows are declared in datasets/<dataset>/sample.yml. Same seed, same rows: a larger sample
    begins with the rows of a smaller one.

    \b
    Examples:
      headgate feed sample --rows 1000000
      headgate feed sample --rows 100 --seed 7 --out data/small.parquet --dataset orders
    """
    from headgate.config.settings import load_settings
    from headgate.pipeline.generator.declaration import find_sample, load_sample
    from headgate.pipeline.generator.sample import refuse_to_overwrite, write_sample

    settings = load_settings()
    name = dataset or active_dataset(settings)
    declared = load_sample(find_sample(settings.root, name))
    file = out or settings.data_file_of(name)
    if not yes:
        refuse_to_overwrite(file)
    with console.progress("rows written", rows) as progress:
        written = write_sample(declared.value, file, rows, seed, progress.advance)
    console.data(written, sample_words(written))


def sample_words(written: SampleFile) -> str:
    """The report for a person."""
    planted = written.planted
    lines = [
        f"Written: {written.file} ({planted.rows:,} rows, {written.bytes / 1e6:,.1f} MB, "
        f"{written.elapsed_seconds:.1f} s, seed {written.seed})",
        f"  clean       {planted.clean:>12,}",
        f"  duplicates  {planted.duplicates:>12,}  copies of clean rows; silver leaves them out",
        f"  bad         {planted.bad:>12,}  bronze refuses them: dead letters",
        f"  filtered    {planted.filtered:>12,}  bronze keeps them, silver leaves them out",
        f"  (counts by kind: {written.sidecar})",
    ]
    return "\n".join(lines)


@click.command("generate")
@click.option("--max-events", type=click.IntRange(min=0), help="0 sends all. Default: MAX_EVENTS.")
@click.option("--mode", type=click.Choice(MODES), help="Default: GENERATOR_MODE.")
@click.option("--rate", type=click.IntRange(min=1), help="Events/s. Default: GENERATOR_RATE.")
@click.option("--file", type=click.Path(path_type=Path), help="Default: the file of DATA_PATH.")
@click.option("--dataset", help="Default: DATASET.")
def generate(
    max_events: int | None,
    mode: str | None,
    rate: int | None,
    file: Path | None,
    dataset: str | None,
) -> None:
    """Send the rows of the Parquet file as JSON to the dataset's topic.

    burst sends as fast as the broker takes them, realtime keeps to --rate, and batch waits until
    each batch is acknowledged before it sends the next. --rate alone means realtime.

    With VALIDATE_SCHEMA=true, rows that do not fit the JSON Schema go to the dead-letter topic.

    \b
    Examples:
      headgate feed generate --max-events 10000
      headgate feed generate --mode realtime --rate 500
      headgate feed generate --file data/small.parquet
    """
    from headgate.config.settings import load_settings
    from headgate.pipeline.generator import parquet_to_kafka as send

    settings = load_settings()
    chosen = mode or ("realtime" if rate else settings.generator_mode)
    plan = plan_from(
        settings,
        dataset or active_dataset(settings),
        file,
        mode=cast("Mode", chosen),
        rate=rate or settings.generator_rate,
        max_events=settings.max_events if max_events is None else max_events,
    )
    with watching(f"events to {plan.dataset.value.topic}") as watcher:
        generated = send.generate(plan, watcher)
    console.data(generated, generated.summary())


def plan_from(
    settings: Settings,
    dataset: str,
    file: Path | None,
    *,
    mode: Mode,
    rate: int,
    max_events: int,
) -> Plan:
    """What `feed generate` will do under these settings."""
    from headgate.core.kafka.topics import bootstrap_of
    from headgate.declarations.project import find_dataset
    from headgate.pipeline.generator.parquet_to_kafka import Plan
    from headgate.pipeline.loader import load_dataset

    said = f"HOST_DATA_DIR={settings.host_data_dir} and DATA_PATH={settings.data_path}"
    if not settings.is_for(dataset):
        said = f"HOST_DATA_DIR={settings.host_data_dir} and --dataset {dataset}"
    return Plan(
        file=file or settings.data_file_of(dataset),
        said="--file" if file else said,
        dataset=load_dataset(find_dataset(settings.root, dataset), settings.topics_of(dataset)),
        bootstrap=bootstrap_of(settings),
        broker=settings.broker,
        mode=mode,
        rate=rate,
        max_events=max_events,
        schema_file=settings.schema_file_of(dataset) if settings.validate_schema else None,
        metrics_file=settings.metrics_dir / METRICS_FILE,
    )


class _Watcher:
    """Shows how far the sending is, once it is known how far it goes."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def begin(self, total: int) -> None:
        self._progress.total = total

    def advance(self, rows: int) -> None:
        self._progress.advance(rows)


@contextmanager
def watching(words: str) -> Generator[_Watcher]:
    with console.progress(words) as progress:
        yield _Watcher(progress)
