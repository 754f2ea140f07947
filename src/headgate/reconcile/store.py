"""What the job of a pair keeps in the ops store beside its batches: its restart window, and the progress of its audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BigInteger, Boolean, Column, Engine, String, Table, select

from headgate.core.ledger.database import replace_row, writing
from headgate.core.ledger.tables import Json, metadata

restart_windows = Table(
    "restart_windows",
    metadata,
    Column("job", String(200), primary_key=True),
    Column("source_id", String(200), nullable=False),
    Column("start", Json, nullable=False),
    Column("newest_window", BigInteger),
)

audit_progress = Table(
    "audit_progress",
    metadata,
    Column("pair", String(200), primary_key=True),
    Column("ledger", BigInteger, nullable=False),
    Column("has_sent", Boolean, nullable=False),
)


@dataclass(frozen=True)
class RestartWindow:
    """The newest window, in microseconds, that the table of states had when a checkpoint began.

    `source_id` and `start` identify the checkpoint: the topics that it reads, and its first offsets.
    `newest_window` is None where the table was empty.
    """

    source_id: str
    start: Mapping[str, int]
    newest_window: int | None


@dataclass(frozen=True)
class AuditProgress:
    """The last row of the ledger whose changes the audit has seen to, and whether it has sent any change yet."""

    ledger: int = 0
    has_sent: bool = False


class PairStore:
    """Restart windows and audit progress of pairs; each method is one transaction."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine = engine

    def write_restart_window(self, job: str, restart: RestartWindow) -> None:
        with writing(self._engine) as db:
            replace_row(db, restart_windows, job=job, **vars(restart))

    def restart_window(self, job: str) -> RestartWindow | None:
        query = select(restart_windows).where(restart_windows.c.job == job)
        with self._engine.connect() as db:
            row = db.execute(query).one_or_none()
        return RestartWindow(row.source_id, row.start, row.newest_window) if row else None

    def write_audit_progress(self, pair: str, progress: AuditProgress) -> None:
        with writing(self._engine) as db:
            replace_row(db, audit_progress, pair=pair, **vars(progress))

    def audit_progress(self, pair: str) -> AuditProgress:
        query = select(audit_progress).where(audit_progress.c.pair == pair)
        with self._engine.connect() as db:
            row = db.execute(query).one_or_none()
        return AuditProgress(row.ledger, row.has_sent) if row else AuditProgress()
