"""Tables are made by several jobs at once; a failure of Spark says what failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from headgate.core.engine.stream import SHORT, explain
from headgate.core.lake import spark as statements
from headgate.core.lake.spark import TRIES, create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUSY = "Caused by: org.sqlite.SQLiteException: [SQLITE_BUSY] The database file is locked"
MADE = "[SQLITE_ERROR] SQL error or missing database (table iceberg_tables already exists)"
TRACE = """An error occurred while calling o1.sql.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.Some.method(Some.scala:1)
Caused by: java.lang.ArithmeticException: division by zero
\tat org.apache.spark.Other.method(Other.scala:1)"""


@dataclass
class Session:
    """Fails with these words, one by one, before it obeys."""

    failures: list[str]
    ran: list[str] = field(default_factory=list[str])

    def sql(self, statement: str) -> None:
        if self.failures:
            raise RuntimeError(self.failures.pop(0))
        self.ran.append(statement)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "PAUSE_SECONDS", 0.0)


def test_what_another_job_makes_at_once_is_made_once_more() -> None:
    session = Session([BUSY, MADE])
    create(cast("SparkSession", session), ["CREATE a", "CREATE b"])
    assert session.ran == ["CREATE a", "CREATE b"]


def test_another_failure_is_told_at_once() -> None:
    session = Session(["no such type", "never reached"])
    with pytest.raises(RuntimeError, match="no such type"):
        create(cast("SparkSession", session), ["CREATE a"])
    assert session.failures == ["never reached"]


def test_a_catalog_that_stays_locked_is_told_in_the_end() -> None:
    session = Session([BUSY] * (TRIES + 1))
    with pytest.raises(RuntimeError, match="SQLITE_BUSY"):
        create(cast("SparkSession", session), ["CREATE a"])
    assert len(session.failures) == 1


def test_a_failure_on_spark_carries_its_cause() -> None:
    failure = explain(RuntimeError(TRACE))
    words = "the job failed on Spark: java.lang.ArithmeticException: division by zero"
    assert failure.what == words
    assert failure.one_line.split(" | ")[0] == words
    assert len(failure.one_line.split(" | ")) == 3


def test_a_long_cause_is_whole_in_the_reason() -> None:
    failure = explain(RuntimeError("x | y " + "z" * 2 * SHORT))
    assert failure.what.startswith("the job failed on Spark: x y zzz")
    assert failure.what.endswith("…")
    assert failure.why.endswith("z" * 2 * SHORT)
