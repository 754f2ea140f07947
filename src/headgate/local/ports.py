"""Ports that a stack has reserved, so that two stacks that start at once never choose the same one.

A free port is only free at the moment it is looked at; a broker binds it seconds later. So a stack
locks a file per port, in one folder per user, before it starts the service, and keeps the lock as long
as the stack runs, also while the service restarts. The kernel lets go of it when the process ends,
however it ends.

The lock is between the stacks of one user. Against other programs a service is known by its own
identity: it is ready only when what answers on its port is itself.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from headgate.errors import UnavailableError
from headgate.local.process import choose_port, port_is_free


@dataclass(frozen=True)
class Reservation:
    """A locked port and the service of this process that it is for."""

    service: str
    lock: IO[str]


# What this process has reserved, by port.
_reserved: dict[int, Reservation] = {}


def reserve_port(service: str, wanted: int, name: str, *, exact: bool = False) -> int:
    """Lock the wanted port when it is free, else the next free one; 0 takes any.

    `name` is the setting that an error names. With `exact` no other port is taken.
    """
    locked_elsewhere: set[int] = set()
    while True:
        unavailable = locked_elsewhere | _reserved.keys()
        port = choose_port(wanted, name, taken=unavailable, exact=exact)
        lock = _lock_port(port)
        if lock is None:
            locked_elsewhere.add(port)
        elif port_is_free(port):  # it may have been bound between the look and the lock
            _reserved[port] = Reservation(service, lock)
            return port
        else:
            lock.close()


def release_ports(service: str) -> None:
    """Let go of every port that was reserved for a service."""
    for port in [p for p, held in _reserved.items() if held.service == service]:
        _reserved.pop(port).lock.close()


def _lock_port(port: int) -> IO[str] | None:
    """The lock of a port; None while another stack of this user has it."""
    handle = (lock_folder() / f"{port}.lock").open("a")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        return None
    return handle


def lock_folder() -> Path:
    """The one folder of this user, wherever the project, HOME or TMPDIR are."""
    user = os.geteuid()
    runtime = Path(f"/run/user/{user}")
    usable = runtime.is_dir() and os.access(runtime, os.W_OK)
    folder = runtime / "headgate-ports" if usable else Path(f"/tmp/headgate-ports-{user}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        owner = folder.lstat().st_uid
    except OSError as error:
        raise _unusable(folder, str(error.strerror)) from error
    if owner != user or folder.is_symlink():
        raise _unusable(folder, "it belongs to somebody else")
    return folder


def _unusable(folder: Path, why: str) -> UnavailableError:
    return UnavailableError(
        "ports cannot be reserved", why=f"{folder}: {why}", fix="remove it, then try again"
    )
