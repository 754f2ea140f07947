from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.engine.batch import Faults
from headgate.errors import BatchRefusedError, UnavailableError
from headgate.filters.router.batch import culprits, refuse_unless_ours
from headgate.filters.store.model import Member

MEMBERS = [Member(f"f{n:03d}", "r", "t") for n in range(60)]


@given(st.sets(st.sampled_from([one.filter for one in MEMBERS]), max_size=5))
def test_halving_finds_every_culprit_and_nobody_else(bad: set[str]) -> None:
    asked: list[int] = []

    def fails(members: Sequence[Member]) -> str:
        asked.append(len(members))
        return "it raised" if bad & {one.filter for one in members} else ""

    assert culprits(MEMBERS, fails) == dict.fromkeys(bad, "it raised")
    assert len(asked) <= 1 + 2 * 7 * max(1, len(bad))


def test_filters_that_fail_only_together_have_no_culprit() -> None:
    assert culprits(MEMBERS, lambda members: "large" if len(members) > 30 else "") == {}


def test_nobody_is_blamed_for_what_is_away_gone_or_refused() -> None:
    away = Exception("org.apache.kafka.common.errors.TimeoutException: no answer")
    with pytest.raises(UnavailableError):
        refuse_unless_ours(away)
    with pytest.raises(BatchRefusedError):
        refuse_unless_ours(BatchRefusedError("it does not follow"))
    gone = Exception("[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may have been lost")
    with pytest.raises(Exception, match="KAFKA_DATA_LOSS"):
        refuse_unless_ours(gone)
    refuse_unless_ours(ValueError("a filter's own"))


def test_a_fault_names_the_filter_that_is_to_raise() -> None:
    assert Faults("filter-raises@dealer-001:/tmp/witness").raising_filter() == "dealer-001"
    assert Faults("after-intent@2").raising_filter() == ""
    assert Faults().raising_filter() == ""
