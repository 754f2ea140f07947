"""`headgate feed events`: sends made-up events to the API or into PostgreSQL, with a file of expected receivers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.errors import InterruptedByUserError, SettingsError
from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.demo.filters.events import Sent, Target

TARGETS = ("api", "postgres")


@click.command("events")
@click.option("--count", type=click.IntRange(min=0), default=300, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=7, show_default=True)
@click.option("--prefix", default="event", show_default=True, help="Ids are PREFIX-SEED-NUMBER.")
@click.option("--rate", type=click.FloatRange(min=0), default=0, help="Events/s; 0: no limit.")
@click.option(
    "--to", type=click.Choice(TARGETS), help="Default: api where HEADGATE_API_URL is set."
)
@click.option(
    "--oracle",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write here, before anything is sent, who must get what.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds of an outage that are waited out.",
)
@click.option("--tables-only", is_flag=True, help="Make the tables in PostgreSQL; send nothing.")
def feed_events(
    count: int,
    seed: int,
    prefix: str,
    rate: float,
    to: str | None,
    oracle: Path | None,
    patience: float,
    tables_only: bool,
) -> None:
    """Send made-up events to the API, or straight into PostgreSQL.

    Most are services done by three dealers; some are of dealers with almost their names, some of
    other types. Same seed, same events. An event whose answer was lost is sent again: it is written
    once all the same.

    \b
    Examples:
      headgate feed events --count 300 --oracle build/oracle.json
      headgate feed events --count 10000 --rate 200 --to postgres
    """
    from headgate.config.settings import load_settings
    from headgate.core.runtime.journal import interruption
    from headgate.demo.filters.events import draw, send
    from headgate.demo.filters.events import oracle as told
    from headgate.filters.events.database import migrate, place_of
    from headgate.filters.events.exact_json import text_of

    settings = load_settings()
    if tables_only:
        applied = migrate(place_of(settings))
        console.data({"applied": list(applied)}, f"{len(applied)} migration(s) applied")
        return
    events = list(draw(count, seed, prefix))
    if oracle is not None:
        oracle.parent.mkdir(parents=True, exist_ok=True)
        oracle.write_text(text_of(told(events, seed)) + "\n", encoding="utf-8")
    with (
        opened(settings, to or ("api" if settings.api_url else "postgres")) as target,
        console.progress("events sent", count) as progress,
        interruption() as stop,
    ):
        sent = send(target, events, rate, patience, progress.advance, stop)
    console.data(sent, words(sent))
    if sent.events < count:
        raise InterruptedByUserError(
            "stopped before the end", why=f"{sent.events:,} of {count:,} events are sent"
        )


@contextmanager
def opened(settings: Settings, to: str) -> Generator[Target]:
    """The API or the database that the settings name."""
    import httpx

    from headgate.demo.filters.events import ToApi, ToPostgres
    from headgate.filters.events.database import EventWriter, place_of

    if to == "postgres":
        with EventWriter(place_of(settings)) as writer:
            yield ToPostgres(writer)
        return
    if not settings.api_url:
        raise SettingsError("HEADGATE_API_URL is not set", fix="name the server, or --to postgres")
    headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
    with httpx.Client(base_url=settings.api_url, headers=headers, timeout=30) as client:
        yield ToApi(client)


def words(sent: Sent) -> str:
    """The report for a person."""
    line = f"{sent.events:,} events in {sent.elapsed_seconds:.1f} s: {sent.created:,} new"
    notes = [f"{sent.known:,} known already"] if sent.known else []
    notes += [f"{sent.retries:,} tries again"] if sent.retries else []
    return ", ".join([line, *notes])
