"""`headgate dlq`: list, group, show and redrive the records that jobs could not accept."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headgate.errors import DifferenceError, InterruptedByUserError, UsageError
from headgate.terminal.console import console, in_one_line
from headgate.terminal.lazy_group import LazyCommands

if TYPE_CHECKING:
    from headgate.dead_letters.masking import ShownLetter
    from headgate.dead_letters.redrive import RedriveJournal
    from headgate.dead_letters.service import Redriving
    from headgate.dead_letters.table import Chosen, RedrivePlan, RedriveReport


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
    from headgate.dead_letters.table import Chosen

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


@click.command()
@choosing
def dlq_groups(
    job: str | None, reason: str | None, topic: str | None, since: str | None, until: str | None
) -> None:
    """Count dead letters by job, reason code and topic, with the newest one's words.

    \b
    Examples:
      headgate dlq groups
      headgate dlq groups --topic raw-event-headers
    """
    from headgate.config.settings import load_settings
    from headgate.dead_letters.service import open_redriving

    with open_redriving(load_settings()) as redriving:
        sent = list(redriving.redriven())
        found = redriving.letters.groups(chosen(job, reason, topic, since, until), sent)
    console.data(found)


SHOWN = 50


@click.command()
@choosing
@click.option("--limit", type=click.IntRange(1, 10_000), default=SHOWN, show_default=True)
@click.option("--after", metavar="ID", help="Go on behind this one.")
@click.option("--waiting", is_flag=True, help="Only those that were not sent again.")
def dlq_list(
    job: str | None,
    reason: str | None,
    topic: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    after: str | None,
    waiting: bool,
) -> None:
    """List dead letters of all jobs, the newest first.

    \b
    Examples:
      headgate dlq list
      headgate dlq list --job bronze-orders --since 2026-01-31T00:00Z
      headgate -o json dlq list --reason not_json --waiting
    """
    from headgate.config.settings import load_settings
    from headgate.dead_letters.masking import listed
    from headgate.dead_letters.service import open_redriving

    which = chosen(job, reason, topic, since, until)
    with open_redriving(load_settings()) as redriving:
        sent = redriving.redriven()
        found = redriving.letters.facts(which, limit + waiting * len(sent), after)
    rows = [listed(one, redriven=one.id in sent) for one in found]
    console.data([row for row in rows if not (waiting and row.redriven)][:limit])


@click.command()
@click.argument("letter_id", metavar="ID")
@click.option("--reveal", is_flag=True, help="Show tagged values too.")
def dlq_show(letter_id: str, reveal: bool) -> None:
    """Show one dead letter: where it came from, why it was refused, and what it says.

    Columns that a rule set or a hash contract tags as sensitive are masked, and so is a value that
    is no JSON, since nobody can tell which part of it is tagged.

    \b
    Examples:
      headgate dlq show 0a1b2c3d4e5f60718293
      headgate dlq show 0a1b2c3d4e5f60718293 --reveal
    """
    from headgate.config.settings import load_settings
    from headgate.dead_letters.masking import hidden_names, shown
    from headgate.dead_letters.service import open_redriving

    settings = load_settings()
    with open_redriving(settings) as redriving:
        letter = redriving.letters.letter(letter_id)
        place = redriving.redriven().get(letter_id, "")
    found = shown(letter, hidden_names(settings), reveal=reveal, redriven=place)
    console.data(found, text=_text(found))


def _text(found: ShownLetter) -> str:
    facts = found.facts
    lines = {
        "job": f"{facts.job}, revision {facts.revision[:12] or 'none'}",
        "reason": f"{facts.reason_code}: {in_one_line(facts.reason)}",
        "origin": facts.origin or "a row of a table",
        "written": facts.timestamp,
        "refused": facts.refused_at,
        "attempts": found.attempts or "",
        "sent again": found.redriven,
        "key": "(none)" if found.key is None else in_one_line(found.key),
    }
    told = [f"  {name:<10} {value}" for name, value in lines.items() if value]
    headers = [f"  {name}: {in_one_line(str(value))}" for name, value in found.headers.items()]
    value = json.dumps(found.value, indent=2, ensure_ascii=True)
    return "\n".join(
        [
            facts.id,
            *told,
            *(["headers", *headers] if headers else []),
            f"value ({facts.bytes:,} bytes with its key)",
            value,
        ]
    )


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
    from headgate.dead_letters.service import open_redriving

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
    from headgate.terminal.console import confirm

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
    from headgate.dead_letters.redrive import open_journals
    from headgate.terminal.console import confirm

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


def _audited(redriving: Redriving, journal: RedriveJournal, *, resume: bool) -> None:
    """As over the API: who sent what where stands in the log."""
    from headgate.core.identity.audit import AuditLog
    from headgate.core.ledger.ops_store import OpsStore

    topics = sorted({item.topic for item in journal.items})
    detail = {"letters": len(journal.items), "resume": resume, "topics": topics}
    url = redriving.settings.ops_store_url
    with OpsStore.open(url) as store, store.part(AuditLog).change() as change:
        change.audit(f"local:{getpass.getuser()}", "redrive", journal.name, **detail)


def _carried_out(redriving: Redriving, journal: RedriveJournal, per_second: int) -> None:
    from headgate.core.runtime.journal import interruption

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


VERBS: dict[str, tuple[str, str]] = {
    "groups": (
        "count them by job, reason and topic",
        "headgate.dead_letters.cli:dlq_groups",
    ),
    "list": ("the newest first, without their content", "headgate.dead_letters.cli:dlq_list"),
    "redrive": (
        "send some of them to their topics once more",
        "headgate.dead_letters.cli:dlq_redrive",
    ),
    "show": ("one of them, tagged values masked", "headgate.dead_letters.cli:dlq_show"),
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
