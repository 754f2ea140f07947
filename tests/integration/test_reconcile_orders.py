"""No order of delivery, no cut of batches and no restart changes a verdict, and nothing said twice does."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.integration.reconcile import Pair, cuts, random_messages
from tests.integration.spark import Pipeline

SEED = 20_260
STALE = 8  # among the columns of a verdict: said again, an old version is the newest offset


def delivered(pair: Pair, order: int, keys: int, parts: int, again: float = 0.0) -> None:
    """All messages, in an order of its own, each part read by a run of its own."""
    messages = random_messages(SEED, keys, again)
    for part in cuts(Random(order), messages, parts):
        pair.send(*part)
        pair.process()


def test_no_order_of_delivery_changes_a_verdict(new_pipeline: Callable[..., Pipeline]) -> None:
    pairs = [Pair(new_pipeline()) for _ in range(3)]
    for order, pair in enumerate(pairs):
        delivered(pair, order, keys=60, parts=1 + order % 2)
    first, *others = [pair.verdicts() for pair in pairs]
    assert len({row[1] for row in first.values()}) >= 6
    assert others == [first, first]
    for pair in pairs:
        assert pair.last_told() == pair.statuses()
    assert first == pairs[0].expected()


@pytest.mark.slow
@pytest.mark.parametrize("order", range(20))
def test_no_order_cut_or_restart_changes_a_verdict(
    new_pipeline: Callable[..., Pipeline], order: int
) -> None:
    pair = Pair(new_pipeline())
    delivered(pair, order, keys=300, parts=2 + order % 4)
    assert pair.verdicts() == pair.expected()
    assert pair.last_told() == pair.statuses()


@pytest.mark.slow
@pytest.mark.parametrize("again", [0.1, 0.3])
def test_what_is_said_again_changes_no_verdict(
    new_pipeline: Callable[..., Pipeline], again: float
) -> None:
    once, twice = Pair(new_pipeline()), Pair(new_pipeline())
    delivered(once, 1, keys=200, parts=1)
    delivered(twice, 2, keys=200, parts=4, again=again)
    assert twice.verdicts() == twice.expected()
    assert twice.last_told() == twice.statuses()
    assert without_stale(twice) == without_stale(once)
    repeated = twice.outcomes()["accepted"] - once.outcomes()["accepted"]
    assert repeated > 0


def without_stale(pair: Pair) -> dict[str, tuple[Any, ...]]:
    return {pk: row[:STALE] + row[STALE + 1 :] for pk, row in pair.verdicts().items()}
