"""Posts events while engine, API, Connect, PostgreSQL and Kafka are killed in turn, and accounts for each event.

Every consumer must have had the effect of each of its events exactly once.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from bench.faults.rig import ended
from headgate.config.settings import Settings, load_settings
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.ops_store import OpsStore
from headgate.demo.filters.events import Drawn, ToApi, draw, send
from headgate.demo.filters.proof import FilterProof, event_id, records, routed_records
from headgate.demo.filters.stage import DEALERS, SOURCE, Stage, expected, filter_of, own_environment
from headgate.errors import DifferenceError, OperationError
from headgate.local.process import alive, wait_until
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
RECOVER_SECONDS, DRAIN_SECONDS, PATIENCE_SECONDS = 180.0, 240.0, 240.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """How many events are posted a second, and how long nothing is broken between two kills."""

    rate: float = 50.0
    calm: float = 10.0


@dataclass(frozen=True)
class Struck:
    """One kill: who, and how long until new events reached a consumer again."""

    what: str
    posted: int
    seconds: float


@dataclass(frozen=True)
class FilterFaultReport:
    """What was posted, what was broken, and what every place counts in the end."""

    events: int
    retries: int
    seconds: float
    drained_seconds: float
    struck: tuple[Struck, ...]
    on_source: int
    source_repeats: int
    outcomes: Mapping[str, int]
    proofs: tuple[FilterProof, ...]
    wrong: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        return (*self.wrong, *(fault for proof in self.proofs for fault in proof.faults))


@dataclass
class Poster(threading.Thread):
    """Posts events without an end; none is given up, whoever is away."""

    stage: Stage
    rate: float
    sent: list[Drawn] = field(default_factory=list[Drawn])
    retries: int = 0
    error: Exception | None = None

    def __post_init__(self) -> None:
        super().__init__(name="events", daemon=True)
        self._over = threading.Event()

    __hash__ = threading.Thread.__hash__

    def finish(self, limit: float) -> None:
        self._over.set()
        self.join(limit)

    def run(self) -> None:
        target = ToApi(self.stage.people["shop"].http)
        size = max(1, round(self.rate / 5))
        try:
            events = draw(10_000_000, 11, "load")
            while not self._over.is_set():
                begun = time.monotonic()
                part = [next(events) for _ in range(size)]
                # Noted first: what was sent and not answered counts too.
                self.sent += part
                done = send(target, part, 0, PATIENCE_SECONDS, lambda _: None)
                self.retries += done.retries
                time.sleep(max(0.0, size / self.rate - (time.monotonic() - begun)))
        except Exception as error:
            self.error = error


class Play:
    """Performs on a stage whose filters are live."""

    def __init__(self, stage: Stage, bootstrap: str, size: Size, say: Say) -> None:
        self._stage, self._bootstrap, self._size, self._say = stage, bootstrap, size, say
        self._files = LocalFiles(stage.home)
        self._poster = Poster(stage, size.rate)

    def perform(self, faults: Sequence[str]) -> FilterFaultReport:
        begun = time.monotonic()
        self._poster.start()
        self._flowing("the first events", RECOVER_SECONDS)
        struck = [self._struck(fault) for fault in faults]
        time.sleep(self._size.calm)
        self._poster.finish(PATIENCE_SECONDS)
        self._refuse_dead_poster()
        drained = self._drained()
        return self._report(tuple(struck), time.monotonic() - begun, drained)

    def _struck(self, fault: str) -> Struck:
        time.sleep(self._size.calm)
        self._refuse_dead_poster()
        posted, begun = len(self._poster.sent), time.monotonic()
        self._say(f"kill -9 {fault}, {posted:,} events so far")
        self._kill(FAULTS[fault])
        self._flowing(f"events after {fault} was killed", RECOVER_SECONDS)
        took = round(time.monotonic() - begun, 1)
        self._say(f"{fault}: new events arrive again after {took:g} s")
        return Struck(fault, posted, took)

    def _kill(self, service: str) -> None:
        if service == API:
            assert self._stage.api is not None
            self._stage.api.kill()
            self._stage.start_api()
            return
        pid = self._pid(service)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not alive(pid), 10.0)
        back = wait_until(lambda: self._is_back(service, pid), RECOVER_SECONDS, 0.2)
        if not back:
            raise OperationError(f"{service} did not come back", fix=f"{self._stage.home}/logs")

    def _pid(self, service: str) -> int:
        state = self._files.read_state()
        found = state.service(service) if state else None
        if found is None or found.pid is None:
            raise OperationError(f"{service} does not run")
        return found.pid

    def _is_back(self, service: str, before: int) -> bool:
        state = self._files.read_state()
        found = state.service(service) if state else None
        return found is not None and found.state == Phase.READY and found.pid not in (None, before)

    def _flowing(self, what: str, limit: float) -> None:
        """An event that is posted from now on reaches its dealer's consumer."""
        since = len(self._poster.sent)

        def arrived() -> bool:
            self._refuse_dead_poster()
            fresh = expected(list(self._poster.sent[since:]))
            self._stage.expected = fresh
            lacking = self._stage.lacking()
            return any(len(fresh[d]) > lacking[d] for d in DEALERS)

        if not wait_until(arrived, limit, 0.3):
            raise OperationError(f"no sign of {what}", why=f"waited {limit:.0f} s")

    def _drained(self) -> float:
        begun = time.monotonic()
        self._stage.expected = expected(self._poster.sent)
        self._stage.posted = len(self._poster.sent)
        self._stage.arrived(lambda words: self._say(words.strip()), DRAIN_SECONDS)
        self._wait_for_ends()
        return round(time.monotonic() - begun, 1)

    def _wait_for_ends(self) -> None:
        """Repeats stand behind the last event: they are judged too."""

        def judged() -> bool:
            state = Topics(self._bootstrap).found(SOURCE)
            return self._stage.judged() >= state.span

        if not wait_until(judged, DRAIN_SECONDS, 0.5):
            raise OperationError("the router does not reach the end of its topic")

    def _refuse_dead_poster(self) -> None:
        if self._poster.error is not None:
            raise self._poster.error

    def _report(
        self, struck: tuple[Struck, ...], seconds: float, drained: float
    ) -> FilterFaultReport:
        on_source = records(self._bootstrap, SOURCE)
        times = Counter(event_id(record) for record in on_source)
        outcomes = routed_records(self._stage.store, SOURCE)
        return FilterFaultReport(
            events=len(self._poster.sent),
            retries=self._poster.retries,
            seconds=round(seconds, 1),
            drained_seconds=drained,
            struck=struck,
            on_source=len(on_source),
            source_repeats=len(on_source) - len(times),
            outcomes=outcomes,
            proofs=self._stage.prove(self._bootstrap, times),
            wrong=tuple(self._wrong(len(times), len(on_source), sum(outcomes.values()))),
        )

    def _wrong(self, ids: int, on_source: int, judged: int) -> list[str]:
        posted = len(self._poster.sent)
        told = [f"{posted:,} events were posted, {ids:,} are on {SOURCE}"] if ids != posted else []
        if judged != on_source:
            told.append(f"{on_source:,} records are on {SOURCE}, the ledger has {judged:,}")
        for dealer in DEALERS:
            record = self._stage.people["ana"].filter(filter_of(dealer))
            if record["status"] != "deployed":
                told.append(f"{filter_of(dealer)} is {record['status']}, and was deployed")
        return told


