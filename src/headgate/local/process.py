"""Child processes, ports and memory: a child logs to a file and never outlives its parent; a port is reserved by a lock.

A free port is only free at the moment it is looked at; a broker binds it seconds later. So a stack locks a file
per port, in one folder per user, before it starts the service, and keeps the lock as long as the stack runs. The
kernel releases it when the process ends, however it ends. The lock is between the stacks of one user; against
other programs a service is known by its own identity.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from headgate.core.runtime.ports import LOOPBACK, choose_port, port_is_free
from headgate.errors import UnavailableError

LOG_LIMIT = 20_000_000
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Command:
    """What to start and where its words go."""

    argv: tuple[str, ...]
    log: Path
    cwd: Path
    env: Mapping[str, str] | None = None


class Child:
    """A running child. Start it from the main thread: the kernel ties its life to that thread."""

    def __init__(self, command: Command) -> None:
        command.log.parent.mkdir(parents=True, exist_ok=True)
        _rotate(command.log)
        with command.log.open("ab") as log:
            self.log_from = log.tell()
            self._process = subprocess.Popen(
                command.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=command.cwd,
                env=command.env,
                process_group=0,
                preexec_fn=die_with_parent(),
            )
        self.command = command
        self.started = time.monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; asking reaps it and ends what it left behind in its group."""
        before = self._process.returncode
        code = self._process.poll()
        if code is not None and before is None:
            self._signal_group(signal.SIGKILL)
        return code

    def stop(self, limit: float) -> bool:
        """SIGTERM, then SIGKILL after `limit` seconds; True when it went by itself."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGTERM)
        if wait_until(lambda: self.exit_code is not None, limit):
            return True
        self.kill()
        return False

    def kill(self) -> None:
        """End it and its group at once, and reap it."""
        self._signal_group(signal.SIGKILL)
        self._process.wait()

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return


def die_with_parent() -> Callable[[], None] | None:
    """Asks the kernel to kill the child when this process dies, however it dies (Linux only)."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def ask() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we could ask
            os._exit(1)

    return ask


def _rotate(log: Path) -> None:
    if log.is_file() and log.stat().st_size > LOG_LIMIT:
        log.replace(log.with_name(log.name + ".1"))


def read_log(log: Path, since: int = 0, limit: int = 20_000) -> str:
    """The end of a log, but nothing from before `since`."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(since, log.stat().st_size - limit))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def wait_until(true: Callable[[], bool], limit: float, pause: float = 0.05) -> bool:
    """Poll until it holds or the limit has passed; whether it held."""
    end = time.monotonic() + limit
    while not true():
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
    return True


def alive(pid: int) -> bool:
    """Whether a process with this id runs (a zombie does not)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return not Path("/proc/self").exists()
    return stat.rpartition(")")[2].split()[0] != "Z"


def runs_ours(pid: int) -> bool:
    """Whether a process with this id runs and is one of our commands: ids are used again."""
    try:
        return b"headgate" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return not Path("/proc/self").exists() and alive(pid)


def port_answers(port: int, limit: float = 1.0) -> bool:
    """Whether something listens on this port of the loopback address."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=limit):
            return True
    except OSError:
        return False


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
