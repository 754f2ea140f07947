"""Work beside the work: a thread that is told when to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

STOP_SECONDS = 30.0


@contextmanager
def in_background(
    work: Callable[[threading.Event], None], name: str, seconds: float = STOP_SECONDS
) -> Generator[None]:
    """Have it done meanwhile; at the end it is told to stop and waited for, at most so long."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(seconds)
