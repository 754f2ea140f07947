"""A line of progress for each part of a longer piece of work."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from headgate.terminal.cli_console import Progress, console


class Parts:
    """Begins a new line with each part, and ends the one before."""

    def __init__(self) -> None:
        self._parts = ExitStack()
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def begin(self, words: str, total: int | None) -> None:
        self._parts.close()
        self._progress = self._parts.enter_context(console.progress(words, total))

    def advance(self, rows: int) -> None:
        if self._progress:
            self._progress.advance(rows)
