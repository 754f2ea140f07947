"""What the supervisor and the tests know of a service: how it is started, asked and stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from headgate.errors import UnavailableError
from headgate.local.process import Child, Command, wait_until

READY_SECONDS = 90.0
PORT_IN_USE = "its port is in use"


@dataclass(frozen=True)
class Ended:
    """Why a child is gone, and whether starting it again may help."""

    why: str
    fix: str
    retry: bool

    @property
    def needs_another_port(self) -> bool:
        return self.why == PORT_IN_USE


class Service(Protocol):
    """One kind of child."""

    name: str
    address: str | None

    def command(self) -> Command: ...

    def ready(self, child: Child) -> bool: ...

    def explain(self, child: Child) -> Ended: ...

    def endpoints(self) -> Mapping[str, str]: ...

    def stop(self, child: Child) -> None: ...


Kind = TypeVar("Kind", bound=Service)


class Running(Generic[Kind]):
    """A service without a supervisor: started on entry, stopped on exit, killed at will between."""

    def __init__(self, service: Kind, limit: float = READY_SECONDS) -> None:
        self.service = service
        self._limit = limit
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def start(self) -> Self:
        """Start it and wait until it answers; an error says why it did not."""
        child = Child(self.service.command())
        wait_until(lambda: self.service.ready(child) or child.exit_code is not None, self._limit)
        self._child = child
        if child.exit_code is not None:
            ended = self.service.explain(child)
            raise UnavailableError(f"{self.service.name} ended", why=ended.why, fix=ended.fix)
        if not self.service.ready(child):
            child.kill()
            raise UnavailableError(
                f"{self.service.name} is not ready after {self._limit:.0f} s",
                why=f"its log is {child.command.log}",
            )
        return self

    def kill(self) -> None:
        """What `kill -9` does."""
        if self._child:
            self._child.kill()

    def stop(self) -> None:
        if self._child and self._child.exit_code is None:
            self.service.stop(self._child)

    def restart(self) -> Self:
        """Start it again on the same ports and data."""
        self.stop()
        return self.start()

    def __enter__(self) -> Self:
        return self if self._child else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
