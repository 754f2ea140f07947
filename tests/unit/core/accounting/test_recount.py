from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headgate.core.accounting.broker import MOST_OFFSETS, recount
from headgate.core.accounting.evidence import NOTHING_LEFT, TopicEvidence
from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.ranges import TopicRange

TIME = datetime(2024, 1, 1, tzinfo=UTC)
NOBODY = "127.0.0.1:1"


def batch(start: int, end: int) -> LedgerRow:
    n = end - start
    range_ = TopicRange("orders", "id1", {"0": start}, {"0": end})
    return LedgerRow(None, "bronze-orders", 1, range_, (), TIME, 0, n, n, 0, {}, {}, TIME)


def test_too_many_records_are_not_counted_unasked() -> None:
    topic = TopicEvidence("id1", {"0": 0}, {"0": MOST_OFFSETS + 1})
    found = recount(NOBODY, "orders", [batch(0, MOST_OFFSETS + 1)], topic)
    assert found.batches == ()
    assert found.why_not == "they have 2,000,001 offsets; --count counts them all the same"


@pytest.mark.parametrize("begin", [1, 50, 100])
def test_a_batch_that_is_not_whole_on_the_topic_is_not_counted(begin: int) -> None:
    topic = TopicEvidence("id1", {"0": begin}, {"0": 100})
    found = recount(NOBODY, "orders", [batch(0, 100)], topic)
    assert (found.why_not, found.left) == (NOTHING_LEFT, 1)
