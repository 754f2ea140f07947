"""The engine's lease: one engine is active, a second stands by or hands its work over."""

from __future__ import annotations

import threading
from typing import Self

from headgate.core.engine.holder import is_dead, this_engine
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Lease
from headgate.errors import LeaseLostError

NAME = "engine"
SECONDS = 15.0


def active_engine(store: OpsStore) -> str | None:
    """The engine that holds the lease now; a dead one's lease is released."""
    held = store.lease(NAME)
    if held is not None and is_dead(held.holder):
        store.release(held)
        return None
    return held.holder if held else None


class EngineLease:
    """Holds the lease and keeps renewing it until it is closed or lost."""

    def __init__(self, store: OpsStore, lease: Lease) -> None:
        self._store = store
        self._lease = lease
        self._closed = threading.Event()
        self.lost = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    @classmethod
    def take(cls, store: OpsStore) -> Self | None:
        """The lease, or None while another engine is active."""
        active_engine(store)
        lease = store.acquire(NAME, this_engine(), SECONDS)
        return cls(store, lease) if lease else None

    @property
    def holder(self) -> str:
        return self._lease.holder

    def check(self) -> None:
        """Raise when this engine is no longer the active one."""
        if self.lost.is_set():
            raise self._lost_to("another engine")
        held = self._store.lease(NAME)
        if held is None:
            # It ran out, as after a suspended machine; it is still ours unless someone took it.
            self._lease = self._store.renew(self._lease, SECONDS)
        elif held.token != self._lease.token:
            self.lost.set()
            raise self._lost_to(held.holder)

    def _lost_to(self, holder: str) -> LeaseLostError:
        return LeaseLostError(
            "this engine is no longer the active one",
            why=f"the lease is held by {holder}",
            fix="the active engine carries on; this one stops",
        )

    def _renew(self) -> None:
        while not self._closed.wait(SECONDS / 4):
            try:
                self._lease = self._store.renew(self._lease, SECONDS)
            except LeaseLostError:
                self.lost.set()
                return
            except Exception:  # a busy store is tried again before the lease ends
                continue

    def close(self) -> None:
        self._closed.set()
        self._thread.join(timeout=5)
        if not self.lost.is_set():
            self._store.release(self._lease)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
