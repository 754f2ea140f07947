"""A Spark Connect client of the running engine."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from pyspark.sql import SparkSession

from headgate.errors import UnavailableError
from headgate.settings import Settings, load_settings

# PySpark sets it for good: every later session of the process, and of its children, is a client's.
_CLIENT = "SPARK_CONNECT_MODE_ENABLED"


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
    was_client = _CLIENT in os.environ
    url = f"{found.connect_url}/;token={found.connect_token}"
    session = cast("SparkSession", SparkSession.builder.remote(url).create())  # pyright: ignore[reportUnknownMemberType]  # PySpark leaves it untyped
    try:
        yield session
    finally:
        session.stop()
        if not was_client:
            os.environ.pop(_CLIENT, None)
