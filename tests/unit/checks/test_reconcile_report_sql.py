"""The questions of the report to the table of changes, asked of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import duckdb
import pytest

from headgate.checks.reconcile_report_gather import IN_TIME, newest_sql, steps_sql, told_sql

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
COLUMNS = "pk, dq_status, settled, onprem_version, cloud_version, processing_time"


def at(minute: int | None) -> datetime | None:
    return None if minute is None else NOON + timedelta(minutes=minute)


@pytest.fixture
def changes() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            "CREATE TABLE changes (pk TEXT, dq_status TEXT, settled BOOLEAN,"
            " onprem_version TIMESTAMPTZ, cloud_version TIMESTAMPTZ, processing_time TIMESTAMPTZ)"
        )
        yield connection


def add(
    connection: duckdb.DuckDBPyConnection,
    pk: str,
    status: str,
    onprem: int | None,
    cloud: int | None,
    told: int,
) -> None:
    settled = status != "PENDING"
    row = [pk, status, settled, at(onprem), at(cloud), at(told)]
    connection.execute("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?)", row)


def statuses(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    return dict(connection.execute(f"SELECT pk, dq_status FROM {newest_sql('changes')}").fetchall())


def story(connection: duckdb.DuckDBPyConnection) -> list[str]:
    query = f"SELECT dq_status FROM {told_sql('changes')} ORDER BY {IN_TIME}"
    return [row[0] for row in connection.execute(query).fetchall()]


def test_the_newest_versions_give_the_status(changes: duckdb.DuckDBPyConnection) -> None:
    add(changes, "a", "MISSING_CLOUD", 1, 1, 10)
    add(changes, "a", "LATE_MATCH", 1, 5, 20)
    add(changes, "b", "PENDING", None, 3, 10)
    add(changes, "b", "MISSING_ONPREM", None, 3, 30)
    assert statuses(changes) == {"a": "LATE_MATCH", "b": "MISSING_ONPREM"}


def test_what_came_late_tells_of_the_past(changes: duckdb.DuckDBPyConnection) -> None:
    add(changes, "a", "PENDING", 5, None, 10)
    add(changes, "a", "MATCH", 5, 6, 20)
    add(changes, "a", "MISSING_CLOUD", 2, 2, 30)
    assert statuses(changes) == {"a": "MATCH"}
    assert story(changes) == ["PENDING", "MATCH"]


def test_two_rows_of_one_batch_are_told_by_their_versions(
    changes: duckdb.DuckDBPyConnection,
) -> None:
    add(changes, "a", "MATCH", 5, 6, 10)
    add(changes, "a", "PENDING", 2, None, 10)
    assert statuses(changes) == {"a": "MATCH"}
    assert story(changes) == ["PENDING", "MATCH"]


def test_the_steps_add_up_to_the_keys_as_they_stand(changes: duckdb.DuckDBPyConnection) -> None:
    add(changes, "a", "PENDING", 1, None, 10)
    add(changes, "a", "MISMATCH", 1, 2, 20)
    add(changes, "b", "PENDING", None, 3, 10)
    found = changes.execute(steps_sql("changes")).fetchall()
    total: dict[str, int] = {}
    for _, status, n in found:
        total[status] = total.get(status, 0) + n
    assert total == {"PENDING": 1, "MISMATCH": 1}
    assert {moment for moment, _, _ in found} == {at(10), at(20)}
