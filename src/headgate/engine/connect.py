"""A Spark Connect client of the running engine."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from pyspark.sql import SparkSession

from headgate.errors import UnavailableError
from headgate.settings import Settings, load_settings


@contextmanager
def connect(settings: Settings | None = None) -> Generator[SparkSession]:
    """A session on the engine; the token goes along, to localhost only."""
    found = settings or load_settings()
    if not found.connect_url or not found.connect_token:
        raise UnavailableError(
            "no engine is running here",
            why="CONNECT_URL and CONNECT_TOKEN are set by a running engine",
            fix="make up",
        )
    url = f"{found.connect_url}/;token={found.connect_token}"
    session = cast("SparkSession", SparkSession.builder.remote(url).create())  # pyright: ignore[reportUnknownMemberType]  # PySpark leaves it untyped
    try:
        yield session
    finally:
        session.stop()
