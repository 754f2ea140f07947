"""When a batch is announced for, and what it is settled as if it was amended while it was written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.ledger_rows import intent, topic_range

from headgate.core.engine.batch import BatchProtocol, Faults, Result, refuse_unless_next
from headgate.core.lake.commits import AlreadyPublishedError
from headgate.core.lake.table import Reached
from headgate.core.ledger.model import Intent
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import BatchRefusedError


@dataclass
class Overtaken:
    """Work that amends its intent, and then finds that another run has published the batch."""

    store: OpsStore
    published: bool = False

    def reached(self, intent: Intent) -> Reached | None:
        return None

    def write(self, intent: Intent) -> Result:
        self.store.amend(intent, ("wider",))
        self.published = True
        raise AlreadyPublishedError("bronze.orders already holds this batch")

    def account(self, intent: Intent) -> Result | None:
        if not self.published:
            return None
        return Result(5, {"accepted": 5}, {"bronze.orders": 1}, ("wider",))


def test_a_batch_amended_and_then_found_published_leaves_nothing_open(store: OpsStore) -> None:
    begun = store.begin(intent(topic_range({"0": 0}, {"0": 5})))
    row = BatchProtocol(store, Faults()).finish(begun, Overtaken(store))
    assert (row.revisions, row.run) == (("wider",), begun.run)
    assert store.open_intents(begun.job) == ()
    assert len(store.ledger(begun.job)) == 1


@pytest.mark.parametrize("start", [4, 6])
def test_a_batch_that_repeats_or_skips_records_is_refused(start: int) -> None:
    batch = intent(topic_range({"0": start, "1": 0}, {"0": 9, "1": 9}))
    table = Reached("t1", {"0": 5})
    with pytest.raises(BatchRefusedError, match="does not follow what its table has committed"):
        refuse_unless_next(batch, table)
    refuse_unless_next(intent(topic_range({"0": 5, "1": 7}, {"0": 9, "1": 9})), table)


@dataclass
class Written:
    """Work that is done at once."""

    found: Result | None = None

    def reached(self, intent: Intent) -> Reached | None:
        return None

    def write(self, intent: Intent) -> Result:
        self.found = Result(5, {"accepted": 5}, {"bronze.orders": 1}, intent.revisions)
        return self.found

    def account(self, intent: Intent) -> Result | None:
        return self.found


def test_the_time_of_a_batch_is_behind_what_it_must_follow(store: OpsStore) -> None:
    """Where another job writes to the same table, a clock that was set back must not mix their times."""
    protocol = BatchProtocol(store, Faults())
    ahead = datetime.now(UTC) + timedelta(hours=1)
    times: list[datetime] = []
    for first, after in ((0, ahead), (5, None), (10, ahead + timedelta(hours=1)), (15, ahead)):
        range_ = topic_range({"0": first}, {"0": first + 5})
        row = protocol.process("bronze", 1, range_, ("r",), 0, Written(), after)
        assert row is not None
        times.append(row.batch_time)
    assert times[0] > ahead
    assert times[2] > ahead + timedelta(hours=1)
    assert times == sorted(set(times))
