"""`headgate topics`: create, show and delete the topics of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.cli.console import console
from headgate.errors import UnavailableError, UsageError

if TYPE_CHECKING:
    from headgate.engine.topics import Topics
    from headgate.settings import Settings

TOPIC_DAYS, DLQ_DAYS = 3, 7


@click.group()
def group() -> None:
    """Create and show topics.

    \b
    Examples:
      headgate topics create
      headgate -o json topics show
    """


def _names(settings: Settings) -> list[str]:
    return [settings.need("topic"), *([settings.dlq_topic] if settings.dlq_topic else [])]


def _open(settings: Settings) -> Topics:
    from headgate.engine.topics import Topics

    if not settings.bootstrap_servers and settings.broker == "embedded":
        raise UnavailableError(
            "the embedded broker is not running",
            why=f"{settings.running_file} is not there",
            fix="headgate local up",
        )
    topics = Topics(settings.need("bootstrap_servers"))
    topics.need()
    return topics


@group.command()
@click.option("--partitions", default=3, show_default=True, help="Partitions of TOPIC.")
@click.option("--dlq-partitions", default=1, show_default=True, help="Partitions of DLQ_TOPIC.")
def create(partitions: int, dlq_partitions: int) -> None:
    """Create TOPIC, kept for 3 days, and DLQ_TOPIC, kept for 7; existing ones stay as they are."""
    from headgate.engine.topics import TopicSpec
    from headgate.settings import load_settings

    settings = load_settings()
    shapes = ((partitions, TOPIC_DAYS), (dlq_partitions, DLQ_DAYS))
    named = zip(_names(settings), shapes, strict=False)  # DLQ_TOPIC may be unset
    specs = [TopicSpec(name, count, days) for name, (count, days) in named]
    created = _open(settings).create(specs)
    rows: list[dict[str, object]] = []
    for spec in specs:
        new = spec.name in created
        console.say(f"{spec.name}: " + ("created" if new else "exists, left as it is"))
        rows.append({"topic": spec.name, "created": new})
    if console.format != "text":
        console.data(rows)


@group.command()
def show() -> None:
    """Show all topics with their ids, partitions and offsets."""
    from headgate.settings import load_settings

    topics = _open(load_settings())
    found = [state for name in topics.names() if (state := topics.describe(name))]
    console.data(
        [
            {
                "topic": state.name,
                "topic_id": state.topic_id,
                "partitions": state.partitions,
                "begin": sum(state.begin.values()),
                "end": sum(state.end.values()),
                "span": state.span,
            }
            for state in found
        ]
    )


@group.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(yes: bool) -> None:
    """Delete TOPIC and DLQ_TOPIC with all their records."""
    import sys

    from headgate.settings import load_settings

    settings = load_settings()
    names = _names(settings)
    if not yes and not sys.stdin.isatty():
        raise UsageError("deleting topics needs --yes here", why="no terminal to ask on")
    if not yes:
        click.confirm(f"Delete {', '.join(names)} and all their records?", abort=True, err=True)
    deleted = _open(settings).delete(names)
    for name in names:
        console.say(f"{name}: " + ("deleted" if name in deleted else "did not exist"))
