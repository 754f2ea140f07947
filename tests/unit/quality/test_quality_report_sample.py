"""The query that draws failing rows, on DuckDB itself: some of each kind, bounded, the same again."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest

from headgate.quality.report.rows import FailedRow, failed_row, sample_sql

# Every tenth row is clean; rule r0 holds on most of the others, r9 on few, and one status has no rule.
TABLE = """
CREATE TABLE results AS SELECT
  'k' || i AS pk, NULL AS action,
  CASE WHEN i % 10 = 0 THEN 'VALID' WHEN i % 97 = 0 THEN 'MISMATCH' ELSE 'BAD' END AS dq_status,
  'ERROR' AS dq_severity,
  CASE WHEN i % 10 = 0 THEN 'clean' ELSE 'failed' END AS dq_outcome,
  CASE WHEN i % 10 = 0 OR i % 97 = 0 THEN NULL ELSE ['r' || (i % 100 // 11), 'other'] END AS dq_rules,
  'a reason' AS dq_reason,
  TIMESTAMPTZ '2024-01-01 00:00:00+00' + INTERVAL (i) SECOND AS event_time,
  TIMESTAMPTZ '2024-01-02 00:00:00+00' AS processing_time,
  't' AS kafka_topic, i % 3 AS kafka_partition, i AS kafka_offset, '{"a": 1}' AS "row"
FROM range(20000) AS t(i)
"""


def drawn(seed: int, order: str = "pk", where: str = "TRUE", of_a_kind: int = 5) -> list[FailedRow]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(TABLE)
        scan = f"(SELECT * FROM results ORDER BY {order})"
        found = connection.execute(sample_sql(scan, where, seed, of_a_kind)).fetchall()
    return [failed_row(row) for row in found]


def test_there_are_some_of_every_kind_and_no_clean_row() -> None:
    kinds = Counter(row.kind for row in drawn(5))
    assert set(kinds) == {("MISMATCH", ""), *(("BAD", f"r{n}") for n in range(10))}
    assert set(kinds.values()) == {5}


def test_the_order_of_the_table_does_not_matter_and_the_seed_does() -> None:
    one = drawn(5)
    assert one == drawn(5, order="kafka_offset DESC")
    assert [row.pk for row in one] != [row.pk for row in drawn(6)]


def test_a_larger_sample_holds_the_smaller_one() -> None:
    few, more = ({row.pk for row in drawn(5, of_a_kind=n)} for n in (2, 7))
    assert few < more


def test_only_rows_of_the_run_are_drawn() -> None:
    rows = drawn(5, where="kafka_offset < 30")
    assert {row.offset for row in rows if row.offset is not None} <= set(range(30))
    assert drawn(5, where="processing_time > TIMESTAMPTZ '2024-01-02 00:00:00+00'") == []


@pytest.mark.parametrize("field", ["pk", "reason", "event_time", "topic", "row"])
def test_a_row_is_read_whole(field: str) -> None:
    assert getattr(drawn(5)[0], field) is not None
