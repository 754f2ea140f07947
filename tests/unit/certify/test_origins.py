from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import duckdb
import pytest

from headgate.certify.evidence import repeated_sql
from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.ranges import TopicRange

FIRST = datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
SECOND = FIRST + timedelta(hours=1)


def batch(topic_id: str, at: datetime) -> LedgerRow:
    range_ = TopicRange("orders", topic_id, {"0": 0}, {"0": 9})
    return LedgerRow(None, "bronze-orders", 1, range_, (), at, 0, 9, 9, 0, {}, {}, at)


def repeated(rows: Sequence[LedgerRow], *origins: tuple[int, datetime]) -> int:
    values = ", ".join(f"('o', 0, {offset}, TIMESTAMPTZ '{at}')" for offset, at in origins)
    columns = "kafka_topic, kafka_partition, kafka_offset, read_at"
    with duckdb.connect() as db:
        found = db.execute(repeated_sql(f"FROM (VALUES {values}) AS t({columns})", rows)).fetchone()
    assert found is not None
    return int(found[0])


@pytest.mark.parametrize(
    ("origins", "expected"),
    [
        ([(1, FIRST), (2, FIRST)], 0),
        ([(1, FIRST), (1, FIRST)], 1),
        ([(1, FIRST), (1, SECOND)], 1),
    ],
)
def test_a_topic_has_each_offset_once(
    origins: Sequence[tuple[int, datetime]], expected: int
) -> None:
    assert repeated([batch("id1", FIRST), batch("id1", SECOND)], *origins) == expected


@pytest.mark.parametrize(
    ("origins", "expected"),
    [
        ([(1, FIRST), (1, SECOND)], 0),
        ([(1, SECOND), (1, SECOND)], 1),
        ([(1, FIRST), (1, SECOND + timedelta(microseconds=1))], 1),
    ],
)
def test_a_topic_made_again_has_each_offset_once_more_and_no_row_is_without_a_batch(
    origins: Sequence[tuple[int, datetime]], expected: int
) -> None:
    assert repeated([batch("id1", FIRST), batch("id2", SECOND)], *origins) == expected
