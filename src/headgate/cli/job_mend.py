"""`headgate job repair` and `accept-gap`: decisions that a job may not take by itself."""

from __future__ import annotations

import click

from headgate.cli.console import console
from headgate.cli.job_report import open_store


@click.command("repair")
@click.argument("job")
@click.option("--yes", is_flag=True, help="Do not ask.")
def repair(job: str, yes: bool) -> None:
    """Set a damaged checkpoint aside and go on from what the table has committed.

    Nothing is deleted: the old checkpoint stays beside the new one.
    """
    from headgate.errors import UsageError
    from headgate.jobs.repair import repair_job
    from headgate.jobs.requests import split_job

    settings, store = open_store()
    with store:
        kind, dataset = split_job(settings, job)
        if kind != "bronze":
            raise UsageError(f"{kind} has no checkpoint", fix="headgate job run silver --full")
        if not yes:
            click.confirm(f"Set the checkpoint of bronze-{dataset} aside?", abort=True, err=True)
        report = repair_job(settings, store, dataset)
    console.done(f"{report.job} goes on at {dict(report.offsets)}; the old one is {report.aside}")
    console.data(report, text="")
