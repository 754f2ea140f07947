"""Job kind `maintain`: plan, then do what the plan says, never more, and only what still holds.

A dry run only plans. `maintained` submits such a run and waits for its plan and report.
"""

from __future__ import annotations

from collections.abc import Callable

from headgate.config.settings import Settings
from headgate.core.engine.run import RunContext
from headgate.core.engine.submit import ask_for, raise_unless_finished, wait_for
from headgate.core.lake.commits import is_conflict, persistently
from headgate.core.ledger.model import Progress, Run
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.core.sql.fragments import job_name
from headgate.errors import ConflictError
from headgate.maintenance.plan import MaintenanceRunOptions, Plan, Report, TablePlan, TableReport
from headgate.maintenance.planner import Planner, maintained_tables, size_of
from headgate.maintenance.selection import Part, chunks, plan_compaction
from headgate.maintenance.store import MaintenanceStore
from headgate.maintenance.table import Orphan

TRIES = 5


class Maintenance:
    """One run's work on the tables of a plan, step by step."""

    def __init__(self, context: RunContext, planner: Planner) -> None:
        self._context, self._planner = context, planner

    def carry_out(self, plan: Plan) -> Report:
        reports: list[TableReport] = []
        for table in plan.tables:
            if self._context.stop.is_set():
                break
            reports.append(self._table(table))
        return Report(job=plan.job, run=plan.run, tables=tuple(reports))

    def _table(self, plan: TablePlan) -> TableReport:
        report = TableReport(table=plan.table, before=plan.size, after=plan.size)
        if plan.uuid != self._planner.look(plan.role).uuid:
            return report.model_copy(update={"notes": ("the table was made anew: left alone",)})
        for step in (self._compact, self._manifests, self._expire, self._vacuum):
            report = step(plan, report)
        table = self._planner.look(plan.role)
        after = size_of(table, None if plan.compact is None else table.parts())
        return report.model_copy(update={"after": after})

    def _step(self, words: str) -> None:
        """Before each change: is the run still ours, and what is it about to do?"""
        self._context.still_mine()
        self._context.report(Progress(words=words))

    def _compact(self, plan: TablePlan, report: TableReport) -> TableReport:
        """A part whose files were replaced meanwhile by a merge is tried again."""
        names = {part.name for part in plan.compact or ()}
        left = self._parts(plan, names)
        done, retries = len(names), 0
        for number in range(TRIES):
            for chunk in chunks(left):
                if self._context.stop.is_set():
                    break
                self._step(f"compacting {len(left)} parts of {plan.table}")
                self._planner.look(plan.role).rewrite(chunk, self._planner.options.min_files)
            left = self._parts(plan, {part.name for part in left})
            if not left or self._context.stop.is_set():
                break
            retries += len(left) if number + 1 < TRIES else 0
        return report.model_copy(
            update={
                "parts_compacted": done - len(left),
                "parts_left": tuple(part.name for part in left),
                "retries": retries,
            }
        )

    def _parts(self, plan: TablePlan, names: set[str]) -> tuple[Part, ...]:
        """Those of the named parts that are still to be compacted."""
        if not names:
            return ()
        found = self._planner.look(plan.role).parts()
        chosen = plan_compaction(found, self._planner.now().date(), self._planner.options.min_files)
        return tuple(part for part in chosen if part.name in names)

    def _manifests(self, plan: TablePlan, report: TableReport) -> TableReport:
        if not plan.rewrite_manifests or self._context.stop.is_set():
            return report
        self._step(f"rewriting the manifests of {plan.table}")
        told = persistently(lambda: self._planner.look(plan.role).rewrite_manifests(), is_conflict)
        return report.model_copy(
            update={"manifests_rewritten": told.get("rewritten_manifests_count", 0)}
        )

    def _expire(self, plan: TablePlan, report: TableReport) -> TableReport:
        if not plan.going or self._context.stop.is_set():
            return report
        self._step(f"expiring snapshots of {plan.table}")
        expired, files = persistently(lambda: self._expired(plan), is_conflict)
        return report.model_copy(update={"snapshots_expired": expired, "files_deleted": files})

    def _expired(self, plan: TablePlan) -> tuple[int, int]:
        """Expire what was to go and still may; how many snapshots and files that were."""
        table = self._planner.look(plan.role)
        now = self._planner.verdicts(plan.role, table)
        ids = sorted({snapshot.id for snapshot in now if snapshot.goes} & plan.going)
        if not ids:
            return 0, 0
        told = table.expire(ids)
        return len(ids), sum(n for name, n in told.items() if name.startswith("deleted_"))

    def _vacuum(self, plan: TablePlan, report: TableReport) -> TableReport:
        if not plan.orphans or self._context.stop.is_set():
            return report
        self._step(f"removing {len(plan.orphans)} orphan files of {plan.table}")
        orphans = [Orphan(file.path, file.bytes) for file in plan.orphans]
        older_than = self._planner.options.orphans_older_than
        table = self._planner.look(plan.role)
        removed = set(table.remove(orphans, older_than))
        gone = [orphan.bytes for orphan in orphans if orphan.path in removed]
        return report.model_copy(update={"orphans_removed": len(gone), "orphan_bytes": sum(gone)})


