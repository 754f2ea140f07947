"""The memory of a process and all its descendants, as the kernel counts it (Linux only)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PROC = Path("/proc")
LOOK_SECONDS = 0.25
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class Process:
    """What the kernel says of one process."""

    pid: int
    parent: int
    resident: int


class PeakMemory:
    """Looks a few times a second until it is left; `peak` is the greatest sum of resident bytes."""

    def __init__(self, pid: int | None = None) -> None:
        self._pid = os.getpid() if pid is None else pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self.peak: int | None = None

    def __enter__(self) -> Self:
        if PROC.is_dir():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(LOOK_SECONDS):
            self.peak = max(self.peak or 0, resident(self._pid, processes()))


def resident(pid: int, found: Mapping[int, Process]) -> int:
    """Bytes of the process and everything below it."""
    return sum(found[p].resident for p in family(pid, found.values()) if p in found)


def family(pid: int, found: Iterable[Process]) -> frozenset[int]:
    """The process and its descendants."""
    children: dict[int, list[int]] = {}
    for process in found:
        children.setdefault(process.parent, []).append(process.pid)
    members, waiting = {pid}, [pid]
    while waiting:
        new = [child for child in children.get(waiting.pop(), ()) if child not in members]
        members.update(new)
        waiting.extend(new)
    return frozenset(members)


def processes() -> dict[int, Process]:
    """Every process that can be read now; those that end meanwhile are left out."""
    if not PROC.is_dir():
        return {}
    read = (_process(int(entry.name)) for entry in PROC.iterdir() if entry.name.isdigit())
    return {process.pid: process for process in read if process is not None}


def _process(pid: int) -> Process | None:
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return Process(pid, parent=int(fields[1]), resident=int(fields[21]) * PAGE)
    except (OSError, IndexError, ValueError):
        return None
