"""A broker and other services that a test session starts on free ports."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.runtime.ports import any_port
from headgate.errors import UnavailableError
from headgate.local import kafka
from headgate.local.process import Child, wait_until
from headgate.local.service import Running, Service

# Each waits only until its service answers; beside other tests a JVM may take minutes to start.
READY_SECONDS = 240
# Between the choice of a port and the start of a server on it somebody else may take it.
TRIES, PORT_TAKEN = 3, "its port is in use"
Kind = TypeVar("Kind", bound=Service)


@dataclass
class RunningBroker:
    """A broker of this test session; tests may kill it and start it again."""

    broker: kafka.Broker
    runtime: kafka.Runtime
    child: Child
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    @property
    def topics(self) -> Topics:
        return Topics(self.bootstrap)

    def new_topic(self, partitions: int = 1, prefix: str = "topic") -> str:
        """Create a topic whose name no other test of the session has."""
        name = f"{prefix}-{next(self._numbers)}"
        self.topics.create([TopicSpec(name, partitions, retention_days=1)])
        return name

    def kill(self) -> None:
        """End the process as `kill -9` does."""
        self.child.kill()

    def restart(self) -> None:
        """Start the broker again on the same ports and data, and wait until it answers."""
        self.child = _start_or_fail(self.broker, self.runtime)

    def stop(self) -> None:
        kafka.stop(self.broker, self.runtime, self.child)


def _start_process(broker: kafka.Broker, runtime: kafka.Runtime) -> tuple[Child, str]:
    """Start the broker's process: the process once it answers, and why it ended if it did."""
    child = Child(kafka.command(broker, runtime))
    if not wait_until(lambda: kafka.ready(broker) or child.exit_code is not None, READY_SECONDS):
        child.kill()
    if child.exit_code is None:
        return child, ""
    why, _ = kafka.why_it_ended(broker.log, child.exit_code, child.log_from)
    return child, why


def _start_or_fail(broker: kafka.Broker, runtime: kafka.Runtime) -> Child:
    child, why = _start_process(broker, runtime)
    assert not why, f"the broker did not start: {why}"
    return child


def start_broker(home: Path, tries: int = TRIES) -> RunningBroker:
    """Start a broker with its data below `home`, on other ports when one was taken meanwhile."""
    port = any_port()
    place = kafka.Broker(home / "kafka", port, any_port([port]), home / "logs" / "broker.log")
    runtime = kafka.kafka_runtime()
    kafka.prepare(place, runtime)
    child, why = _start_process(place, runtime)
    if why == PORT_TAKEN and tries > 1:
        return start_broker(home, tries - 1)
    assert not why, f"the broker did not start: {why}"
    return RunningBroker(place, runtime, child)


def start_service(make: Callable[[], Kind], tries: int = TRIES) -> Running[Kind]:
    """Start the service that `make` returns; each call of `make` chooses other ports."""
    try:
        return Running(make(), READY_SECONDS).start()
    except UnavailableError as error:
        if error.why != PORT_TAKEN or tries == 1:
            raise
    return start_service(make, tries - 1)


def start_session_service(make: Callable[[], Kind]) -> Iterator[Running[Kind]]:
    """Yield a service for all tests of a session, then kill it.

    Nobody reads its data again, and a clean stop takes a JVM up to half a minute.
    """
    running = start_service(make)
    yield running
    running.kill()
