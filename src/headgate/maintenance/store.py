"""The newest plan of each maintenance job in the ops store, and the report of the run that carried it out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Column, Engine, String, Table, Text, select, update

from headgate.core.ledger.database import replace_row, writing
from headgate.core.ledger.tables import metadata
from headgate.maintenance.plan import Plan, Report

maintenance_plans = Table(
    "maintenance_plans",
    metadata,
    Column("job", String(200), primary_key=True),
    Column("plan", Text, nullable=False),
    Column("report", Text),
)


class MaintenanceStore:
    """Plans and reports of maintenance jobs; each method is one transaction."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine = engine

    def write_plan(self, plan: Plan) -> None:
        """Replace the job's earlier plan, and the report on that."""
        with writing(self._engine) as db:
            replace_row(db, maintenance_plans, job=plan.job, plan=plan.model_dump_json())

    def newest_plan(self, job: str) -> Plan | None:
        text = self._read(job, maintenance_plans.c.plan)
        return Plan.model_validate_json(text) if text else None

    def write_report(self, report: Report) -> None:
        """Add the report to the job's newest plan."""
        statement = update(maintenance_plans).where(maintenance_plans.c.job == report.job)
        with writing(self._engine) as db:
            db.execute(statement.values(report=report.model_dump_json()))

    def newest_report(self, job: str) -> Report | None:
        text = self._read(job, maintenance_plans.c.report)
        return Report.model_validate_json(text) if text else None

    def _read(self, job: str, column: Column[str]) -> str | None:
        with self._engine.connect() as db:
            return db.scalar(select(column).where(maintenance_plans.c.job == job))
