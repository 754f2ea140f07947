"""No order of delivery, no cut of batches and no restart changes a verdict, and nothing said twice does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, zip_longest
from random import Random
from typing import Any

import pytest
from tests.support.pipeline import Pipeline
from tests.support.reconcile_job import (
    LANES,
    Pair,
    random_messages,
    split_messages,
    without_duplicates,
)

SEED = 20_260
KEYS = 300  # of each order
STALE, ID = 8, 10  # among the columns of a verdict
# A run costs the same seconds whatever it reads, so orders share runs: five for each number of runs.
TOGETHER = {2: range(1, 6), 3: range(6, 11), 4: range(11, 16), 5: range(16, 21)}
# With only two runs, each of them is cut into batches as well: so many records in each.
FEW = {2: 1_400}
# The shares of messages that are said again, and the order in which each comes.
AGAIN = {0.0: 21, 0.1: 22, 0.3: 23}

Told = dict[str, tuple[Any, ...]]


def shared_pair(
    new_pipeline: Callable[..., Pipeline], groups: int, most: int | None = None
) -> Pair:
    """A pair with partitions for so many groups of messages."""
    pipeline = new_pipeline(partitions=LANES * groups)
    if most is not None:
        few = {"max_offsets_per_batch": most}
        pipeline.settings = pipeline.settings.model_copy(update=few)
    return Pair(pipeline, LANES * groups)


def deliver(
    pair: Pair, orders: Sequence[int], keys: int, parts: int, again: Sequence[float] = ()
) -> int:
    """The same messages in each order, every part of them read by a run of its own; how many they are.

    An order has keys, partitions and cuts of its own, so each record has one offset in all of them.
    Order 0 is not cut: the first run reads all of it.
    """
    shares = again or [0.0] * len(orders)
    groups = [random_messages(SEED, keys, share, group) for group, share in enumerate(shares)]
    mixed = [
        split_messages(Random(order), group, parts if order else 1)
        for order, group in zip(orders, groups, strict=True)
    ]
    for part in zip_longest(*mixed, fillvalue=[]):
        pair.send(*chain.from_iterable(part))
        pair.process()
    return sum(map(len, groups))


def by_group(verdicts: Mapping[str, tuple[Any, ...]], *without: int) -> list[Told]:
    """The verdicts of each group, its keys under the names that they have in any other.

    The first column is the key, and the id is made of it.
    """
    found: defaultdict[str, Told] = defaultdict(dict)
    for pk, row in verdicts.items():
        group, _, key = pk.partition("-")
        found[group][key] = tuple(v for n, v in enumerate(row) if n not in (0, ID, *without))
    return [found[group] for group in sorted(found)]


def test_no_order_of_delivery_and_no_repetition_changes_a_verdict(
    new_pipeline: Callable[..., Pipeline],
) -> None:
    pair = shared_pair(new_pipeline, 4)
    sent = deliver(pair, [0, 1, 2, 3], keys=60, parts=2, again=[0.0, 0.0, 0.0, 0.1])
    verdicts = pair.verdicts()
    assert verdicts == pair.expected()
    uncut, *others = by_group(verdicts)
    assert len({row[0] for row in uncut.values()}) >= 6
    assert others[:2] == [uncut, uncut]
    # Said again, an old version may be the newest offset.
    uncut, *_, repeated = by_group(verdicts, STALE)
    assert repeated == uncut
    assert sent > 4 * len(random_messages(SEED, 60))
    assert pair.last_published() == {pk: row[1] for pk, row in verdicts.items()}


@pytest.mark.slow
@pytest.mark.parametrize("runs", TOGETHER)
def test_no_order_cut_or_restart_changes_a_verdict(
    new_pipeline: Callable[..., Pipeline], runs: int
) -> None:
    orders = TOGETHER[runs]
    pair = shared_pair(new_pipeline, len(orders), FEW.get(runs))
    sent = deliver(pair, orders, KEYS, runs)
    verdicts = pair.verdicts()
    assert verdicts == pair.expected()
    assert pair.last_published() == pair.statuses()
    assert len({row[1] for row in verdicts.values()}) >= 8
    first, *others = by_group(verdicts)
    assert len(others) == len(orders) - 1
    assert all(other == first for other in others)
    assert sum(pair.outcomes().values()) == sent
    batches = len(pair.pipeline.ledger("reconcile"))
    assert batches >= 2 * runs if runs in FEW else batches == runs


@pytest.mark.slow
def test_what_is_said_again_changes_no_verdict(new_pipeline: Callable[..., Pipeline]) -> None:
    pair = shared_pair(new_pipeline, len(AGAIN))
    sent = deliver(pair, [*AGAIN.values()], KEYS, 4, [*AGAIN])
    verdicts = pair.verdicts()
    assert verdicts == pair.expected()
    assert pair.last_published() == pair.statuses()
    once, *twice = by_group(verdicts, STALE)
    assert twice == [once, once]
    assert sum(pair.outcomes().values()) == sent
    repeated = sent - len(AGAIN) * without_duplicates(random_messages(SEED, KEYS))
    assert 0 < pair.counters()["duplicates"] <= repeated
