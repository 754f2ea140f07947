"""`pytest -p tests.support.durations`: note in the JUnit file how long fixtures took to set up.

Each test's record gets a property `fixture <scope> <name>` with the seconds of every fixture that was
set up for it; pytest sets up what a fixture depends on first, so the seconds do not overlap.
`tools/test_durations.py` reads them.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest

NOTED_SECONDS = 0.05


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    start = time.perf_counter()
    try:
        return (yield)
    finally:
        seconds = time.perf_counter() - start
        if seconds >= NOTED_SECONDS:
            # The test that is being set up; `request.node` would be the module or session.
            item: pytest.Item = request._pyfuncitem
            name = f"fixture {fixturedef.scope} {fixturedef.argname}"
            item.user_properties.append((name, round(seconds, 3)))
