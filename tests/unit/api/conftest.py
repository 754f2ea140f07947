"""One app for each test, with a key for everybody."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.api.asked import Asked, asked, people


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ops store whose tables are made: a copy is quicker than making them for each test."""
    folder = tmp_path_factory.mktemp("blank")
    with asked(folder):
        return folder / "ops.db"


@pytest.fixture(autouse=True)
def heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sets up logging anew, as dbt does, turns off the loggers that were there."""
    for name in ("headgate.api", "headgate.api.access"):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "disabled", False)
        monkeypatch.setattr(logger, "propagate", True)


@pytest.fixture(scope="session")
def peopled(tmp_path_factory: pytest.TempPathFactory, blank: Path) -> tuple[Path, dict[str, str]]:
    """An ops store in which everybody has a key, and the keys."""
    folder = tmp_path_factory.mktemp("peopled")
    shutil.copy(blank, folder / "ops.db")
    with asked(folder) as app:
        return folder / "ops.db", people(app).keys


@pytest.fixture
def ask(tmp_path: Path, peopled: tuple[Path, dict[str, str]]) -> Iterator[Asked]:
    database, keys = peopled
    shutil.copy(database, tmp_path / "ops.db")
    with asked(tmp_path) as app:
        app.keys.update(keys)
        yield app


@pytest.fixture
def new(tmp_path: Path, blank: Path) -> Iterator[Asked]:
    """A store in which nobody has made a key yet."""
    shutil.copy(blank, tmp_path / "ops.db")
    with asked(tmp_path) as app:
        yield app
