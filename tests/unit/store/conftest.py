from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from tests.support.ledger_rows import Clock

from headgate.store.database import HEAD
from headgate.store.ops import OpsStore
from headgate.store.tables import metadata


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One database, copied for each test. Alembic takes longer than all of them: it is tested with
    the integration tests, which also hold its schema against this one."""
    path = tmp_path_factory.mktemp("ops") / "ops.db"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as db:
        metadata.create_all(db)
        db.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        db.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
    engine.dispose()
    return path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(made: Path, tmp_path: Path, clock: Clock) -> Iterator[OpsStore]:
    shutil.copy(made, tmp_path / "ops.db")
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}", clock) as store:
        yield store