def run_maintain(context: RunContext) -> None:
    """Plan, then do what the plan says and nothing that was not shown; a dry run only plans."""
    options = MaintenanceRunOptions.of(context.run)
    session = context.session.newSession()
    tables = maintained_tables(context, session)
    planner = Planner(session, context.store, tables, options, utc_now)
    context.report(Progress(words="planning"))
    plan = _shown(context, options, planner)
    context.store.part(MaintenanceStore).write_plan(plan)
    if options.dry_run:
        context.report(Progress(words="planned, and nothing done"))
        return
    report = Maintenance(context, planner).carry_out(plan)
    context.store.part(MaintenanceStore).write_report(report)
    context.report(Progress(len(report.tables), words=report.sentence))


def _shown(context: RunContext, options: MaintenanceRunOptions, planner: Planner) -> Plan:
    """A new plan; where one was shown before, no more than that."""
    run = context.run
    shown = None
    if options.plan_run is not None:
        # A run that another engine left has kept its own plan, which is within the one shown.
        shown = read_plan(context.store, run.job, options.plan_run, run.number)
    tables = planner.plan()
    if shown is not None:
        tables = tuple(table.within(shown.of(table.role)) for table in tables)
    return Plan(job=run.job, run=run.number, made_at=utc_now(), tables=tables)


def read_plan(store: OpsStore, job: str, run: int, resumed: int | None = None) -> Plan:
    """The plan that this run made, or the run that resumes; a third may have planned since."""
    plan = store.part(MaintenanceStore).newest_plan(job)
    if plan is None or plan.run not in (run, resumed):
        raise ConflictError(
            f"the plan of {job} run {run} is no longer the newest",
            why="another maintenance run has planned since",
            fix="plan again, with --dry-run",
        )
    return plan


def read_report(store: OpsStore, job: str, run: int) -> Report | None:
    """What this run did; None for a dry run."""
    report = store.part(MaintenanceStore).newest_report(job)
    return report if report and report.run == run else None


def maintained(
    settings: Settings,
    store: OpsStore,
    dataset: str,
    options: MaintenanceRunOptions,
    carried_out: Callable[[Run], Run] | None = None,
) -> tuple[Plan, Report | None]:
    """What was planned and done; without `carried_out` the running engine is waited for.

    The command line refuses an age below an hour; `options` may name any, and what jobs still need
    stays even then.
    """
    run = ask_for(settings, store, job_name("maintain", dataset), "batch", options)
    ended = carried_out(run) if carried_out else wait_for(store, run, lambda _: None)
    raise_unless_finished(ended)
    job, number = ended.job, ended.number
    return read_plan(store, job, number), read_report(store, job, number)
