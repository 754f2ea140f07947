"""Files of a home's local services: plan, state, endpoints, the engine's own record, and the lock of the supervisor."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headgate.config.env_files import (
    PRIVATE_FOLDER,
    SUPERVISOR_LOCK,
    read_running,
    write_atomically,
)

BROKER = "broker"
ENGINE = "engine"
CASSANDRA = "cassandra"
POSTGRES = "postgres"
REGISTRY = "registry"
CONNECT = "connect"
CDC = "cdc"
SUPERVISOR = "supervisor"


class Phase(StrEnum):
    """Where a service stands."""

    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    STOPPED = "stopped"


class Record(BaseModel):
    """A frozen record that travels through a file."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ServiceState(Record):
    """One service as the supervisor last saw it; the words say why it is not ready."""

    service: str
    state: Phase
    address: str | None = None
    pid: int | None = None
    restarts: int = 0
    since: datetime | None = None
    what: str = ""
    why: str = ""
    fix: str = ""


class LocalState(Record):
    """Everything the supervisor runs."""

    pid: int
    started_at: datetime
    asked_at: datetime
    services: tuple[ServiceState, ...]

    def service(self, name: str) -> ServiceState | None:
        return next((s for s in self.services if s.service == name), None)


class Plan(Record):
    """What `local up` asks the supervisor to run; a newer `asked_at` retries what failed."""

    root: Path
    services: tuple[str, ...]
    kafka_port: int
    exact_port: bool
    asked_at: datetime
    bootstrap: str | None = None
    cassandra_port: int = 0
    exact_cassandra_port: bool = False
    connect_port: int = 0
    registry_port: int = 0
    postgres_port: int = 0
    exact_postgres_port: bool = False
    # The engine's ports by the settings that name them; an engine without any chooses its own.
    engine_ports: dict[str, int] = Field(default_factory=dict[str, int])


class EngineFile(Record):
    """What the engine writes about itself once it is up."""

    pid: int
    connect_port: int
    ui_port: int | None = None
    metrics_port: int | None = None
    state: str
    connect_token: str | None = None


Content = TypeVar("Content", bound=Record)


class LocalFiles:
    """The files of one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.state = home / "local.json"
        self.plan = home / "local.plan.json"
        self.lock = home / SUPERVISOR_LOCK
        self.endpoints = home / "endpoints.env"
        self.engine = home / "engine.json"

    def log(self, service: str) -> Path:
        return self.home / "logs" / f"{service}.log"

    def read_state(self) -> LocalState | None:
        return _read(self.state, LocalState)

    def read_plan(self) -> Plan | None:
        return _read(self.plan, Plan)

    def read_engine(self) -> EngineFile | None:
        return _read(self.engine, EngineFile)

    def read_endpoints(self) -> dict[str, str]:
        """Where what runs listens."""
        return {name: e.value for name, e in read_running(self.endpoints).entries.items()}

    def write_endpoints(self, endpoints: Mapping[str, str]) -> None:
        lines = ["# Written by the running local services; removed when they stop."]
        lines += [f"{name}={value}" for name, value in endpoints.items()]
        write_atomically(self.endpoints, ("\n".join(lines) + "\n").encode())

    def remove_traces(self) -> None:
        """What says that services run, once none does."""
        for path in (self.endpoints, self.engine, self.state, self.plan):
            path.unlink(missing_ok=True)

    def supervisor_pid(self) -> int | None:
        """The supervisor that holds the lock; None when none runs."""
        if not self.lock.is_file():
            return None
        with self.lock.open("r") as handle:
            # Shared, so that two that only look do not take each other for a supervisor.
            if _locked(handle, fcntl.LOCK_SH):
                return None
            return int(handle.read().strip() or 0) or None

    @contextmanager
    def supervising(self) -> Generator[bool]:
        """Hold the lock for the supervisor's life; False when another one holds it."""
        self.home.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        with self.lock.open("a+") as handle:
            if not _locked(handle, fcntl.LOCK_EX):
                yield False
                return
            handle.truncate(0)
            handle.write(f"{os.getpid()}\n")
            handle.flush()
            yield True

    @contextmanager
    def asking(self) -> Generator[None]:
        """One `up` or `down` at a time decides what runs."""
        self.home.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        with (self.home / "local.ask.lock").open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def write_record(path: Path, record: Record) -> None:
    write_atomically(path, record.model_dump_json(indent=2).encode() + b"\n")


def now() -> datetime:
    return datetime.now(UTC)


def _read(path: Path, kind: type[Content]) -> Content | None:
    """A record, None when it is not there or was cut short."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _locked(handle: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
