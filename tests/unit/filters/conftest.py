from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.control_plane import ControlPlaneHarness


@pytest.fixture
def harness(ops_database: Path, tmp_path: Path) -> Iterator[ControlPlaneHarness]:
    """A control plane over an ops store of its own."""
    made = ControlPlaneHarness.copy(ops_database, tmp_path / "ops.db")
    yield made
    made.store.close()
