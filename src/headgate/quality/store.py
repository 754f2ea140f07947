"""Revisions of rule tables in the ops store: the deployed one of each table, and the one that each job runs.

A deployment writes the first; the job of the table takes it over between two batches, and then writes the second.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Column, Engine, String, Table, select

from headgate.core.ledger.database import replace_row, writing
from headgate.core.ledger.tables import Utc, metadata

deployed_rules = Table(
    "deployed_rules",
    metadata,
    Column("table", String(200), primary_key=True),
    Column("revision", String(64), nullable=False),
    Column("at", Utc, nullable=False),
)

running_rules = Table(
    "running_rules",
    metadata,
    Column("job", String(200), primary_key=True),
    Column("revision", String(64), nullable=False),
)


class DeployedRevision(NamedTuple):
    """The revision of a rule table that was deployed last, and when that was."""

    table: str
    revision: str
    at: datetime


class RuleStore:
    """Deployed and running revisions of rule tables; each method is one transaction."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine, self._clock = engine, clock

    def write_deployed_revision(self, table: str, revision: str) -> None:
        """Make this the revision that the table's job must run."""
        with writing(self._engine) as db:
            replace_row(db, deployed_rules, table=table, revision=revision, at=self._clock())

    def deployed_revision(self, table: str) -> str | None:
        query = select(deployed_rules.c.revision).where(deployed_rules.c.table == table)
        with self._engine.connect() as db:
            return db.scalar(query)

    def deployed_revisions(self) -> tuple[DeployedRevision, ...]:
        """The deployed revision of every table that has one, by the name of the table."""
        query = select(deployed_rules).order_by(deployed_rules.c.table)
        with self._engine.connect() as db:
            return tuple(DeployedRevision(*row) for row in db.execute(query))

    def write_running_revision(self, job: str, revision: str) -> None:
        """Note that the job judges by this revision from its next batch on."""
        with writing(self._engine) as db:
            replace_row(db, running_rules, job=job, revision=revision)

    def running_revision(self, job: str) -> str | None:
        """The revision by which the job judges now, or judged last."""
        query = select(running_rules.c.revision).where(running_rules.c.job == job)
        with self._engine.connect() as db:
            return db.scalar(query)
