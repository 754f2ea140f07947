"""Runs a fault scenario: a stack under load, parts of it away in turn, and a report of what they left behind.

The kernel ends a child process together with the thread that started it. So parts are started, killed and restarted
in the thread that calls `run_scenario`; only the load has a thread of its own.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Generic, TypeVar

import orjson

from headgate.errors import DifferenceError, OperationError
from headgate.local.process import wait_until

LIMIT_SECONDS = 300.0
POLL_SECONDS = 0.2
Say = Callable[[str], None]
# Who noticed an outage (the job, a client ...), and in which words.
Symptoms = Mapping[str, tuple[str, ...]]


class Load(threading.Thread):
    """Sends records in a thread of its own while parts are away; `sent` counts them."""

    def __init__(self) -> None:
        super().__init__(name="load", daemon=True)
        self.sent = 0
        self.error: Exception | None = None
        self.ending = threading.Event()

    def send(self) -> None:
        """Send until all is sent or `ending` is set; a load without this method is idle."""

    def run(self) -> None:
        try:
            self.send()
        except Exception as error:
            self.error = error

    def finish(self) -> None:
        self.ending.set()
        self.join(LIMIT_SECONDS)
        if self.is_alive():
            raise OperationError(f"the load did not end within {LIMIT_SECONDS:.0f} s")


@dataclass(frozen=True)
class PlannedOutage:
    """One part that is taken away, and how it comes back.

    `restore` brings the part back; one under a supervisor comes back alone. `watch` is called then:
    its condition holds once work goes on. `under_way` counts the work that the strike will meet.
    """

    what: str
    strike: Callable[[], object]
    away_seconds: float = 0.0
    symptoms: Callable[[], Symptoms] = dict
    restore: Callable[[], object] = lambda: None
    watch: Callable[[], Callable[[], bool]] | None = None
    under_way: Callable[[], int] = lambda: 1


@dataclass(frozen=True)
class Outage:
    """One part that was away: from the strike until it was back, and from then until work went on.

    `sent` is what the load had sent before the strike, `under_way` the work that the strike met.
    """

    what: str
    sent: int
    under_way: int
    away_seconds: float
    recovered_seconds: float
    symptoms: Symptoms


@dataclass(frozen=True)
class Report(ABC):
    """What a scenario measured and found."""

    @property
    @abstractmethod
    def faults(self) -> tuple[str, ...]:
        """A sentence for everything that is not as it must be."""

    def write(self, file: Path) -> None:
        document = {**asdict(self), "faults": self.faults}
        file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


LoadT = TypeVar("LoadT", bound=Load)
ReportT = TypeVar("ReportT", bound=Report)


@dataclass
class Scenario(ABC, Generic[LoadT, ReportT]):
    """A stack, its load and its outages; `run_scenario` calls the methods in the order they stand here."""

    load: LoadT
    say: Say

    def begin(self) -> None:
        """Start everything that the load needs."""

    def watch_progress(self) -> Callable[[], bool]:
        """A condition that holds once work is done that came after this call."""
        return lambda: True

    @abstractmethod
    def plan_outages(self) -> Iterator[PlannedOutage]:
        """The outages in turn; what is done between two of them is done before the next is yielded."""

    def drain(self) -> None:
        """Wait until everything that was sent is settled."""

    @abstractmethod
    def report(
        self, outages: Sequence[Outage], seconds: float, drained_seconds: float
    ) -> ReportT: ...

    def check(self) -> None:
        """Raise when the scenario cannot go on."""
        if error := self.load.error:
            raise OperationError("the load broke off", why=str(error)) from error

    def wait_for(
        self, condition: Callable[[], bool], what: str, limit: float = LIMIT_SECONDS
    ) -> None:
        """Wait, and raise when the limit has passed or the scenario cannot go on."""

        def checked() -> bool:
            self.check()
            return condition()

        if not wait_until(checked, limit, POLL_SECONDS):
            raise OperationError(f"there was no {what} within {limit:.0f} s")


def run_scenario(scenario: Scenario[LoadT, ReportT], file: Path, fix: str) -> ReportT:
    """Put the stack under load, cause every outage, drain the stack, write the report to its file.

    DifferenceError, with `fix`, when anything is not as it must be.
    """
    begun_at = time.monotonic()
    scenario.begin()
    scenario.load.start()
    scenario.wait_for(scenario.watch_progress(), "progress after the start")
    outages = [_cause_outage(scenario, planned) for planned in scenario.plan_outages()]
    scenario.load.finish()
    scenario.check()
    finished_at = time.monotonic()
    scenario.drain()
    drained_at = time.monotonic()
    seconds, drained = round(drained_at - begun_at, 1), round(drained_at - finished_at, 1)
    report = scenario.report(outages, seconds, drained)
    file.parent.mkdir(parents=True, exist_ok=True)
    report.write(file)
    if report.faults:
        raise DifferenceError("the faults left a trace", why="\n".join(report.faults), fix=fix)
    return report


def _cause_outage(scenario: Scenario[LoadT, ReportT], planned: PlannedOutage) -> Outage:
    """Take one part away, bring it back, and wait until work goes on."""
    scenario.check()
    under_way, sent = planned.under_way(), scenario.load.sent
    scenario.say(f"{planned.what} is struck, {sent:,} records sent so far")
    struck_at = time.monotonic()
    planned.strike()
    time.sleep(planned.away_seconds)
    symptoms = planned.symptoms()
    planned.restore()
    back_at = time.monotonic()
    watch = planned.watch or scenario.watch_progress
    scenario.wait_for(watch(), f"progress after {planned.what} was back")
    away, recovered = round(back_at - struck_at, 1), round(time.monotonic() - back_at, 1)
    if recovered:  # else there was nothing to wait for
        scenario.say(f"{planned.what}: work went on {recovered:g} s after it was back")
    return Outage(planned.what, sent, under_way, away, recovered, symptoms)
