"""The engine's lease: one engine is active, a second stands by or hands its work over.

A holder is named by host, pid and start time, so that a dead one on this machine is known at once.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from pathlib import Path
from typing import Self

from headgate.core.ledger.model import Lease
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import LeaseLostError


def this_engine() -> str:
    """A name for this process: host, pid, start time, and something that no other process has."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_started(pid)}/{uuid.uuid4().hex[:8]}"


def is_process(holder: str, pid: int) -> bool:
    """Whether the holder is the process of this machine that has this id."""
    return holder.split("/")[:2] == [socket.gethostname(), str(pid)]


def is_dead(holder: str) -> bool:
    """Whether the holder is a process of this machine that is gone; False when it cannot be known."""
    parts = holder.split("/")
    if len(parts) != 4 or parts[0] != socket.gethostname() or not parts[1].isdigit():
        return False
    return _started(int(parts[1])) != parts[2]


def _started(pid: int) -> str:
    """The process's start time in clock ticks; empty when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    state, *rest = text.rsplit(")", 1)[-1].split()
    # A killed process that nobody has waited for yet is as good as gone.
    return "" if state == "Z" else rest[18]


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
