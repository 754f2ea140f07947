"""Limits concurrent expensive operations, in total and by caller, and wrong keys by address and minute."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping

from headgate.errors import TooManyError

# A dry run computes in the process of the reconciler; a look at dead letters opens the lake; drift
# starts git; a document's check computes, for a second at worst.
DRY_RUNS, LAKE, STREAMS = "dry runs", "looks into the lake", "streams"
CHECKS, GIT = "checks of documents", "comparisons with git"
MOST: Mapping[str, int] = {DRY_RUNS: 2, LAKE: 4, STREAMS: 64, CHECKS: 4, GIT: 2}
# One caller must not have all of what others wait for.
MOST_OF_A_CALLER: Mapping[str, int] = {STREAMS: 8}
MOST_WRONG_KEYS, WRONG_KEY_SECONDS, MOST_PEERS = 20, 60.0, 1_000
_LOG = logging.getLogger("headgate.api")
KINDS: Mapping[str, str] = {
    "dryRunFilter": DRY_RUNS,
    "dryRunDocument": DRY_RUNS,
    "validateDocument": CHECKS,
    "validateFilter": CHECKS,
    "listDrift": GIT,
    "mendDrift": GIT,
    "listDeadLetters": LAKE,
    "groupDeadLetters": LAKE,
    "getDeadLetter": LAKE,
    "planRedrive": LAKE,
    "redriveDeadLetters": LAKE,
}


class WrongKeys:
    """Counts wrong keys by the address they come from, for one minute each and for few addresses.

    A key that holds is taken all the same: a proxy in front is one address for all its callers.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def note(self, peer: str) -> None:
        """Count one; TooManyError once an address sent too many within the minute."""
        now = self._clock()
        with self._lock:
            begun, count = self._seen.pop(peer, (now, 0))
            if now - begun >= WRONG_KEY_SECONDS:
                begun, count = now, 0
            self._seen[peer] = (begun, count + 1)
            if len(self._seen) > MOST_PEERS:
                self._seen.popitem(last=False)
        if count == MOST_WRONG_KEYS:
            # Once a minute, not for each of them: the log must not be filled from outside.
            _LOG.warning("%s sent more than %d wrong keys within a minute", peer, MOST_WRONG_KEYS)
        if count >= MOST_WRONG_KEYS:
            raise TooManyError(
                "too many keys that do not hold came from this address",
                fix="wait a minute, then send a key that holds",
            )


class Places:
    """Taken and given back; TooManyError when there is none left, for anybody or for this caller."""

    def __init__(self, most: Mapping[str, int] = MOST) -> None:
        self._most, self._lock = most, threading.Lock()
        self._taken: Counter[str] = Counter()
        self._taken_by: Counter[tuple[str, str]] = Counter()

    def take(self, kind: str, caller: str) -> None:
        most_of_caller = MOST_OF_A_CALLER.get(kind, self._most[kind])
        with self._lock:
            if self._taken[kind] >= self._most[kind]:
                raise TooManyError(
                    f"{self._most[kind]} {kind} are under way", fix="try again in a moment"
                )
            if self._taken_by[kind, caller] >= most_of_caller:
                raise TooManyError(
                    f"{most_of_caller} {kind} of {caller} are under way", fix="close one of them"
                )
            self._taken[kind] += 1
            self._taken_by[kind, caller] += 1

    def give_back(self, kind: str, caller: str) -> None:
        with self._lock:
            self._taken[kind] -= 1
            self._taken_by[kind, caller] -= 1
            if not self._taken_by[kind, caller]:
                del self._taken_by[kind, caller]
