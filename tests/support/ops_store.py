"""Empty ops stores, created without migrations."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import create_engine, text

from headgate.app import STORE_TABLES, load
from headgate.core.ledger.database import HEAD
from headgate.core.ledger.tables import metadata


def load_tables() -> None:
    """Add the tables of all capabilities to the metadata, as the migration does."""
    for tables in STORE_TABLES:
        load(tables)


def create_database(path: Path) -> Path:
    """Create an empty ops store's SQLite file at the newest migration, and return its path.

    The tables come from the metadata, since Alembic takes longer than most tests: the integration
    tests run the migrations and compare their schema with this one.
    """
    load_tables()
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as db:
        db.exec_driver_sql("PRAGMA journal_mode = WAL")
    with engine.begin() as db:
        metadata.create_all(db)
        db.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        db.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
    engine.dispose()
    return path
