"""The tables of a dataset in the ops store, as the last certificate that held has found them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from sqlalchemy import BigInteger, Column, Engine, String, Table, Text, delete, insert, select

from headgate.core.accounting.evidence import CertifiedTable
from headgate.core.ledger.database import writing
from headgate.core.ledger.tables import Json, Utc, metadata

certified_tables = Table(
    "certified_tables",
    metadata,
    Column("dataset", String(200), primary_key=True),
    Column("role", String(50), primary_key=True),
    Column("made_at", Utc, nullable=False),
    Column("snapshot_id", BigInteger),
    Column("rows", BigInteger, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("columns", Json, nullable=False),
    Column("until", Utc, nullable=False),
)


class CertificateStore:
    """Certified tables of datasets by their role; each method is one transaction."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine = engine

    def write_certified(self, dataset: str, tables: Mapping[str, CertifiedTable]) -> None:
        """Replace what an earlier certificate of the dataset has found."""
        rows = [{"dataset": dataset, "role": role, **vars(table)} for role, table in tables.items()]
        with writing(self._engine) as db:
            db.execute(delete(certified_tables).where(certified_tables.c.dataset == dataset))
            if rows:
                db.execute(insert(certified_tables), rows)

    def read_certified(self, dataset: str) -> Mapping[str, CertifiedTable]:
        query = select(certified_tables).where(certified_tables.c.dataset == dataset)
        with self._engine.connect() as db:
            rows = db.execute(query).mappings().all()
        return {
            row["role"]: CertifiedTable(
                made_at=row["made_at"],
                snapshot_id=row["snapshot_id"],
                rows=row["rows"],
                content_hash=row["content_hash"],
                columns=tuple(row["columns"]),
                until=row["until"],
            )
            for row in rows
        }
