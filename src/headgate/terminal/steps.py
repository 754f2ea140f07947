"""Runs the steps of a long command and shows one line for each: live on a terminal, else every five seconds.

What a step and its children print goes to a log file of the step; when a step fails, the end of its log is shown.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from headgate.errors import OperationError
from headgate.terminal.console import console

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
LIVE_SECONDS, LINE_SECONDS = 0.1, 5.0
TAIL_LINES = 15
LAST_BYTES = 1_000
# A first batch compiles a lot; windows close 30 s after the last record.
PATIENCE, POLL_SECONDS = 240.0, 1.0


@dataclass(frozen=True)
class StepReport:
    """One step that was taken: how long it took and what came of it."""

    name: str
    seconds: float
    words: str
    holds: bool = True


class StepLog(io.TextIOBase):
    """Where the words of a step and of its children go."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        self.file = file
        self._stream = file.open("a", encoding="utf-8")

    def write(self, text: str) -> int:
        self._stream.write(text)
        self._stream.flush()
        return len(text)

    @property
    def newest(self) -> str:
        """The last line that anyone wrote."""
        with self.file.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - LAST_BYTES))
            lines = stream.read().decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        self._stream.close()
        super().close()


class Step:
    """A step under way; `words` is what its line says at the end.

    A step that found a difference sets `holds` to False: the command goes on, and its line has a ✗.
    """

    def __init__(self, name: str, log: StepLog) -> None:
        self.name, self.log, self.words = name, log, ""
        self.holds = True
        self._begun = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun


def wait_for(
    done: Callable[[], bool], words: Callable[[], str], step: Step, patience: float = PATIENCE
) -> None:
    """Look again and again, and say how far it is."""
    end = time.monotonic() + patience
    while not done():
        if time.monotonic() > end:
            raise OperationError(
                f"nothing moves: {words()[-300:]}",
                why=f"waited {patience:.0f} s",
                fix="headgate job list, and the engine's log, say what holds it up",
            )
        step.log.write(f"{words()[-200:]}\n")
        time.sleep(POLL_SECONDS)


def took(seconds: float, fetching: float, peak_mib: int | None = None) -> str:
    """How long it all was, and how much memory it had at most."""
    fetched = f", fetching jars not counted ({fetching:.0f} s)" if fetching >= 1 else ""
    peak = f", {peak_mib / 1024:.1f} GiB of memory at most" if peak_mib else ""
    return f"{seconds:.0f} s{fetched}{peak}"


class Steps:
    """Takes steps one after the other and shows them on stderr."""

    def __init__(self, logs: Path, prefix: str, width: int) -> None:
        self._logs, self._prefix, self._width = logs, prefix, width
        self._stream: TextIO = sys.stderr
        self._live = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._colour = console.colour
        self.taken: list[StepReport] = []

    @contextlib.contextmanager
    def step(self, name: str) -> Generator[Step]:
        """Everything said inside goes to the step's log; on failure its end is shown."""
        log = StepLog(self._logs / f"{self._prefix}-{name.replace(' ', '-')}.log")
        step = Step(name, log)
        try:
            with log, self._watched(step), _said_to(log):
                yield step
        except BaseException:
            self._say(self._line(step, "✗", "red", log.file))
            self._say_tail(log.file)
            raise
        self.taken.append(StepReport(name, round(step.seconds, 2), step.words, step.holds))
        mark, colour = ("✓", "green") if step.holds else ("✗", "red")
        self._say(self._line(step, mark, colour, step.words))

    @contextlib.contextmanager
    def _watched(self, step: Step) -> Generator[None]:
        done = threading.Event()
        thread = threading.Thread(target=self._watch, args=(step, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _watch(self, step: Step, done: threading.Event) -> None:
        number = 0
        while not done.wait(LIVE_SECONDS if self._live else LINE_SECONDS):
            number += 1
            mark = FRAMES[number % len(FRAMES)] if self._live else "…"
            line = self._line(step, mark, "cyan", step.log.newest)
            if self._live:
                self._stream.write("\r\x1b[2K" + line)
                self._stream.flush()
            else:
                self._say(line)

    def _line(self, step: Step, mark: str, colour: str, words: object) -> str:
        head = f" {step.name:<{self._width}} {step.seconds:5.1f} s  "
        room = shutil.get_terminal_size().columns - len(head) - 4 if self._live else 200
        told = str(words)
        told = told if len(told) <= room else told[: room - 1] + "…"
        return "  " + self._styled(mark, colour) + (head + told).rstrip()

    def _say(self, line: str) -> None:
        clear = "\r\x1b[2K" if self._live else ""
        self._stream.write(f"{clear}{line}\n")
        self._stream.flush()

    def _say_tail(self, log: Path) -> None:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines[-TAIL_LINES:]:
            self._say("      " + self._styled(line, "bright_black"))

    def _styled(self, words: str, colour: str) -> str:
        return click.style(words, fg=colour) if self._colour else words


@contextlib.contextmanager
def _said_to(log: StepLog) -> Generator[None]:
    with contextlib.redirect_stderr(log), contextlib.redirect_stdout(log):
        yield
