from __future__ import annotations

import pytest
from tests.support.clock import ManualClock
from tests.support.metric_windows import NOW


@pytest.fixture
def clock() -> ManualClock:
    """A clock an hour after the rows of `metric_windows` happened."""
    return ManualClock(NOW)
