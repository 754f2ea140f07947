"""`headgate filters consumer`: a dealer's consumer, as its configuration says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console, stderr_log_handler

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.filters.consumers.config import ConsumerConfig
    from headgate.filters.consumers.run import Consumed


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Stop at the topic's end.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The SQLite file of what was handled. Default: consumers/<group>.db in HEADGATE_HOME.",
)
def filters_consumer(config: Path, once: bool, state: Path | None) -> None:
    """Log each service event of a dealer's topic, and tell the sinks of it, once.

    Events of another dealer, or of none, are warned about and dropped. Offsets are committed after
    the sinks have kept what they were told; a record that comes again changes nothing.

    KAFKA_BOOTSTRAP_SERVERS, KAFKA_TOPIC, CONSUMER_GROUP_ID, KAFKA_API_KEY and KAFKA_API_SECRET
    count more than the file.

    \b
    Examples:
      headgate filters consumer consumers/dealer-001/consumer.yml
      headgate -o json filters consumer consumers/dealer-001/consumer.yml --once
    """
    import os

    from headgate.config.settings import load_settings
    from headgate.core.runtime.interruption import interruption
    from headgate.filters.consumers.config import load_config
    from headgate.filters.consumers.run import DealerConsumer
    from headgate.filters.consumers.seen import Seen

    settings, found = load_settings(anywhere=True), load_config(config, os.environ)
    bootstrap = _bootstrap(settings, found)
    file = state or settings.home / "consumers" / f"{found.group}.db"
    _log_to_stderr()
    with interruption() as stop, Seen(file) as seen:
        consumed = DealerConsumer(found, bootstrap, seen).run(stop, once)
    console.data(consumed, words(consumed))


def _bootstrap(settings: Settings, config: ConsumerConfig) -> str:
    from headgate.core.kafka.engine_topics import bootstrap_of

    return config.bootstrap or bootstrap_of(settings)


def _log_to_stderr() -> None:
    import logging

    log = logging.getLogger("headgate.consumer")
    log.setLevel(logging.INFO)
    log.handlers[:] = [stderr_log_handler("%(levelname)s %(message)s")]


def words(consumed: Consumed) -> str:
    """The report for a person."""
    lines = [f"{consumed.dealer} ({consumed.topic}): {consumed.received:,} records"]
    notes = {
        "handled": consumed.handled,
        "known already": consumed.duplicates,
        "of another dealer": consumed.wrong_dealer,
        "unreadable": consumed.unreadable,
    }
    return "\n".join(lines + [f"  {name:<18} {n:>9,}" for name, n in notes.items()])
