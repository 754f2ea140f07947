"""What the server does by itself, beside answering."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from headgate.errors import HeadgateError

_LOG = logging.getLogger("headgate.api")


class Repeated:
    """A step that is taken again and again in a thread of its own; what fails is tried again."""

    def __init__(self, name: str, seconds: float, step: Callable[[], object]) -> None:
        self.name, self._seconds, self._step = name, seconds, step
        self._stop, self._trouble = threading.Event(), ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, seconds: float = 10.0) -> None:
        """End after the step that is being taken."""
        self._stop.set()
        self._thread.join(seconds)

    def trouble(self) -> str:
        """Why the last step failed; empty when it did not."""
        return self._trouble

    def _run(self) -> None:
        while not self._stop.is_set():
            self._take()
            self._stop.wait(self._seconds)

    def _take(self) -> None:
        try:
            self._step()
            if self._trouble:
                _LOG.warning("%s: works again", self.name)
            self._trouble = ""
        except HeadgateError as error:
            self._note(error.one_line)
        except Exception as error:
            # One fault of ours must not end what has to go on; the trace is for the log.
            if self._note(f"{type(error).__name__}: {error}"):
                _LOG.error("%s failed", self.name, exc_info=error)

    def _note(self, words: str) -> bool:
        """Said once, not twice a second; whether it is new."""
        new = words != self._trouble
        if new:
            _LOG.warning("%s: %s", self.name, words)
        self._trouble = words
        return new
