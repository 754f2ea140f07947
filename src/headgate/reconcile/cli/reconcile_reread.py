"""`headgate reconcile reread`: ask the hasher to read keys again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.errors import HeadgateError, UsageError
from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from datetime import datetime

    from headgate.config.settings import Settings
    from headgate.reconcile.hasher.plan import HasherPlan


@click.command()
@click.argument("table")
@click.option("--key", "keys", multiple=True, metavar="PK", help="This key; may be repeated.")
@click.option("--letters", is_flag=True, help="Every key of `headgate reconcile letters TABLE`.")
@click.option("--reason", metavar="CODE", help="With --letters: only those of this reason code.")
@click.option("--dry-run", is_flag=True, help="Say which keys, and ask for none.")
def reconcile_reread(
    table: str, keys: tuple[str, ...], letters: bool, reason: str | None, dry_run: bool
) -> None:
    """Ask the hasher of TABLE to look keys up in Cassandra again; their verdicts follow.

    To ask twice does no harm: a reading that says nothing new changes no verdict.

    \b
    Examples:
      headgate reconcile reread business --key 1234567
      headgate reconcile reread business --letters --reason dq_cassandra_timeout --dry-run
    """
    from headgate.config.settings import load_settings
    from headgate.reconcile.cli.reconcile_hasher import planned
    from headgate.reconcile.hasher.cloud_letters import ask_again
    from headgate.reconcile.hasher.plan import Given

    if not keys and not letters:
        raise UsageError("no key is named", fix="name some by --key, or take those of --letters")
    settings = load_settings()
    plan = planned(settings, table, Given())
    wanted = {**(_of_letters(plan, reason) if letters else {}), **_judged(settings, table, keys)}
    if wanted and not dry_run:
        ask_again(plan, wanted)
    told = "would be read again" if dry_run else "asked for"
    console.data({"table": table, "keys": sorted(wanted), "asked": not dry_run and bool(wanted)})
    console.say(f"{len(wanted):,} key{'' if len(wanted) == 1 else 's'} {told}")


def _judged(settings: Settings, table: str, keys: tuple[str, ...]) -> dict[str, datetime | None]:
    """Keys at the newest version of either side: an answer that is older would change nothing."""
    from headgate.reconcile.results import current_verdicts

    try:
        found = current_verdicts(settings, table, (), keys) if keys else []
    except HeadgateError as error:
        console.say(f"what was judged of these keys cannot be read: {error.one_line}")
        found = []
    sides = {each.pk: (each.onprem_version, each.cloud_version) for each in found}
    return {key: max(filter(None, sides.get(key, ())), default=None) for key in keys}


def _of_letters(plan: HasherPlan, reason: str | None) -> dict[str, datetime | None]:
    from headgate.reconcile.hasher.cloud_letters import cloud_letters, keys_of

    return keys_of(each for each in cloud_letters(plan) if reason in (None, each.reason_code))
