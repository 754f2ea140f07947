"""`headgate job list`, `show` and `lag`: how the jobs stand."""

from __future__ import annotations

import click

from headgate.cli.console import console
from headgate.cli.job_report import open_store, report, sentence


@click.command("list")
@click.option("--job", default=None, help="Only this job's runs.")
@click.option("-n", "count", default=20, show_default=True, help="How many, newest first.")
def list_runs(job: str | None, count: int) -> None:
    """List runs, newest first."""
    from headgate.engine.lease import active_engine
    from headgate.jobs.requests import full_name

    settings, store = open_store()
    with store:
        engine = active_engine(store) is not None
        runs = store.runs(full_name(settings, job) if job else None, limit=count)
        console.data([report(run, engine=engine) for run in runs])


@click.command("show")
@click.argument("job")
def show(job: str) -> None:
    """Show a job's newest run and its last batches."""
    from headgate.jobs.requests import full_name

    settings, store = open_store()
    with store:
        name = full_name(settings, job)
        latest = store.latest(name)
        rows = store.ledger(name)[-10:]
        batches = [
            {"batch": row.batch_id, "run": row.run, "read": row.read, **dict(row.outcomes)}
            for row in rows
        ]
        newest = [report(latest)] if latest else []
        text = f"{sentence(latest)}\n{len(rows)} last batches in the ledger" if latest else "no run"
        console.data({"runs": newest, "batches": batches}, text=text)
