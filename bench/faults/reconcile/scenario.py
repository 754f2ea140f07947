"""Reconciles while Cassandra, Connect, Kafka and the engine are away in turn: outages, symptoms, recovery, report.

Nothing may be lost, every outage must be reported by a part that meets it, and all must recover by themselves.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.faults.reconcile.keys import (
    KeyComparison,
    KeyLoad,
    compare_keys,
    count_changes,
    make_table,
    read_verdicts,
)
from bench.faults.reconcile.rig import (
    JOB,
    TABLE,
    TOPICS_BY_PREFIX,
    PairRig,
    Times,
    open_pair_rig,
)
from bench.faults.rig import count_unread, run_command, start_command, wait_for_end
from bench.faults.scenario import (
    Outage,
    PlannedOutage,
    Report,
    Say,
    Scenario,
    Symptoms,
    run_scenario,
)
from headgate.config.settings import Settings
from headgate.core.kafka.connect_rest import ConnectRest
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics import names
from headgate.errors import HeadgateError, OperationError
from headgate.hashing.contract import load_contract
from headgate.hashing.python import row_hash
from headgate.local.health import health
from headgate.local.process import read_log

SYNCED_SECONDS = 3.0
CASSANDRA, CONNECT, KAFKA, ENGINE = "cassandra", "connect", "kafka", "engine"
# By what goes away, who must notice it.
WITNESSES = {
    CASSANDRA: ("hasher", "connect"),
    CONNECT: ("connect",),
    KAFKA: ("job", "hasher", "client"),
    ENGINE: ("local",),
}
FAULTS = tuple(WITNESSES)
CONTRACT = "contracts/business_table.hash.yml"
POLLED = "headgate_connect_cassandrapoll_rows_total"
HOLDS = "it holds"
MAX_LINES = 6
# The hasher's own progress is no symptom.
PROGRESS = "hashed"
WARNING = re.compile(" WARN | ERROR ")


@dataclass(frozen=True)
class PairPace:
    """How much is planted how fast, for how long something is away, and how long sides wait."""

    keys: int = 60
    every: float = 1.0
    cassandra_away: float = 60.0
    away: float = 5.0
    calm: float = 10.0
    times: Times = field(default_factory=lambda: Times(window=30, grace=10))


SMALL = PairPace(keys=100, cassandra_away=6.0, away=3.0, calm=3.0, times=Times(window=12, grace=4))


@dataclass(frozen=True)
class ReportedOutage:
    """One outage: how long it was, who told of it and how, and how long until work went on."""

    what: str
    away_seconds: float
    told: Symptoms
    recovered_seconds: float


@dataclass(frozen=True)
class PairFaultReport(Report):
    """What was done, what was said meanwhile, and what was found in the end."""

    keys: int
    events: int
    seconds: float
    drained_seconds: float
    restarts: int
    struck: tuple[ReportedOutage, ...]
    compared: KeyComparison
    certificate: str

    @property
    def faults(self) -> tuple[str, ...]:
        silent = [s.what for s in self.struck if not any(s.told.values())]
        sums = self.compared
        uneven = () if sums.planted == sums.found else (f"{sums.planted} became {sums.found}",)
        proof = () if self.certificate == HOLDS else (f"the certificate: {self.certificate}",)
        return (
            *(f"nobody told that {what} was away" for what in silent),
            *(*sums.wrong[:10], *uneven, *proof),
        )


class SymptomLog:
    """What the parts of a stack report of an outage, from the moment this is made."""

    def __init__(self, rig: PairRig, store: OpsStore) -> None:
        self._rig, self._store = rig, store
        self._hasher_log = _size_of(rig.hasher.command.log) if rig.hasher else 0
        self._connect_log = _size_of(rig.connect.service.log) if rig.connect else 0

    def read(self, witnesses: Sequence[str]) -> Symptoms:
        readers = {
            "hasher": self._read_hasher,
            "connect": self._read_connect,
            "job": self._read_job,
            "client": self._ask_broker,
            "local": self._read_health,
        }
        return {name: readers[name]() for name in witnesses}

    def _read_hasher(self) -> tuple[str, ...]:
        """What the hasher logs, and its gauge."""
        assert self._rig.hasher is not None
        text = read_log(self._rig.hasher.command.log, self._hasher_log)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        gauge = ("metrics: paused",) if is_paused(self._rig) else ()
        return (*_shorten([line for line in lines if PROGRESS not in line]), *gauge)

    def _read_connect(self) -> tuple[str, ...]:
        """States of connectors, and warnings that the worker logged."""
        if self._rig.connect is None:
            return ()
        rest = ConnectRest(self._rig.home.need("kafka_connect_url"), 5.0)
        try:
            states = [f"{s.name} {s.state}: {s.why}".strip(": ") for s in rest.states()]
        except HeadgateError as error:
            return (error.one_line,)
        log = self._rig.connect.service.log.read_bytes()[self._connect_log :]
        lines = log.decode(errors="replace").splitlines()
        return (*states, *_shorten([line for line in lines if WARNING.search(line)]))

    def _read_job(self) -> tuple[str, ...]:
        """What `headgate job list` says of the job."""
        run = self._store.latest(JOB)
        words = run.error_text or run.error_code if run else None
        return (f"{run.state}: {words}",) if run and words else ()

    def _ask_broker(self) -> tuple[str, ...]:
        """What any command says that needs the broker."""
        try:
            Topics(self._rig.home.need("bootstrap_servers"), timeout=3.0).need()
        except HeadgateError as error:
            return (error.one_line,)
        return ()

    def _read_health(self) -> tuple[str, ...]:
        """What `headgate local health` says."""
        return tuple(f"{h.service}: {h.words}" for h in health(self._rig.home) if not h.healthy)


def _size_of(log: Path) -> int:
    return log.stat().st_size if log.is_file() else 0


def _shorten(lines: Sequence[str]) -> list[str]:
    """The first few different lines, cut to a readable length."""
    return [line[:300] for line in dict.fromkeys(lines)][:MAX_LINES]


def is_paused(rig: PairRig) -> bool:
    return rig.read_hasher_metrics().get(names.HASHER_PAUSED.name, 1.0) > 0


def count_readings(rig: PairRig) -> float:
    """Readings that the hasher has sent."""
    return rig.read_hasher_metrics().get(names.HASHER_READINGS.name, 0.0)


@dataclass
class PairScenario(Scenario[KeyLoad, PairFaultReport]):
    """Keys planted on both sides while one part after the other is away."""

    rig: PairRig
    store: OpsStore
    pace: PairPace
    faults: Sequence[str]

    def begin(self) -> None:
        home = self.rig.home
        make_table(home)
        run_command(home, "topics", "create", "--table", TABLE)
        self.rig.engine.start()
        run_command(home, "job", "start", JOB)
        if self.rig.connect:
            run_command(home, "connect", "deploy", TABLE)
        self.rig.start_hasher(self.pace.times.settled_after / 2)

    def watch_progress(self) -> Callable[[], bool]:
        known = len(self.store.ledger(JOB))
        return lambda: len(self.store.ledger(JOB)) > known

    def plan_outages(self) -> Iterator[PlannedOutage]:
        self.say("everything runs, and the first batch is settled")
        self.load.at_full_pace = True
        for fault in self.faults:
            time.sleep(self.pace.calm)
            if fault == CASSANDRA:
                self._stock()
            yield self._plan_outage(fault, SymptomLog(self.rig, self.store))
        time.sleep(self.pace.calm)

    def _stock(self) -> None:
        """Events go on while no row can be read: the rows of those are there beforehand."""
        self.load.stock(int(self.pace.cassandra_away / self.pace.every) + 2)
        # A killed Cassandra forgets what its commit log has not synced: those rows would truly be missing.
        time.sleep(SYNCED_SECONDS)

    def _plan_outage(self, fault: str, log: SymptomLog) -> PlannedOutage:
        rig, pace = self.rig, self.pace
        symptoms = partial(log.read, WITNESSES[fault])
        if fault == ENGINE:
            return PlannedOutage(
                fault, rig.engine.kill, pace.away, symptoms, watch=self._start_engine
            )
        part, watch = {
            CASSANDRA: (rig.cassandra, self._watch_hasher),
            CONNECT: (rig.connect, lambda: self._has_polled),
            KAFKA: (rig.broker, self._watch_hasher_and_job),
        }[fault]
        assert part is not None
        away = pace.cassandra_away if fault == CASSANDRA else pace.away
        return PlannedOutage(fault, part.kill, away, symptoms, part.start, watch)

    def _start_engine(self) -> Callable[[], bool]:
        """An engine's start is part of its recovery."""
        self.rig.engine.start()
        return self.watch_progress()

    def _watch_hasher(self) -> Callable[[], bool]:
        known = count_readings(self.rig)
        return lambda: count_readings(self.rig) > known and not is_paused(self.rig)

    def _watch_hasher_and_job(self) -> Callable[[], bool]:
        has_hashed, has_settled = self._watch_hasher(), self.watch_progress()
        return lambda: has_hashed() and has_settled()

    def _has_polled(self) -> bool:
        """Connect's counters begin again with its worker: any row is one that it has polled since."""
        return self.rig.read_connect_metrics().get(POLLED, 0.0) > 0

    def check(self) -> None:
        super().check()
        hasher = self.rig.hasher
        if hasher is not None and hasher.exit_code is not None:
            lines = read_log(hasher.command.log, hasher.log_from).strip().splitlines()
            raise OperationError("the hasher ended", why="\n".join(lines[-5:]))

    def drain(self) -> None:
        keys = {key.pk for key in self.load.planted}
        self.say(f"{len(keys):,} keys planted; waiting until all are settled")
        self.wait_for(lambda: self._are_settled(keys), "verdict for every key")

    def _are_settled(self, keys: set[str]) -> bool:
        if count_unread(self.rig.home, self.store, JOB, TOPICS_BY_PREFIX):
            return False
        verdicts = read_verdicts(self.rig)
        reported = all(each.settled and each.reported == each.status for each in verdicts)
        settled = reported and {each.pk for each in verdicts} == keys
        if not settled:
            time.sleep(2.0)
        return settled

    def report(
        self, outages: Sequence[Outage], seconds: float, drained_seconds: float
    ) -> PairFaultReport:
        home, planted = self.rig.home, self.load.planted
        run_command(home, "job", "stop", JOB)
        run = self.store.latest(JOB)
        compared = compare_keys(planted, read_verdicts(self.rig), count_changes(self.rig))
        certified = wait_for_end(start_command(home, "certify", "certify", "--all"))
        return PairFaultReport(
            keys=len(planted),
            events=self.load.sent,
            seconds=seconds,
            drained_seconds=drained_seconds,
            restarts=run.restarts if run else 0,
            struck=tuple(
                ReportedOutage(o.what, o.away_seconds, o.symptoms, o.recovered_seconds)
                for o in outages
            ),
            compared=compared,
            certificate=certified.last_lines(4) if certified.exit_code else HOLDS,
        )


