"""`headgate job`: the noun with its verbs, and the decisions a job may not take by itself: `repair`, `accept-gap`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.cli.job.run import restart, run_job, start, stop
from headgate.cli.job.show import lag, list_runs, show
from headgate.terminal.console import confirm, console
from headgate.terminal.project import open_store

if TYPE_CHECKING:
    from headgate.core.engine.lag import Lag
    from headgate.core.ledger.model import Run


NEEDS_YES = "this needs --yes here"


@click.command("repair")
@click.argument("job")
@click.option("--yes", is_flag=True, help="Do not ask.")
def repair(job: str, yes: bool) -> None:
    """Set a damaged checkpoint aside and go on from what the table has committed.

    Nothing is deleted: the old checkpoint stays beside the new one. The job itself must not run;
    others may.

    \b
    Examples:
      headgate job repair bronze
      headgate job repair bronze-orders --yes
    """
    from headgate.cli.job.run import finish
    from headgate.core.engine.run_options import TopicRequest, TopicRunForm
    from headgate.core.engine.submit import ask_for, split_job
    from headgate.errors import UsageError

    settings, store = open_store()
    with store:
        kind, subject = split_job(settings, job)
        if not kind.follows_topics:
            raise UsageError(f"{kind.name} has no checkpoint", fix="headgate job run silver --full")
        confirm(f"Set the checkpoint of {kind.name}-{subject} aside?", yes=yes, otherwise=NEEDS_YES)
        request = TopicRequest(form=TopicRunForm.REPAIR)
        finish(settings, store, ask_for(settings, store, job, "batch", request))


@click.command("accept-gap")
@click.argument("job")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what is missing, and change nothing.")
def accept_gap(job: str, yes: bool, dry_run: bool) -> None:
    """Go on behind records that expired on the topic before they were read.

    They are lost: the ledger and the certificate name how many, who accepted it and when.

    \b
    Examples:
      headgate job accept-gap bronze --dry-run
      headgate job accept-gap bronze-orders --yes
    """
    from headgate.cli.job.run import finish
    from headgate.core.engine.lag import measure
    from headgate.core.engine.run_options import TopicRequest, TopicRunForm
    from headgate.core.engine.submit import ask_for, split_job
    from headgate.core.kafka.offsets import ExpiredError
    from headgate.errors import UsageError

    settings, store = open_store()
    with store:
        kind, subject = split_job(settings, job)
        if not kind.follows_topics:
            raise UsageError(f"{kind.name} reads no topic", fix="headgate job accept-gap bronze")
        lag = measure(settings, store, kind, subject)
        latest = store.latest(lag.job)
        if not lag.expired and not (latest and latest.error_code == ExpiredError.code):
            console.done(f"no record of {lag.topic} expired before {lag.job} read it")
            return
        _say_gone(lag, latest)
        if dry_run:
            return
        confirm(f"Go on without these records of {lag.topic}?", yes=yes, otherwise=NEEDS_YES)
        request = TopicRequest(form=TopicRunForm.ACCEPT_GAP, accepted_by=_who())
        finish(settings, store, ask_for(settings, store, job, "batch", request))
    console.say(f"headgate job start {job} (or job run {job}) goes on behind them")


def _say_gone(lag: Lag, latest: Run | None) -> None:
    """By the ledger; before the first batch it knows nothing, but the run that was refused does."""
    if not lag.expired and latest is not None:
        what, why, *_ = [*(latest.error_text or "").split(" | "), ""]
        console.say(f"{what}: {why}")
    for p in (p for p in lag.partitions if p.expired):
        words = f"offsets {p.committed:,} to {p.start - 1:,} are gone, {p.expired:,} in all"
        console.say(f"partition {p.partition}: {words}")


def _who() -> str:
    import getpass
    import socket

    return f"{getpass.getuser()}@{socket.gethostname()}"


@click.group()
def group() -> None:
    """Run, start, watch, stop and mend jobs.

    A batch run ends when all that was there is processed; a stream goes on until it is stopped. Both
    go on from where the other left off.

    \b
    Examples:
      headgate job run bronze
      headgate job start
      headgate job show bronze
      headgate job lag
    """


for _command in (run_job, start, stop, restart, list_runs, show, lag, repair, accept_gap):
    group.add_command(_command)
