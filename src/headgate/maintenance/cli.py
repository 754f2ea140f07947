"""`headgate maintain`: compact small files, expire snapshots, remove orphan files.

The plan is shown before anything is done, and a report after.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from headgate.maintenance.selection import (
    COMPACTED,
    KEEP,
    MIN_FILES,
    OLDER_THAN,
    ORPHANS_AT_LEAST,
    ORPHANS_OLDER_THAN,
    TABLES,
    words,
)
from headgate.terminal.console import ask, console, need_terminal
from headgate.terminal.project import active_dataset

if TYPE_CHECKING:
    from headgate.maintenance.plan import MaintenanceRunOptions, Plan, Report


def plan_and_do(dataset: str | None, options: MaintenanceRunOptions, *, asking: bool) -> None:
    """Plan, show it, ask where something is to be deleted, do that and no more, report."""
    from headgate.errors import UsageError
    from headgate.maintenance.plan import plan_text, report_text

    if not options.actions:
        raise UsageError("nothing is left to do", fix="skip fewer steps")
    if asking and not options.dry_run:
        need_terminal("this deletes snapshots or files", fix="look with --dry-run, then add --yes")
    plan, report = carry_out(dataset, options.model_copy(update={"dry_run": True}))
    if options.dry_run:
        console.data({"plan": plan, "report": None}, text=plan_text(plan))
    elif not plan.has_work:
        console.done(f"nothing to do for {plan.job}: --dry-run says why")
        console.data({"plan": plan, "report": None}, text="")
    else:
        console.say(plan_text(plan) + "\n")
        if asking:
            ask("Do that?")
        plan, report = carry_out(dataset, options.model_copy(update={"plan_run": plan.run}))
        console.data({"plan": plan, "report": report}, text=report_text(report) if report else "")


def carry_out(dataset: str | None, options: MaintenanceRunOptions) -> tuple[Plan, Report | None]:
    """The plan of one run, and what it did."""
    from headgate.maintenance.job import maintained
    from headgate.terminal.project import open_store
    from headgate.terminal.runs import carried_out

    settings, store = open_store()
    with store:
        name = dataset or active_dataset(settings)
        return maintained(
            settings, store, name, options, lambda run: carried_out(settings, store, run)
        )


LEAST_AGE = timedelta(hours=1)


@click.group()
def group() -> None:
    """Compact small files, expire snapshots, remove orphan files.

    Each verb plans first and shows its plan, does no more than that, and reports. The running
    engine does the work beside its streams; without one, this command is the engine while it lasts.
    """


Command = Callable[..., None]


def _options(command: Command) -> Command:
    """What every verb takes."""
    given = (
        click.option("--dataset", help="Another dataset than the active one."),
        click.option("--dry-run", is_flag=True, help="Show the plan and change nothing."),
    )
    for option in reversed(given):
        command = option(command)
    return command


_tables = click.option(
    "--table", "tables", type=click.Choice(TABLES), multiple=True, help="Only this table."
)
_yes = click.option("--yes", is_flag=True, help="Do not ask.")
_min_files = click.option(
    "--min-files",
    type=click.IntRange(2),
    default=MIN_FILES,
    show_default=True,
    help="Small files that make a part worth writing anew.",
)
_older_than = click.option(
    "--older-than",
    default=words(OLDER_THAN),
    show_default=True,
    help="Age from which a snapshot may go.",
)
_keep = click.option(
    "--keep",
    type=click.IntRange(1),
    default=KEEP,
    show_default=True,
    help="Newest snapshots to keep.",
)


@group.command()
@_options
@_tables
@_min_files
def compact(dataset: str | None, dry_run: bool, tables: tuple[str, ...], min_files: int) -> None:
    """Merge small files to 128 MB, of dates that are over.

    Silver and the tables of rules (dq), unless --table says otherwise. Those of rules, bronze and the
    dead letters have no dates: all their files may be merged.

    \b
    Examples:
      headgate maintain compact --dry-run
      headgate maintain compact --table bronze --table silver
    """
    from headgate.maintenance.plan import COMPACT, MaintenanceRunOptions

    chosen = tables or COMPACTED
    options = MaintenanceRunOptions(
        actions=(COMPACT,), compact_tables=chosen, min_files=min_files, dry_run=dry_run
    )
    plan_and_do(dataset, options, asking=False)


@group.command()
@_options
@_tables
@_older_than
@_keep
@_yes
def expire(
    dataset: str | None,
    dry_run: bool,
    tables: tuple[str, ...],
    older_than: str,
    keep: int,
    yes: bool,
) -> None:
    """Remove snapshots that are old, beyond the newest, and needed by nobody.

    What a job goes on from stays, however old: its newest marker, the bronze snapshot that silver
    has seen, and everything after.

    \b
    Examples:
      headgate maintain expire --dry-run
      headgate maintain expire --older-than 36h --keep 5 --yes
    """
    from headgate.maintenance.plan import EXPIRE, MaintenanceRunOptions

    options = MaintenanceRunOptions(
        actions=(EXPIRE,),
        other_tables=tables or TABLES,
        older_than=_age(older_than, LEAST_AGE),
        keep=keep,
        dry_run=dry_run,
    )
    plan_and_do(dataset, options, asking=not yes)


@group.command()
@_options
@_tables
@click.option(
    "--older-than",
    default=words(ORPHANS_OLDER_THAN),
    show_default=True,
    help="Age from which a file may go; 24h at least.",
)
@_yes
def vacuum(
    dataset: str | None, dry_run: bool, tables: tuple[str, ...], older_than: str, yes: bool
) -> None:
    """Remove files in the tables' folders that no snapshot knows.

    \b
    Examples:
      headgate maintain vacuum --dry-run
      headgate maintain vacuum --older-than 7d --yes
    """
    from headgate.maintenance.plan import VACUUM, MaintenanceRunOptions

    age = _age(older_than, ORPHANS_AT_LEAST)
    options = MaintenanceRunOptions(
        actions=(VACUUM,),
        other_tables=tables or TABLES,
        orphans_older_than=age,
        dry_run=dry_run,
    )
    plan_and_do(dataset, options, asking=not yes)


@group.command("all")
@_options
@_min_files
@_older_than
@_keep
@click.option("--skip", type=click.Choice(("compact", "expire", "vacuum")), multiple=True)
@_yes
def everything(
    dataset: str | None,
    dry_run: bool,
    min_files: int,
    older_than: str,
    keep: int,
    skip: tuple[str, ...],
    yes: bool,
) -> None:
    """Compact, expire and vacuum the dataset's tables, one after the other.

    \b
    Examples:
      headgate maintain all --dry-run
      headgate maintain all --skip vacuum --yes
    """
    from headgate.maintenance.plan import ACTIONS, MaintenanceRunOptions

    options = MaintenanceRunOptions(
        actions=tuple(action for action in ACTIONS if action not in skip),
        compact_tables=TABLES,
        older_than=_age(older_than, LEAST_AGE),
        keep=keep,
        min_files=min_files,
        dry_run=dry_run,
    )
    plan_and_do(dataset, options, asking=not yes)


def _age(text: str, least: timedelta) -> timedelta:
    from headgate.errors import UsageError
    from headgate.maintenance.plan import span_of

    age = span_of(text)
    if age < least:
        raise UsageError(
            f"--older-than {text} is too short",
            why="what is younger may belong to a batch that is under way",
            fix=f"use {words(least)} or more",
        )
    return age
