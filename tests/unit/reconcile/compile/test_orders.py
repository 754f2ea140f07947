"""X3 on the pure function: no order of delivery, no cut, no restart and no duplicate changes a verdict.

The play is that of the engine: batches read further on both topics, each window's state of the batch
is kept, a restart begins with empty memory, and what was kept is merged and judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from tests.support.reconcile_messages import START, Message, random_messages

from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.decision_table import Verdict, judge
from headgate.reconcile.state import State, merge, merge_all

pytestmark = pytest.mark.heavy

LIMITS = Limits()
KEYS = 25
END = START + timedelta(days=1)
Kept = dict[str, list[State]]


def window_of(message: Message, horizon: timedelta) -> datetime:
    return START + (message.read_at - START) // horizon * horizon


def play(random: Random, messages: Sequence[Message], horizon: timedelta) -> Kept:
    """What is kept of each key after some batches, some restarts and some batches done twice."""
    memory: dict[tuple[str, datetime], State] = {}
    kept: Kept = {}
    waiting = list(messages)
    while waiting:
        size = random.randint(1, max(1, len(waiting) // 3))
        batch, waiting = waiting[:size], waiting[size:]
        if random.random() < 0.2:
            memory.clear()  # the checkpoint is lost
        for _ in range(random.choice((1, 1, 2))):  # killed before it was done, and done again
            touched: set[tuple[str, datetime]] = set()
            for message in batch:
                place = message.pk, window_of(message, horizon)
                known = memory.get(place)
                memory[place] = merge(known, message.state) if known else message.state
                touched.add(place)
            for place in touched:
                kept.setdefault(place[0], []).append(memory[place])
    return kept


def verdicts(kept: Kept, random: Random | None = None) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    for pk, states in kept.items():
        shuffled = random.sample(states, len(states)) if random else states
        found[pk] = judge(merge_all(shuffled), END, LIMITS)
    return found


def redelivered(random: Random, messages: Sequence[Message]) -> list[Message]:
    """In another order, and up to 30 % of them twice; each keeps its offset and its time."""
    again = random.sample(messages, int(len(messages) * random.uniform(0, 0.3)))
    return random.sample([*messages, *again], len(messages) + len(again))


def resent(random: Random, messages: Sequence[Message]) -> list[Message]:
    """Up to 30 % of them sent again, later and at offsets of their own."""
    last = len(messages)
    chosen = random.sample(messages, int(last * random.uniform(0, 0.3)))
    later = [
        replace(
            message,
            offset=last + at,
            read_at=message.read_at + timedelta(minutes=random.randint(1, 300)),
        )
        for at, message in enumerate(chosen)
        if not message.tombstone
    ]
    return random.sample([*messages, *later], last + len(later))


def agree(seed: int, orders: int) -> int:
    """How many orders were tried; each ends with the same verdicts."""
    random = Random(seed)
    messages = random_messages(random, KEYS)
    expected = verdicts({m.pk: [n.state for n in messages if n.pk == m.pk] for m in messages})
    for _ in range(orders):
        horizon = timedelta(minutes=random.choice((15, 60, 120)))
        kept = play(random, redelivered(random, messages), horizon)
        assert verdicts(kept, random) == expected
    return orders


def test_no_order_cut_restart_or_duplicate_changes_a_verdict() -> None:
    assert sum(agree(seed, 20) for seed in range(10)) == 200


@pytest.mark.slow
def test_no_order_cut_restart_or_duplicate_changes_a_verdict_whatever_is_drawn() -> None:
    assert sum(agree(seed, 20) for seed in range(100, 160)) == 1_200


def test_what_is_sent_again_neither_delays_nor_changes_a_verdict() -> None:
    """Of versions that came with two hashes the newest offset decides: those are left out."""
    random = Random(3)
    for _ in range(100):
        one_hash = {(m.side, m.pk, m.version): m for m in random_messages(random, KEYS)}
        messages = list(one_hash.values())
        expected = verdicts(play(random, messages, LIMITS.horizon))
        again = verdicts(play(random, resent(random, messages), LIMITS.horizon))
        assert {pk: replace(v, stale=False) for pk, v in again.items()} == {
            pk: replace(v, stale=False) for pk, v in expected.items()
        }


def test_one_side_alone_is_never_settled_by_its_batch() -> None:
    random = Random(5)
    for message in random_messages(random, 300):
        assert not judge(message.state, END, LIMITS, whole=False).settled
        assert judge(message.state, END, LIMITS).settled
