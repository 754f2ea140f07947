"""`headgate reconcile history`: the story of one key."""

from __future__ import annotations

import click

from headgate.terminal.cli_console import console


@click.command()
@click.argument("table")
@click.argument("pk")
def reconcile_history(table: str, pk: str) -> None:
    """Tell the story of one key: what each side said and when it first came, each verdict and why.

    \b
    Examples:
      headgate reconcile history business 1234567
      headgate -o json reconcile history business 1234567
    """
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import utc_now
    from headgate.errors import UsageError
    from headgate.reconcile.cli.reconcile_pairs import pair_limits
    from headgate.reconcile.key_history import read_story, story_text

    settings = load_settings()
    limits = pair_limits(settings, table)
    story = read_story(settings, table, pk, limits, utc_now())
    if story is None:
        raise UsageError(
            f"nothing is known of the key `{pk}`",
            why=f"no message of {table} that was judged has it",
            fix="keys are case-sensitive; what was refused is in headgate.dead_letters",
        )
    console.data(story, text=story_text(story, limits))