SMALL = Size(rate=20.0, calm=3.0)
UP_SECONDS = 240.0
EXTRA = ("postgres", "connect")
KNOBS = ("SPARK_MASTER", "SPARK_DRIVER_MEMORY", "SPARK_JAVA_OPTIONS")
# What is free is taken: the play may run beside other services.
PORTS = ("KAFKA_PORT", "CONNECT_PORT", "SPARK_UI_PORT", "METRICS_PORT", "KAFKA_CONNECT_PORT")


def run_filter_faults(
    settings: Settings,
    folder: Path,
    size: Size | None = None,
    faults: Sequence[str] = tuple(FAULTS),
    say: Say = lambda words: None,
) -> FilterFaultReport:
    """The whole play; DifferenceError when anything is not as it must be."""
    home = settings.home.absolute() / "filter-faults"
    down(home)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    with (
        _stoppable(),
        _own(home) as environ,
        _services(settings.root, say) as running,
        OpsStore.open(running.ops_store_url) as store,
        Stage(settings.root, home, store, environ) as stage,
    ):
        set_up(stage, say)
        play = Play(stage, running.need("bootstrap_servers"), size or Size(), say)
        report = play.perform(faults)
    write_report(folder, report)
    if report.faults:
        raise DifferenceError(
            "the kills left a trace", why="\n".join(report.faults), fix=f"read {home}/logs"
        )
    return report


def set_up(stage: Stage, say: Say) -> None:
    """Filters live, consumers listening, nothing posted yet."""
    commanded(stage, "connect", "deploy", "events")
    commanded(stage, "job", "start", f"router-{SOURCE}")
    stage.serve()
    stage.create(lambda words: None)
    for dealer in stage.documents:
        stage.approve(filter_of(dealer))
        stage.order(filter_of(dealer), "deploy")
    stage.consume()
    say("three filters are live, and their consumers listen")


def commanded(stage: Stage, *words: str) -> None:
    """A command of ours, to its end; it must succeed."""
    done = ended(stage.child("-".join(words[:2]), *words))
    if done.exit_code:
        told = "\n".join(done.log.strip().splitlines()[-8:])
        raise OperationError(f"headgate {' '.join(words)} ended with {done.exit_code}", why=told)


@contextmanager
def _stoppable() -> Generator[None]:
    """A termination ends the play as Ctrl-C does: nothing is left running."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _own(home: Path) -> Generator[dict[str, str]]:
    """This process and its children see a home of their own, whatever profile is chosen here."""
    knobs = {name: os.environ[name] for name in KNOBS if name in os.environ}
    environ = own_environment(home, {**dict.fromkeys(PORTS, "0"), **knobs})
    before = dict(os.environ)
    _replace(environ)
    try:
        yield environ
    finally:
        _replace(before)


def _replace(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)


@contextmanager
def _services(root: Path, say: Say) -> Generator[Settings]:
    """Kafka, PostgreSQL, Connect and the engine under their supervisor; gone afterwards."""
    settings = load_settings(root)
    try:
        up(settings, extra=EXTRA, timeout=UP_SECONDS, tell=say)
        yield load_settings(root)
    finally:
        down(settings.home)


def write_report(folder: Path, report: FilterFaultReport) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = {**asdict(report), "faults": report.faults}
    file = folder / "filter_faults.json"
    file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
