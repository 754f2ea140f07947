from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.store.store_batches import Clock

from headgate.store.ops import OpsStore


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One migrated database; each test gets a copy, so that only one pays for Alembic."""
    path = tmp_path_factory.mktemp("ops") / "ops.db"
    OpsStore.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(made: Path, tmp_path: Path, clock: Clock) -> Iterator[OpsStore]:
    shutil.copy(made, tmp_path / "ops.db")
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}", clock) as store:
        yield store
