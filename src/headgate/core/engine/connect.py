"""A Spark Connect session on the running engine, for commands and notebooks."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from headgate.config.settings import Settings, load_settings
from headgate.errors import UnavailableError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

# PySpark sets it for good: every later session of the process, and of its children, is a client's.
_CLIENT = "SPARK_CONNECT_MODE_ENABLED"
ANSWER_SECONDS = 5.0
# PySpark's own tries go on for ten minutes after the engine is gone.
TRIES = 4
# What gRPC says when nobody is there any more.
GONE = ("StatusCode.UNAVAILABLE", "failed to connect to all addresses", "Connection refused")


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
    _need_listener(found.connect_url)
    # PySpark takes half a second to load; whoever finds no engine need not wait for it.
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    was_client = _CLIENT in os.environ
    url = f"{found.connect_url}/;token={found.connect_token}"
    session = cast("SparkSession", SparkSession.builder.remote(url).create())  # pyright: ignore[reportUnknownMemberType]  # PySpark leaves it untyped
    try:
        _give_up_sooner(session)
        yield session
    except PySparkException as error:
        if not is_gone(error):
            raise
        raise _gone(found.connect_url, "it answers no more") from error
    finally:
        with suppress(PySparkException):  # of an engine that is gone
            session.stop()
        if not was_client:
            os.environ.pop(_CLIENT, None)


def is_gone(error: PySparkException) -> bool:
    """Whether a statement failed because the engine is away, and not by its own fault."""
    return any(sign in str(error) for sign in GONE)


def _need_listener(url: str) -> None:
    host, _, port = url.removeprefix("sc://").rstrip("/").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
    except OSError as error:
        raise _gone(url, str(error)) from error


def _gone(url: str, why: str) -> UnavailableError:
    return UnavailableError(
        "the engine does not answer",
        why=f"{url}: {why}",
        fix="headgate local status says how it stands; make up (or: headgate local up) starts it",
    )


def _give_up_sooner(session: SparkSession) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    client = cast("Any", session).client
    client.set_retry_policies([DefaultPolicy(max_retries=TRIES)])
