"""`headgate dlq`: the records that jobs could not accept."""

from __future__ import annotations

import click

from headgate.terminal.lazy_group import LazyCommands

VERBS: dict[str, tuple[str, str]] = {
    "groups": (
        "count them by job, reason and topic",
        "headgate.dead_letters.dlq_groups:dlq_groups",
    ),
    "list": ("the newest first, without their content", "headgate.dead_letters.dlq_list:dlq_list"),
    "redrive": (
        "send some of them to their topics once more",
        "headgate.dead_letters.dlq_redrive:dlq_redrive",
    ),
    "show": ("one of them, tagged values masked", "headgate.dead_letters.dlq_show:dlq_show"),
}


@click.command(cls=LazyCommands, lazy=VERBS)
def group() -> None:
    """Browse dead letters of all jobs, and send them again. They are never deleted.

    Those of hashers and connectors stand on a topic: see headgate reconcile letters.

    \b
    Examples:
      headgate dlq groups
      headgate dlq list --job router-raw-event-headers --reason not_json
      headgate dlq show 5f0c1a…
      headgate dlq redrive --reason not_json --dry-run
    """
