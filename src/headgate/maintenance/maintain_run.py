"""A maintenance run at a prompt: the plan is shown before anything is done, and a report after."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.terminal.asking import ask, need_terminal
from headgate.terminal.cli_console import console
from headgate.terminal.project import active_dataset

if TYPE_CHECKING:
    from headgate.maintenance.maintain_plan import Plan, Report, Wanted


def plan_and_do(dataset: str | None, wanted: Wanted, *, asking: bool) -> None:
    """Plan, show it, ask where something is to be deleted, do that and no more, report."""
    from headgate.errors import UsageError
    from headgate.maintenance.maintain_text import plan_text, report_text

    if not wanted.actions:
        raise UsageError("nothing is left to do", fix="skip fewer steps")
    if asking and not wanted.dry_run:
        need_terminal("this deletes snapshots or files", fix="look with --dry-run, then add --yes")
    plan, report = carry_out(dataset, replace(wanted, dry_run=True))
    if wanted.dry_run:
        console.data({"plan": plan, "report": None}, text=plan_text(plan))
    elif not plan.has_work:
        console.done(f"nothing to do for {plan.job}: --dry-run says why")
        console.data({"plan": plan, "report": None}, text="")
    else:
        console.say(plan_text(plan) + "\n")
        if asking:
            ask("Do that?")
        plan, report = carry_out(dataset, replace(wanted, plan_run=plan.run))
        console.data({"plan": plan, "report": report}, text=report_text(report) if report else "")


def carry_out(dataset: str | None, wanted: Wanted) -> tuple[Plan, Report | None]:
    """The plan of one run, and what it did."""
    from headgate.cli.job.job_run import carried_out
    from headgate.maintenance.maintain_request import maintained
    from headgate.terminal.project import open_store

    settings, store = open_store()
    with store:
        name = dataset or active_dataset(settings)
        return maintained(
            settings, store, name, wanted, lambda run: carried_out(settings, store, run)
        )
