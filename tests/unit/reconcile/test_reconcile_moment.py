"""When in its stream a batch came is told by the commit of its states; where its checkpoint began, by the ops store."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.core.engine.checkpoint import Start
from headgate.core.ledger.ops_store import OpsStore
from headgate.reconcile.job.cross_window import Moment, find_restart_window, moment_of
from headgate.reconcile.store import PairStore


@pytest.mark.parametrize("moment", [Moment(0, 0), Moment(1, 2, 0), Moment(1_000, 2_000, 3_000)])
def test_a_moment_is_read_as_it_was_told(moment: Moment) -> None:
    assert moment_of(moment.counters) == moment


def test_a_commit_of_records_alone_tells_none() -> None:
    assert moment_of(None) is None
    assert moment_of({"deletes": 1}) is None


def states(newest: int | None) -> Any:
    """Stands for the table of states, whose newest window begins then."""
    row = {"newest": newest}
    return SimpleNamespace(selectExpr=lambda _: SimpleNamespace(first=lambda: row))


@pytest.mark.parametrize("newest", [1_767_225_600_000_000, None])
def test_the_window_at_a_restart_is_looked_up_once_for_each_checkpoint(
    store: OpsStore, newest: int | None
) -> None:
    """A batch that a kill cut off has added to the table: the window stays that of before."""
    pairs = store.part(PairStore)
    start = Start("one,two", {"onprem:0": 4, "cloud:0": 0})
    assert find_restart_window(pairs, "reconcile-x", start, states(newest)) == newest
    assert find_restart_window(pairs, "reconcile-x", start, states(7)) == newest
    assert find_restart_window(pairs, "reconcile-y", start, states(8)) == 8
    later = Start("one,two", {"onprem:0": 5, "cloud:0": 0})
    assert find_restart_window(pairs, "reconcile-x", later, states(9)) == 9
    made_again = Start("three,two", dict(later.offsets))
    assert find_restart_window(pairs, "reconcile-x", made_again, states(10)) == 10


def test_a_checkpoint_that_began_with_nothing_has_no_window_at_its_restart(store: OpsStore) -> None:
    pairs = store.part(PairStore)
    for start in (None, Start("one,two", {"onprem:0": 0})):
        assert find_restart_window(pairs, "reconcile-x", start, states(7)) is None
    assert pairs.restart_window("reconcile-x") is None
