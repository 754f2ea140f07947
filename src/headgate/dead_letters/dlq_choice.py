"""Which dead letters a command is about: the same options for each verb."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headgate.errors import UsageError

if TYPE_CHECKING:
    from headgate.dead_letters.dead_letters import Chosen

Command = TypeVar("Command", bound=Callable[..., Any])


def choosing(command: Command) -> Command:
    """--job, --reason, --topic, --since and --until."""
    for option in (
        click.option("--until", metavar="TIME", help="Refused before, such as 2026-01-31T12:00Z."),
        click.option("--since", metavar="TIME", help="Refused then or later."),
        click.option("--topic", help="Of this topic."),
        click.option("--reason", metavar="CODE", help="With this reason code."),
        click.option("--job", help="Of this job, such as bronze-orders."),
    ):
        command = option(command)
    return command


def chosen(
    job: str | None,
    reason: str | None,
    topic: str | None,
    since: str | None,
    until: str | None,
    ids: tuple[str, ...] = (),
) -> Chosen:
    from headgate.dead_letters.dead_letters import Chosen

    return Chosen(job, reason, topic, _moment("--since", since), _moment("--until", until), ids)


def _moment(option: str, given: str | None) -> datetime | None:
    if given is None:
        return None
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        raise UsageError(
            f"{option} is '{given}', which is no time", fix="write for example 2026-01-31T12:00Z"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
