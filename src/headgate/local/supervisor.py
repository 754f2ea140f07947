"""The supervisor: a detached process that starts, watches, restarts and stops the services of one home."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from headgate.errors import HeadgateError
from headgate.local.process import Child, alive, release_ports, wait_until
from headgate.local.service import Service
from headgate.local.service_kinds import (
    NEEDS,
    BrokerService,
    EngineService,
    cassandra_service,
    cdc_service,
    connect_service,
    postgres_service,
    registry_service,
)
from headgate.local.state import (
    BROKER,
    CASSANDRA,
    CDC,
    CONNECT,
    ENGINE,
    POSTGRES,
    REGISTRY,
    LocalFiles,
    LocalState,
    Phase,
    Plan,
    ServiceState,
    now,
    write_record,
)

TICK_SECONDS = 0.1
LOCK_SECONDS = 2.0
GIVE_UP_AFTER = 3
STEADY_SECONDS = 60.0
BACK_OFF = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
# Also the order they start in; they stop the other way round.
KINDS: dict[str, Callable[[LocalFiles, Plan], Service]] = {
    BROKER: BrokerService,
    CASSANDRA: cassandra_service,
    POSTGRES: postgres_service,
    REGISTRY: registry_service,
    ENGINE: EngineService,
    CONNECT: connect_service,
    CDC: cdc_service,
}


def note(words: str) -> None:
    """A line of the supervisor's log; a full disk must not take the services down."""
    with contextlib.suppress(OSError):
        print(f"{now().isoformat(timespec='milliseconds')} {words}", flush=True)


class Watched:
    """One service under watch."""

    def __init__(self, name: str, files: LocalFiles, plan: Plan) -> None:
        self.name, self._files, self._plan = name, files, plan
        self._service: Service | None = None
        self._child: Child | None = None
        self._deaths = 0
        self._was_ready = False
        self._next_start = 0.0
        self.state = ServiceState(service=name, state=Phase.STARTING, since=now())

    @property
    def endpoints(self) -> dict[str, str]:
        """Where it listens; a broker that restarts comes back on the same port."""
        return dict(self._service.endpoints()) if self._service else {}

    def tick(self, may_start: bool = True) -> None:
        """Look once, and do the next thing that is due; not a start while what it needs is away."""
        if self.state.state == Phase.FAILED:
            return
        if self._child is None:
            if may_start and time.monotonic() >= self._next_start:
                self._start()
        elif self._child.exit_code is not None:
            self._bury(self._child)
        elif self.state.state != Phase.READY and self._service and self._service.ready(self._child):
            self._was_ready = True
            self._change(Phase.READY, address=self._service.address, what="", why="", fix="")
        elif self._deaths and time.monotonic() - self._child.started > STEADY_SECONDS:
            self._deaths = 0

    def _start(self) -> None:
        try:
            self._service = self._service or KINDS[self.name](self._files, self._plan)
            self._child = Child(self._service.command())
        except (HeadgateError, OSError) as error:
            self._refuse(error)
        else:
            self._change(self.state.state, pid=self._child.pid, address=self._service.address)

    def _refuse(self, error: HeadgateError | OSError) -> None:
        """What ran before is tried again, for a full disk may be emptied; else a person decides."""
        words = {"what": f"the {self.name} cannot be started", "why": str(error), "fix": ""}
        if isinstance(error, HeadgateError):
            words = {"what": error.what, "why": error.why, "fix": error.fix}
        if not self._was_ready:
            self._change(Phase.FAILED, **words)
            return
        self._next_start = time.monotonic() + BACK_OFF[-1]
        self._change(Phase.RESTARTING, **words)

    def _bury(self, child: Child) -> None:
        assert self._service is not None
        ended, self._child = self._service.explain(child), None
        self._deaths += 1
        what = f"the {self.name} ended"
        gone = {"pid": None, "what": what, "why": ended.why, "fix": ended.fix}
        hopeless = not ended.retry or self._deaths >= GIVE_UP_AFTER
        if ended.needs_another_port and not self._was_ready and self._deaths < GIVE_UP_AFTER:
            # Nobody knows its address yet. One that was ready keeps its port instead, and waits for
            # it: what reads from it would go on talking to whoever listens there now.
            self._forget_service()
        elif hopeless and not self._was_ready:
            self._change(Phase.FAILED, **gone)
            return
        self._next_start = time.monotonic() + BACK_OFF[min(self._deaths, len(BACK_OFF)) - 1]
        self._change(Phase.RESTARTING, restarts=self.state.restarts + 1, **gone)

    def retry(self, plan: Plan) -> None:
        """A person asks again for what had failed."""
        if self.state.state == Phase.FAILED:
            self._plan = plan
            self._forget_service()
            self._child, self._deaths = None, 0
            self._change(Phase.STARTING, what="", why="", fix="")

    def _forget_service(self) -> None:
        """The next start makes another one, which chooses its ports anew."""
        self._service = None
        release_ports(self.name)

    def stop(self) -> None:
        if self._service and self._child and self._child.exit_code is None:
            self._service.stop(self._child)
        release_ports(self.name)
        self._change(Phase.STOPPED, pid=None)

    def _change(self, phase: Phase, **changes: object) -> None:
        fields = {**dict(self.state), **changes, "state": phase}
        if phase != self.state.state:
            fields["since"] = now()
            note(f"{self.name}: {phase} {fields['why']}")
        self.state = ServiceState.model_validate(fields)


