"""Carrying out a maintenance plan: never more than it says, and only what still holds."""

from __future__ import annotations

from headgate.core.engine.context import RunContext
from headgate.core.lake.conflicts import is_conflict, persistently
from headgate.core.ledger.store_model import Progress
from headgate.maintenance.maintain_plan import Plan, Report, TablePlan, TableReport
from headgate.maintenance.maintain_planner import Planner, size_of
from headgate.maintenance.small_files import Part, chunks, plan_compaction
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
                self._planner.look(plan.role).rewrite(chunk, self._planner.wanted.min_files)
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
        chosen = plan_compaction(found, self._planner.now().date(), self._planner.wanted.min_files)
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
        older_than = self._planner.wanted.orphans_older_than
        table = self._planner.look(plan.role)
        removed = set(table.remove(orphans, older_than))
        gone = [orphan.bytes for orphan in orphans if orphan.path in removed]
        return report.model_copy(update={"orphans_removed": len(gone), "orphan_bytes": sum(gone)})