def run_reconcile_faults(
    settings: Settings,
    folder: Path,
    pace: PairPace | None = None,
    faults: Sequence[str] = FAULTS,
    say: Say = lambda text: None,
) -> PairFaultReport:
    """Run the scenario and write reconcile_faults.json; DifferenceError when anything is not as it must be."""
    place, pace = settings.home / "reconcile-faults", pace or PairPace()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    contract = load_contract(settings.root / CONTRACT).value
    with (
        open_pair_rig(settings, place, pace.times, with_connect=CONNECT in faults) as rig,
        OpsStore.open(rig.home.ops_store_url) as store,
    ):
        hash_of, polled = partial(row_hash, contract), rig.connect is not None
        load = KeyLoad(rig.home, hash_of, pace.keys, pace.every, polled=polled)
        scenario = PairScenario(load, say, rig, store, pace, faults)
        return run_scenario(scenario, folder / "reconcile_faults.json", f"read {place}")


def render_text(report: PairFaultReport) -> str:
    """For a person: each outage, who told of it, and what became of the keys."""
    lines = [
        f"{outage.what:<10} away {outage.away_seconds:g} s, work went on {outage.recovered_seconds:g} s later;"
        f" told by {', '.join(who for who, words in outage.told.items() if words) or 'nobody'}"
        for outage in report.struck
    ]
    found = ", ".join(f"{n:,} {status}" for status, n in report.compared.found.items())
    lines += [
        f"{report.keys:,} keys, {report.events:,} events, all settled {report.drained_seconds:g} s"
        " after the last",
        f"found as planted: {found}; {report.compared.late:,} of them late",
        f"certificate: {report.certificate}; the job was started again {report.restarts} times",
    ]
    return "\n".join(lines)
