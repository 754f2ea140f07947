"""How many of one kind may be under way at once: what is dear for us must not stop what matters."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from headgate.errors import TooManyError

# A dry run computes in the process of the reconciler; a look at dead letters opens the lake.
DRY_RUNS, LAKE, STREAMS = "dry runs", "looks into the lake", "streams"
MOST: Mapping[str, int] = {DRY_RUNS: 2, LAKE: 4, STREAMS: 64}
KINDS: Mapping[str, str] = {
    "dryRunFilter": DRY_RUNS,
    "dryRunDocument": DRY_RUNS,
    "listDeadLetters": LAKE,
    "groupDeadLetters": LAKE,
    "getDeadLetter": LAKE,
    "planRedrive": LAKE,
    "redriveDeadLetters": LAKE,
}


class Places:
    """Taken and given back; TooManyError when there is none left."""

    def __init__(self, most: Mapping[str, int] = MOST) -> None:
        self._free, self._most, self._lock = dict(most), most, threading.Lock()

    def take(self, kind: str) -> None:
        with self._lock:
            if not self._free[kind]:
                raise TooManyError(
                    f"{self._most[kind]} {kind} are under way", fix="try again in a moment"
                )
            self._free[kind] -= 1

    def give_back(self, kind: str) -> None:
        with self._lock:
            self._free[kind] += 1
