"""`headgate dlq redrive`: send dead letters to their topics once more."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import click

from headgate.dead_letters.dlq_choice import choosing, chosen
from headgate.errors import DifferenceError, InterruptedByUserError, UsageError
from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.dead_letters.journal import Journal
    from headgate.dead_letters.model import RedrivePlan, RedriveReport
    from headgate.dead_letters.redriving import Redriving

LIMIT, PER_SECOND = 10_000, 100


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@choosing
@click.option("--all", "everything", is_flag=True, help="All that were not sent again yet.")
@click.option("--to", metavar="TOPIC", help="Another topic than the one they came from.")
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True)
@click.option("--per-second", type=click.IntRange(1, 10_000), default=PER_SECOND, show_default=True)
@click.option("--again", is_flag=True, help="Also what was sent again before.")
@click.option("--dry-run", is_flag=True, help="Show the plan and send nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--resume", is_flag=True, help="Go on with what was interrupted.")
def dlq_redrive(
    ids: tuple[str, ...],
    job: str | None,
    reason: str | None,
    topic: str | None,
    since: str | None,
    until: str | None,
    everything: bool,
    to: str | None,
    limit: int,
    per_second: int,
    again: bool,
    dry_run: bool,
    yes: bool,
    resume: bool,
) -> None:
    """Send dead letters to the topics they came from, where their jobs judge them anew.

    The original key, value and headers are sent, oldest first, with headers that name the letter.
    A record that several jobs refused is sent once, and one that was sent before is left alone.
    The letters stay in their table. What is interrupted goes on with --resume; a letter whose
    acknowledgement was lost is looked for in its topic first, so none is sent twice.

    \b
    Examples:
      headgate dlq redrive 0a1b2c3d4e5f60718293 --yes
      headgate dlq redrive --job bronze-orders --reason bad_timestamp --dry-run
      headgate dlq redrive --topic raw-event-headers --per-second 20 --yes
      headgate dlq redrive --resume --yes
    """
    from headgate.config.settings import load_settings
    from headgate.dead_letters.redriving import open_redriving

    which = chosen(job, reason, topic, since, until, ids)
    if resume == (which.condition != "TRUE" or everything):
        raise UsageError(
            "say which letters: ids, --job, --reason, --topic, --since, --until or --all",
            why="--resume goes on with a plan and takes none of them" if resume else "",
        )
    with open_redriving(load_settings()) as redriving:
        if resume:
            _resumed(redriving, per_second, dry_run, yes)
        else:
            plan = redriving.plan(which, limit, to, again=again)
            _planned(redriving, plan, per_second, dry_run or not plan.items, yes)


def _planned(
    redriving: Redriving, plan: RedrivePlan, per_second: int, dry_run: bool, yes: bool
) -> None:
    from headgate.core.ledger.ops_store import utc_now
    from headgate.terminal.asking import confirm

    if dry_run:
        console.data(plan, text=plan_text(plan))
        return
    console.say(plan_text(plan))
    question = f"Send {len(plan.items):,} dead letters again?"
    confirm(question, yes=yes, otherwise="sending needs --yes here, or --dry-run to look")
    journal = redriving.begin(plan, getpass.getuser(), utc_now())
    _audited(redriving, journal, resume=False)
    _carried_out(redriving, journal, per_second)


def _resumed(redriving: Redriving, per_second: int, dry_run: bool, yes: bool) -> None:
    from headgate.dead_letters.journal import open_journals
    from headgate.terminal.asking import confirm

    found = open_journals(redriving.settings.home)
    if not found:
        raise UsageError("nothing was interrupted", fix="leave --resume out")
    left = sum(len(journal.left) for journal in found)
    if dry_run:
        console.data([journal.report() for journal in found])
        return
    question = f"Send the {left:,} dead letters that are left?"
    confirm(question, yes=yes, otherwise="resuming needs --yes here")
    for journal in found:
        _audited(redriving, journal, resume=True)
        _carried_out(redriving, journal, per_second)


def _audited(redriving: Redriving, journal: Journal, *, resume: bool) -> None:
    """As over the API: who sent what where stands in the log."""
    from headgate.core.ledger.ops_store import OpsStore

    topics = sorted({item.topic for item in journal.items})
    detail = {"letters": len(journal.items), "resume": resume, "topics": topics}
    with OpsStore.open(redriving.settings.ops_store_url) as store, store.control.change() as change:
        change.audit(f"local:{getpass.getuser()}", "redrive", journal.name, **detail)


def _carried_out(redriving: Redriving, journal: Journal, per_second: int) -> None:
    from headgate.core.runtime.interruption import interruption

    with (
        interruption() as stopped,
        console.progress("dead letters sent again", len(journal.items)) as bar,
    ):
        found = redriving.carry_out(journal, per_second, bar, stopped)
    console.data(found, text=report_text(found))
    if found.left:
        raise InterruptedByUserError(
            f"{found.left:,} dead letters are left",
            why=f"the rest stands in {found.journal}",
            fix="headgate dlq redrive --resume --yes",
        )
    if found.refused:
        raise DifferenceError(
            f"{sum(found.refused.values()):,} dead letters could not be sent",
            why="\n".join(f"{n:,}: {why}" for why, n in found.refused.items()),
        )


def plan_text(plan: RedrivePlan) -> str:
    """What would be sent where, and what is left alone."""
    if not plan.items and not plan.skipped:
        return "no dead letter is to be sent"
    lines = [f"{n:,} to {topic}" for topic, n in plan.topics.items()]
    lines += [f"  {n:,} {reason}" for reason, n in plan.reasons.items()]
    counts: dict[str, int] = {}
    for outcome in plan.skipped:
        counts[outcome.why] = counts.get(outcome.why, 0) + 1
    return "\n".join([*lines, *(f"{n:,} left alone: {why}" for why, n in counts.items())])


def report_text(found: RedriveReport) -> str:
    lines = [f"{found.sent:,} of {found.planned:,} dead letters sent again"]
    lines += [f"  {n:,} refused: {why}" for why, n in found.refused.items()]
    lines += [f"  {n:,} left alone: {why}" for why, n in found.skipped.items()]
    lines += [f"  {found.left:,} still to send"] if found.left else []
    return "\n".join([*lines, f"  journal: {found.journal}"])
