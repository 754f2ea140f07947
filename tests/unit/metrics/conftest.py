from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from tests.support.metric_windows import Clock

from headgate.store.ops import OpsStore
from headgate.store.tables import metadata


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[OpsStore]:
    """A store without migrations: those have tests of their own and take longer than all of these."""
    engine = create_engine(f"sqlite:///{tmp_path / 'ops.db'}")
    with engine.begin() as db:
        metadata.create_all(db)
    with OpsStore(engine, clock) as store:
        yield store
