"""`headgate rules deploy`: a new revision for a table's quality job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console
from headgate.terminal.project import open_store
from headgate.terminal.runs import EngineWatch

if TYPE_CHECKING:
    from headgate.quality.rules_deploy import Deployment


@click.command("deploy")
@click.argument("table")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
def rules_deploy(table: str, dry_run: bool) -> None:
    """Let the declared rules of a table judge from the next batch on.

    A running stream takes them over between two batches, without a restart: no record is judged
    twice, and open windows keep their sums. Where none runs, the next start does. The views
    dq_results_<table> and dq_metrics_<table> of the engine are made anew.

    \b
    Examples:
      headgate rules deploy customer --dry-run
      headgate rules deploy customer
    """
    from headgate.quality.rules_deploy import deploy, plan_deployment

    settings, store = open_store()
    with store:
        planned = plan_deployment(settings, store, table)
        if dry_run:
            console.data(planned, text=_text(planned))
            return
        taken = deploy(settings, store, planned, EngineWatch(store, console.say))
    words = "judges from the next batch on" if taken else "judges once the job runs"
    console.done(f"revision {planned.revision[:12]} of {table} {words}")
    console.data(planned, text="")


def _text(planned: Deployment) -> str:
    before = planned.before[:12] if planned.before else "none"
    if not planned.is_new:
        return f"{planned.table}: revision {before} is deployed, and nothing is declared otherwise"
    how = "its stream takes it over between two batches" if planned.streaming else "no stream runs"
    head = f"{planned.table}: revision {before} → {planned.revision[:12]} ({how})"
    return "\n".join([head, *(f"  {change}" for change in planned.changes)])
