"""One app for each test, with a key for everybody."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.api_client import ApiClient, create_role_keys, open_api_client


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ops store whose tables are made: a copy is quicker than making them for each test."""
    folder = tmp_path_factory.mktemp("empty_database")
    with open_api_client(folder):
        return folder / "ops.db"


@pytest.fixture(autouse=True)
def api_loggers_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sets up logging anew, as dbt does, turns off the loggers that were there."""
    for name in ("headgate.api", "headgate.api.access"):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "disabled", False)
        monkeypatch.setattr(logger, "propagate", True)


@pytest.fixture(scope="session")
def store_with_keys(
    tmp_path_factory: pytest.TempPathFactory, empty_database: Path
) -> tuple[Path, dict[str, str]]:
    """An ops store in which everybody has a key, and the keys."""
    folder = tmp_path_factory.mktemp("store_with_keys")
    shutil.copy(empty_database, folder / "ops.db")
    with open_api_client(folder) as app:
        return folder / "ops.db", create_role_keys(app).keys


@pytest.fixture
def api(tmp_path: Path, store_with_keys: tuple[Path, dict[str, str]]) -> Iterator[ApiClient]:
    database, keys = store_with_keys
    shutil.copy(database, tmp_path / "ops.db")
    with open_api_client(tmp_path) as app:
        app.keys.update(keys)
        yield app


@pytest.fixture
def api_without_keys(tmp_path: Path, empty_database: Path) -> Iterator[ApiClient]:
    """A store in which nobody has made a key yet."""
    shutil.copy(empty_database, tmp_path / "ops.db")
    with open_api_client(tmp_path) as app:
        yield app
