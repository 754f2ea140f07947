"""Who holds the engine's lease: named so that a dead holder on this machine is known at once."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path


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