class Supervisor:
    """Runs what the plan file asks for until it is told to stop."""

    def __init__(self, files: LocalFiles) -> None:
        self._files = files
        self._watched: dict[str, Watched] = {}
        self._started_at = now()
        self._asked_at: datetime | None = None
        self._written: LocalState | None = None
        self._endpoints: dict[str, str] | None = None
        self._stopping = False

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)
        self._outlive_predecessor()
        try:
            while not self._stopping:
                self._follow_plan()
                for watched in self._watched.values():
                    watched.tick(self._may_start(watched.name))
                    self._publish()  # the engine reads where the broker listens
                time.sleep(TICK_SECONDS)
        finally:
            self._stop_all()

    def _may_start(self, name: str) -> bool:
        needed = (self._watched.get(n) for n in NEEDS.get(name, ()))
        return all(other.state.state == Phase.READY for other in needed if other)

    def _ask_to_stop(self, number: int, frame: object) -> None:
        self._stopping = True

    def _outlive_predecessor(self) -> None:
        """Children of a supervisor that was killed die with it; wait until their ports are free."""
        before = self._files.read_state()
        pids = [s.pid for s in before.services if s.pid] if before else []
        wait_until(lambda: not any(alive(pid) for pid in pids), 5.0)

    def _follow_plan(self) -> None:
        plan = self._files.read_plan()
        if plan is None or plan.asked_at == self._asked_at:
            return
        self._asked_at = plan.asked_at
        for name in KINDS:
            if name in self._watched:
                self._watched[name].retry(plan)
            elif name in plan.services:
                self._watched[name] = Watched(name, self._files, plan)

    def _publish(self) -> None:
        """Write what changed; endpoints first, since `up` waits for the state."""
        endpoints = {k: v for w in self._watched.values() for k, v in w.endpoints.items()}
        state = self._state()
        try:
            if endpoints != self._endpoints:
                self._files.write_endpoints(endpoints)
                self._endpoints = endpoints
            if state != self._written:
                write_record(self._files.state, state)
                self._written = state
        except OSError as error:
            note(f"the state could not be written: {error}")

    def _state(self) -> LocalState:
        return LocalState(
            pid=os.getpid(),
            started_at=self._started_at,
            asked_at=self._asked_at or self._started_at,
            services=tuple(w.state for w in self._watched.values()),
        )

    def _stop_all(self) -> None:
        """The broker last: what reads from it cannot stop cleanly without it."""
        for name in reversed(KINDS):
            if name in self._watched:
                self._watched[name].stop()
        self._files.remove_traces()


def main() -> int:
    """Run as `python -m headgate.local.supervisor HOME`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    files = LocalFiles(parser.parse_args().home)
    end = time.monotonic() + LOCK_SECONDS
    while True:
        with files.supervising() as alone:
            if alone:
                Supervisor(files).run()
                return 0
        if time.monotonic() > end:
            note("another supervisor runs here")
            return 0
        time.sleep(TICK_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
