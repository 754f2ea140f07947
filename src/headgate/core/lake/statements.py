"""Running SQL text: PySpark's own signature loses its types, so there is one door."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What a catalog says when another job makes the same thing, or its first entry at all, just then.
AT_ONCE = (
    "already exists",
    "unique constraint",
    "duplicate key",
    "duplicate column",
    "sqlite_busy",
    "database is locked",
    "commitfailedexception",
)
TRIES, PAUSE_SECONDS = 8, 0.25


def sql(session: SparkSession, statement: str) -> DataFrame:
    """Run one statement; a query is not carried out before its rows are asked for."""
    return session.sql(statement)  # pyright: ignore[reportUnknownMemberType]  # see above


def create(session: SparkSession, statements: Iterable[str]) -> None:
    """Run `CREATE … IF NOT EXISTS`: it looks first and makes then, and others may be between."""
    for statement in statements:
        for tried in range(1, TRIES + 1):
            try:
                sql(session, statement)
                break
            except Exception as error:
                if tried == TRIES or not made_at_once(error):
                    raise
                time.sleep(PAUSE_SECONDS)


def made_at_once(error: Exception) -> bool:
    text = str(error).lower()
    return any(sign in text for sign in AT_ONCE)
