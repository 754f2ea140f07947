"""Posts events while engine, API, Connect, PostgreSQL and Kafka are killed in turn, and accounts for each event.

Every consumer must have had the effect of each of its events exactly once.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.faults.rig import require_success
from bench.faults.scenario import Load, Outage, PlannedOutage, Report, Say, Scenario, run_scenario
from headgate.config.settings import Settings, load_settings
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.ops_store import OpsStore
from headgate.demo.filters.events import Drawn, ToApi, draw, send
from headgate.demo.filters.proof import FilterProof, event_id, records, routed_records
from headgate.demo.filters.stage import DEALERS, SOURCE, Stage, expected, filter_of, own_environment
from headgate.demo.own_home import KNOBS, emptied, replaced, stopped_on_failure
from headgate.errors import OperationError
from headgate.local.stack import down, up
from headgate.local.state import LocalFiles, Phase

API = "api"
# By what a person calls them, the service that is killed.
FAULTS: Mapping[str, str] = {
    "engine": "engine",
    "api": API,
    "connect": "connect",
    "postgres": "postgres",
    "kafka": "broker",
}
PATIENCE_SECONDS = 240.0
UP_SECONDS = 240.0
EXTRA = ("postgres", "connect")
# What is free is taken: the scenario may run beside other services.
PORTS = ("KAFKA_PORT", "CONNECT_PORT", "SPARK_UI_PORT", "METRICS_PORT", "KAFKA_CONNECT_PORT")


@dataclass(frozen=True)
class EventPace:
    """How many events are posted a second, and how long nothing is broken between two kills."""

    rate: float = 50.0
    calm: float = 10.0


SMALL = EventPace(rate=20.0, calm=3.0)


@dataclass(frozen=True)
class ServiceKill:
    """One kill: who, and how long until new events reached a consumer again."""

    what: str
    posted: int
    seconds: float


@dataclass(frozen=True)
class FilterFaultReport(Report):
    """What was posted, what was broken, and what every place counts in the end."""

    events: int
    retries: int
    seconds: float
    drained_seconds: float
    struck: tuple[ServiceKill, ...]
    on_source: int
    source_repeats: int
    outcomes: Mapping[str, int]
    proofs: tuple[FilterProof, ...]
    wrong: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        return (*self.wrong, *(fault for proof in self.proofs for fault in proof.faults))


class EventLoad(Load):
    """Posts events until told to end; none is given up, whoever is away."""

    def __init__(self, stage: Stage, rate: float) -> None:
        super().__init__()
        self.events: list[Drawn] = []
        self.retries = 0
        self._stage, self._rate = stage, rate

    def send(self) -> None:
        target = ToApi(self._stage.people["shop"].http)
        size = max(1, round(self._rate / 5))
        events = draw(10_000_000, 11, "load")
        while not self.ending.is_set():
            begun = time.monotonic()
            part = [next(events) for _ in range(size)]
            # Noted first: what was sent and not answered counts too.
            self.events += part
            self.sent = len(self.events)
            self.retries += send(target, part, 0, PATIENCE_SECONDS, lambda _: None).retries
            time.sleep(max(0.0, size / self._rate - (time.monotonic() - begun)))


@dataclass
class FilterScenario(Scenario[EventLoad, FilterFaultReport]):
    """Kills on a stage whose filters are live; a supervisor starts everything again but the API."""

    stage: Stage
    bootstrap: str
    calm: float
    faults: Sequence[str]

    def watch_progress(self) -> Callable[[], bool]:
        """An event that is posted from now on reaches its dealer's consumer."""
        posted = self.load.sent

        def has_arrived() -> bool:
            fresh = expected(self.load.events[posted:])
            self.stage.expected = fresh
            lacking = self.stage.lacking()
            return any(len(fresh[dealer]) > lacking[dealer] for dealer in DEALERS)

        return has_arrived

    def plan_outages(self) -> Iterator[PlannedOutage]:
        for fault in self.faults:
            time.sleep(self.calm)
            yield self._plan_kill(fault, FAULTS[fault])
        time.sleep(self.calm)

    def _plan_kill(self, fault: str, service: str) -> PlannedOutage:
        if service == API:
            api = self.stage.api
            assert api is not None
            return PlannedOutage(fault, api.kill, restore=self.stage.start_api)
        pid = self._ready_pid(service)
        if pid is None:
            raise OperationError(f"{service} does not run")

        def wait_for_successor() -> None:
            old = (None, pid)
            self.wait_for(lambda: self._ready_pid(service) not in old, f"new {service}")

        return PlannedOutage(
            fault, lambda: os.kill(pid, signal.SIGKILL), restore=wait_for_successor
        )

    def _ready_pid(self, service: str) -> int | None:
        """The process that the supervisor runs as this service, once it is ready."""
        state = LocalFiles(self.stage.home).read_state()
        found = state.service(service) if state else None
        return found.pid if found and found.state == Phase.READY else None

    def drain(self) -> None:
        self.stage.expected = expected(self.load.events)
        self.stage.posted = self.load.sent
        self.stage.arrived(lambda line: self.say(line.strip()), PATIENCE_SECONDS)
        # Repeats stand behind the last event: they are judged too.
        self.wait_for(
            lambda: self.stage.judged() >= Topics(self.bootstrap).found(SOURCE).span,
            "verdict at the end of the router's topic",
        )

    def report(
        self, outages: Sequence[Outage], seconds: float, drained_seconds: float
    ) -> FilterFaultReport:
        on_source = records(self.bootstrap, SOURCE)
        times = Counter(event_id(record) for record in on_source)
        outcomes = routed_records(self.stage.store, SOURCE)
        return FilterFaultReport(
            events=self.load.sent,
            retries=self.load.retries,
            seconds=seconds,
            drained_seconds=drained_seconds,
            struck=tuple(
                ServiceKill(o.what, o.sent, round(o.away_seconds + o.recovered_seconds, 1))
                for o in outages
            ),
            on_source=len(on_source),
            source_repeats=len(on_source) - len(times),
            outcomes=outcomes,
            proofs=self.stage.prove(self.bootstrap, times),
            wrong=tuple(self._find_wrong(len(times), len(on_source), sum(outcomes.values()))),
        )

    def _find_wrong(self, ids: int, on_source: int, judged: int) -> Iterator[str]:
        posted = self.load.sent
        if ids != posted:
            yield f"{posted:,} events were posted, {ids:,} are on {SOURCE}"
        if judged != on_source:
            yield f"{on_source:,} records are on {SOURCE}, the ledger has {judged:,}"
        for dealer in DEALERS:
            record = self.stage.people["ana"].filter(filter_of(dealer))
            if record["status"] != "deployed":
                yield f"{filter_of(dealer)} is {record['status']}, and was deployed"


