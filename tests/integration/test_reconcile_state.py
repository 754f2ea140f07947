"""The state that Spark keeps stays bounded, and what comes too late for it is not lost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.integration.reconcile import Message, Pair, cloud, onprem
from tests.integration.spark import Pipeline, Sent

from headgate.compile.reconcile.limits import Limits

SHORT = {"window": "5 SECONDS", "grace": "5 SECONDS", "horizon": "20 SECONDS"}
LIMITS = Limits(timedelta(seconds=5), timedelta(seconds=5), timedelta(seconds=20))


def rows(pair: Pair) -> int:
    found = pair.pipeline.store.read_mark(f"gauge:dq_state_rows:{pair.job}")
    return int(found.value) if found else 0


@pytest.mark.slow
def test_state_is_let_go_behind_its_horizon_and_late_rows_are_kept(pipeline: Pipeline) -> None:
    pair = Pair(pipeline, **SHORT)
    held: list[int] = []
    for horizon in range(4):
        begin = 20 * horizon
        keys = [f"k{horizon}-{n}" for n in range(10)]
        pair.send(*(onprem(key, read=begin + 1) for key in keys))
        pair.send(*(cloud(key, read=begin + 2) for key in keys))
        pair.process()
        held.append(rows(pair))
    assert max(held) <= 30
    assert held[-1] < 40
    # Of the first horizon nothing is kept any more: what comes for it now is a state of its own.
    pair.send(cloud("k0-0", number=2, version=1, read=3), onprem("new", read=70))
    pair.process()
    assert pair.counters()["late_records"] == 1
    assert pair.verdicts() == pair.expected(LIMITS)
    assert pair.statuses()["k0-0"] == "MISMATCH"
    late = pair.sql("SELECT pk FROM lake.dq.results_{t} WHERE origin = 'late'")
    assert [row["pk"] for row in late] == ["k0-0"]
    assert sum(pair.outcomes().values()) == 82


@pytest.mark.slow
def test_a_batch_of_which_nothing_can_take_part_has_its_outcome(pipeline: Pipeline) -> None:
    pair = Pair(pipeline)
    pair.send(*(Message("cloud", Sent(b"no", partition=0)) for _ in range(3)))
    pair.process()
    assert pair.outcomes() == {"refused": 3}
    assert pair.statuses() == {}
