"""`headgate lake`: count the rows of bronze and silver, read as dbt reads them, and wait for them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from headgate.errors import UnavailableError
from headgate.terminal.console import console
from headgate.terminal.project import active_dataset

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.config.settings import Settings
    from headgate.core.lake.duckdb_reader import Lake
    from headgate.pipeline.spec import Dataset


@dataclass(frozen=True)
class Counts:
    """Rows of the two tables; -1 stands for a table that is not there."""

    bronze: int
    silver: int


@click.group()
def group() -> None:
    """Count and wait for tables."""


@group.command()
def count() -> None:
    """Print BRONZE= and SILVER=, the rows of the active dataset's tables.

    A table that no job has made yet counts as -1.
    """
    from headgate.config.settings import load_settings
    from headgate.core.lake.duckdb_reader import Lake

    settings = load_settings()
    dataset = load_active(settings)
    with Lake.open(settings) as lake:
        tables = (dataset.bronze_table, dataset.silver_table)
        counts = Counts(*(rows(lake, table) for table in tables))
    for table, found in zip(tables, (counts.bronze, counts.silver), strict=True):
        if found < 0:
            console.warn(f"{table} does not exist yet, hence -1: make process writes it")
    console.data(counts, text=f"BRONZE={counts.bronze}\nSILVER={counts.silver}")


@group.command()
@click.option("--min-rows", type=click.IntRange(min=0), help="Rows that end the wait.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Seconds until giving up.")
def wait(min_rows: int | None, timeout: float | None) -> None:
    """Wait until silver has rows; exit 8 when it has none in time.

    The defaults are WAIT_FOR_SILVER_MIN_ROWS and WAIT_FOR_SILVER_TIMEOUT.
    """
    from headgate.config.settings import load_settings
    from headgate.core.lake.duckdb_reader import Lake

    settings = load_settings()
    table = load_active(settings).silver_table
    with Lake.open(settings) as lake:
        found = wait_for_rows(
            table,
            lambda: rows(lake, table),
            enough=settings.wait_for_silver_min_rows if min_rows is None else min_rows,
            limit=settings.wait_for_silver_timeout if timeout is None else timeout,
            poll=settings.wait_for_silver_poll,
        )
    console.data({"table": table, "rows": found}, text=f"SILVER={found}")


def load_active(settings: Settings) -> Dataset:
    """The manifest of the active dataset."""
    from headgate.declarations.project import find_dataset
    from headgate.pipeline.loader import load_dataset

    name = active_dataset(settings)
    return load_dataset(find_dataset(settings.root, name), settings.topics_of(name)).value


def rows(lake: Lake, table: str) -> int:
    return lake.count(table) if lake.exists(table) else -1


def wait_for_rows(
    table: str,
    look: Callable[[], int],
    *,
    enough: int,
    limit: float,
    poll: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Look every `poll` seconds until `enough` rows are there; raises after `limit` seconds."""
    start = clock()
    while (found := look()) < enough:
        waited = clock() - start
        state = "is not there yet" if found < 0 else f"has {found:,} rows"
        if waited >= limit:
            raise UnavailableError(
                f"{table} {state} after {waited:.0f} s",
                why=f"{enough:,} rows or more were awaited for {limit:g} s",
                fix="headgate job list, to see whether the silver job ran",
            )
        console.say(f"{table} {state}; waiting, {limit - waited:.0f} s left")
        sleep(min(poll, limit - waited))
    console.say(f"{table} has {found:,} rows")
    return found
