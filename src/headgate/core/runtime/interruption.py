"""Whether a person or a supervisor asked to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress


@contextmanager
def interruption() -> Generator[Callable[[], bool]]:
    """Whether Ctrl-C or a termination came; the second one ends at once."""
    came: list[int] = []

    def note(number: int, _frame: object) -> None:
        came.append(number)
        signal.signal(number, before[number])

    numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)
    before = {int(number): signal.getsignal(number) for number in numbers}
    with suppress(ValueError):  # only the main thread may listen
        for number in numbers:
            signal.signal(number, note)
    try:
        yield lambda: bool(came)
    finally:
        with suppress(ValueError):
            for number in numbers:
                signal.signal(number, before[number])
