from __future__ import annotations

import pytest
from tests.support.clock import ManualClock

from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import LeaseLostError


def test_one_holder_at_a_time(store: OpsStore, clock: ManualClock) -> None:
    first = store.acquire("engine", "a", 10)
    assert first is not None
    assert first.token == 1
    assert store.acquire("engine", "b", 10) is None
    assert store.lease("engine") == first
    assert store.acquire("engine", "a", 20) is not None


def test_a_new_holder_gets_a_higher_token_and_the_old_one_is_told(
    store: OpsStore, clock: ManualClock
) -> None:
    old = store.acquire("engine", "a", 10)
    assert old is not None
    clock.advance(11)
    assert store.lease("engine") is None
    new = store.acquire("engine", "b", 10)
    assert new is not None
    assert new.token == 2
    with pytest.raises(LeaseLostError):
        store.renew(old, 10)
    store.release(old)
    assert store.lease("engine") == new


def test_renewing_keeps_the_token(store: OpsStore, clock: ManualClock) -> None:
    lease = store.acquire("engine", "a", 10)
    assert lease is not None
    clock.advance(5)
    renewed = store.renew(lease, 10)
    assert (renewed.token, renewed.expires_at > lease.expires_at) == (1, True)


def test_a_released_lease_is_free_at_once_and_its_token_still_rises(store: OpsStore) -> None:
    lease = store.acquire("engine", "a", 10)
    assert lease is not None
    store.release(lease)
    assert store.lease("engine") is None
    again = store.acquire("engine", "a", 10)
    assert again is not None
    assert again.token == 2
