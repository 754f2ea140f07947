"""What unit tests share: an ops store of their own, and its clock."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.clock import ManualClock

if TYPE_CHECKING:
    from headgate.core.ledger.ops_store import OpsStore


@pytest.fixture(scope="session")
def ops_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty ops store's file, copied for each test."""
    # Imported here, so that tests without a store do not pay for SQLAlchemy.
    from tests.support.ops_store import create_database

    return create_database(tmp_path_factory.mktemp("ops") / "ops.db")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(ops_database: Path, tmp_path: Path, clock: ManualClock) -> Iterator[OpsStore]:
    """An ops store that goes by the test's clock."""
    from headgate.core.ledger.ops_store import OpsStore

    shutil.copy(ops_database, tmp_path / "ops.db")
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}", clock) as store:
        yield store