def run_filter_faults(
    settings: Settings,
    folder: Path,
    pace: EventPace | None = None,
    faults: Sequence[str] = tuple(FAULTS),
    say: Say = lambda text: None,
) -> FilterFaultReport:
    """Run the scenario and write filter_faults.json; DifferenceError when anything is not as it must be."""
    home, pace = settings.home.absolute() / "filter-faults", pace or EventPace()
    emptied(home)
    knobs = {name: os.environ[name] for name in KNOBS if name in os.environ}
    environ = own_environment(home, {**dict.fromkeys(PORTS, "0"), **knobs})
    with replaced(environ), stopped_on_failure(home):
        up(load_settings(settings.root), extra=EXTRA, timeout=UP_SECONDS, tell=say)
        running = load_settings(settings.root)
        with (
            OpsStore.open(running.ops_store_url) as store,
            Stage(settings.root, home, store, environ) as stage,
        ):
            set_up(stage, say)
            load, bootstrap = EventLoad(stage, pace.rate), running.need("bootstrap_servers")
            scenario = FilterScenario(load, say, stage, bootstrap, pace.calm, faults)
            report = run_scenario(scenario, folder / "filter_faults.json", f"read {home}/logs")
        down(home)
    return report


def set_up(stage: Stage, say: Say) -> None:
    """Filters live, consumers listening, nothing posted yet."""
    require_success(stage.child("connect-deploy", "connect", "deploy", "events"))
    require_success(stage.child("job-start", "job", "start", f"router-{SOURCE}"))
    stage.serve()
    stage.create(lambda text: None)
    for dealer in stage.documents:
        stage.approve(filter_of(dealer))
        stage.order(filter_of(dealer), "deploy")
    stage.consume()
    say("three filters are live, and their consumers listen")
