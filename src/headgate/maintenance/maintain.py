"""Maintenance: small files written anew, old snapshots expired, orphan files removed; planned first."""

from __future__ import annotations

from headgate.core.engine.context import RunContext
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.core.ledger.store_model import Progress
from headgate.errors import ConflictError
from headgate.maintenance.maintain_apply import Maintenance
from headgate.maintenance.maintain_plan import Plan, Report, Wanted
from headgate.maintenance.maintain_planner import Planner, subject_of

PLAN, REPORT = "plan", "report"


def run_maintain(context: RunContext) -> None:
    """Plan, then do what the plan says and nothing that was not shown; a dry run only plans."""
    wanted = Wanted.of(context.run.options)
    session = context.session.newSession()
    subject = subject_of(context, session)
    planner = Planner(session, context.store, subject, wanted, utc_now)
    context.report(Progress(words="planning"))
    plan = _shown(context, wanted, planner)
    context.store.mark(mark_name(plan.job, PLAN), plan.model_dump_json())
    if wanted.dry_run:
        context.report(Progress(words="planned, and nothing done"))
        return
    report = Maintenance(context, planner).carry_out(plan)
    context.store.mark(mark_name(plan.job, REPORT), report.model_dump_json())
    context.report(Progress(len(report.tables), words=report.sentence))


def _shown(context: RunContext, wanted: Wanted, planner: Planner) -> Plan:
    """A new plan; where one was shown before, no more than that."""
    run = context.run
    shown = None
    if wanted.plan_run is not None:
        # A run that another engine left has kept its own plan, which is within the one shown.
        shown = kept_plan(context.store, run.job, wanted.plan_run, run.number)
    tables = planner.plan()
    if shown is not None:
        tables = tuple(table.within(shown.of(table.role)) for table in tables)
    return Plan(job=run.job, run=run.number, made_at=utc_now(), tables=tables)


def mark_name(job: str, what: str) -> str:
    return f"maintain:{what}:{job}"


def kept_plan(store: OpsStore, job: str, run: int, resumed: int | None = None) -> Plan:
    """The plan that this run made, or the run that resumes; a third may have planned since."""
    found = store.read_mark(mark_name(job, PLAN))
    plan = Plan.model_validate_json(found.value) if found else None
    if plan is None or plan.run not in (run, resumed):
        raise ConflictError(
            f"the plan of {job} run {run} is no longer the newest",
            why="another maintenance run has planned since",
            fix="plan again, with --dry-run",
        )
    return plan


def kept_report(store: OpsStore, job: str, run: int) -> Report | None:
    """What this run did; None for a dry run."""
    found = store.read_mark(mark_name(job, REPORT))
    report = Report.model_validate_json(found.value) if found else None
    return report if report and report.run == run else None
