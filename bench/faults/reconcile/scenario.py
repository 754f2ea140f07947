"""Reconciles while Cassandra, Connect, Kafka and the engine are away in turn: outages, symptoms, recovery, report.

Nothing may be lost, every outage must be reported by a part that meets it, and all must recover by themselves.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from bench.faults.reconcile.keys import (
    Compared,
    Planter,
    changes,
    compared,
    finals,
    make_table,
    unread,
)
from bench.faults.reconcile.rig import JOB, TABLE, PairRig, Times, log_size, new_words, pair_rig
from bench.faults.rig import ended
from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics import names
from headgate.errors import DifferenceError, HeadgateError, OperationError
from headgate.hashing.contract import load_contract
from headgate.local.process import wait_until

WORDS_KEPT = 6
# The hasher's own progress is no word about a gap.
PROGRESS = "hashed"


class Listening:
    """Hears what is said from now on."""

    def __init__(self, rig: PairRig, store: OpsStore) -> None:
        self._rig, self._store = rig, store
        self._hasher_log = log_size(rig.hasher.command.log) if rig.hasher else 0
        self._connect_log = log_size(rig.connect.service.log) if rig.connect else 0

    def hasher(self) -> tuple[str, ...]:
        """Its own words, and its gauge."""
        words = new_words(self._rig.hasher, self._hasher_log)
        gauge = ("metrics: paused",) if is_paused(self._rig) else ()
        return (*_kept([line for line in words if PROGRESS not in line]), *gauge)

    def connect(self) -> tuple[str, ...]:
        """What one hears of connectors: their states, and what the worker logged."""
        if self._rig.connect is None:
            return ()
        try:
            states = [f"{s.name} {s.state}: {s.why}".strip(": ") for s in self._rig.rest().states()]
        except HeadgateError as error:
            return (error.one_line,)
        log = self._rig.connect.service.log.read_bytes()[self._connect_log :]
        lines = log.decode(errors="replace").splitlines()
        warned = [line for line in lines if " WARN " in line or " ERROR " in line]
        return (*states, *_kept(warned))

    def job(self) -> tuple[str, ...]:
        """What `headgate job list` says of it."""
        run = self._store.latest(JOB)
        words = run.error_text or run.error_code if run else None
        return (f"{run.state}: {words}",) if run and words else ()

    def client(self) -> tuple[str, ...]:
        """What any command says that needs the broker."""
        from headgate.core.kafka.topics import Topics

        try:
            Topics(self._rig.home.need("bootstrap_servers"), timeout=3.0).need()
        except HeadgateError as error:
            return (error.one_line,)
        return ()

    def health(self) -> tuple[str, ...]:
        """What `headgate local health` says."""
        from headgate.local.health import health

        return tuple(f"{h.service}: {h.words}" for h in health(self._rig.home) if not h.healthy)


def is_paused(rig: PairRig) -> bool:
    return rig.hasher_metrics().get(names.HASHER_PAUSED.name, 1.0) > 0


def readings(rig: PairRig) -> float:
    """Readings that the hasher has sent."""
    return rig.hasher_metrics().get(names.HASHER_READINGS.name, 0.0)


def _kept(lines: Sequence[str]) -> list[str]:
    """The first few different ones, cut to a readable length."""
    return [line[:300] for line in dict.fromkeys(lines)][:WORDS_KEPT]


SYNCED_SECONDS = 3.0
CASSANDRA, CONNECT, KAFKA, ENGINE = "cassandra", "connect", "kafka", "engine"
FAULTS = (CASSANDRA, CONNECT, KAFKA, ENGINE)
CONTRACT = "contracts/business_table.hash.yml"
CLOUD_TABLE, ONPREM_TOPIC = "cloud_keyspace.business_table", "topic1"
POLLED = "headgate_connect_cassandrapoll_rows_total"
RECOVER_SECONDS = 300.0
DRAIN_SECONDS = 300.0
FIRST_SECONDS = 240.0
HOLDS = "it holds"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """How much is planted how fast, for how long something is away, and how long sides wait."""

    keys: int = 60
    every: float = 1.0
    cassandra_away: float = 60.0
    away: float = 5.0
    calm: float = 10.0
    times: Times = field(default_factory=lambda: Times(window=30, grace=10))


@dataclass(frozen=True)
class Struck:
    """One gap: how long it was, who told of it and how, and how long until work went on."""

    what: str
    away_seconds: float
    told: Mapping[str, tuple[str, ...]]
    recovered_seconds: float


@dataclass(frozen=True)
class FaultReport:
    """What was done, what was said meanwhile, and what was found in the end."""

    keys: int
    events: int
    seconds: float
    drained_seconds: float
    restarts: int
    struck: tuple[Struck, ...]
    compared: Compared
    certificate: str

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is not as it must be."""
        silent = [
            f"nobody told that {s.what} was away" for s in self.struck if not any(s.told.values())
        ]
        sums = self.compared
        uneven = () if sums.planted == sums.found else (f"{sums.planted} became {sums.found}",)
        proof = () if self.certificate == HOLDS else (f"the certificate: {self.certificate}",)
        return (*silent, *sums.wrong[:10], *uneven, *proof)


class Play:
    """Who does what when; the kernel ties children to this thread, so all of them start here."""

    def __init__(self, rig: PairRig, store: OpsStore, size: Size, say: Say) -> None:
        self.rig, self.store, self._size, self._say = rig, store, size, say
        self._struck: list[Struck] = []
        self._planter = Planter(
            rig.home,
            *(CLOUD_TABLE, ONPREM_TOPIC, self._hash_of()),
            *(size.keys, size.every, rig.connect is not None),
        )

    def _hash_of(self) -> Callable[[dict[str, object]], str]:
        from headgate.hashing.python import row_hash

        contract = load_contract(self.rig.home.root / CONTRACT).value
        return lambda row: row_hash(contract, row)

    def perform(self, faults: Sequence[str]) -> FaultReport:
        begun = time.monotonic()
        self._start()
        acts = {
            CASSANDRA: self._cassandra_away,
            CONNECT: self._connect_killed,
            KAFKA: self._kafka_restarted,
            ENGINE: self._engine_killed,
        }
        for fault in faults:
            time.sleep(self._size.calm)
            self._say(f"{len(self._planter.planted):,} keys planted: {fault} goes away")
            acts[fault]()
        time.sleep(self._size.calm)
        drained = self._drain()
        return self._report(begun, drained)

    def _start(self) -> None:
        rig = self.rig
        make_table(rig.home, CLOUD_TABLE)
        rig.command("topics", "create", "--table", TABLE)
        rig.start_engine()
        rig.command("job", "start", JOB)
        if rig.connect:
            rig.command("connect", "deploy", TABLE)
        rig.start_hasher(self._size.times.settled_after / 2)
        self._planter.start()
        self._settled_more_than(0, FIRST_SECONDS, "the start")
        self._say("everything runs, and the first batch is settled")
        self._planter.at_full_pace = True

    def _cassandra_away(self) -> None:
        """Events go on while no row can be read: the rows of those are there beforehand."""
        pieces = int(self._size.cassandra_away / self._size.every) + 2
        self._planter.stock(pieces)
        # A killed Cassandra forgets what its commit log has not synced: those rows would truly be missing.
        time.sleep(SYNCED_SECONDS)
        with _Gap(self, CASSANDRA, self._size.cassandra_away) as gap:
            self.rig.cassandra.kill()
            gap.wait()
            gap.hear(hasher=gap.listening.hasher(), connect=gap.listening.connect())
            self.rig.cassandra.start()
            before = readings(self.rig)
            gap.recovered(lambda: readings(self.rig) > before and not is_paused(self.rig))

    def _connect_killed(self) -> None:
        with _Gap(self, CONNECT, self._size.away) as gap:
            assert self.rig.connect is not None
            self.rig.connect.kill()
            gap.wait()
            gap.hear(connect=gap.listening.connect())
            self.rig.connect.start()
            # Its counters begin again with the worker: any row is one that it has polled since.
            gap.recovered(lambda: self.rig.connect_metrics().get(POLLED, 0.0) > 0)

    def _kafka_restarted(self) -> None:
        with _Gap(self, KAFKA, self._size.away) as gap:
            self.rig.broker.kill()
            gap.wait()
            heard = gap.listening
            gap.hear(job=heard.job(), hasher=heard.hasher(), client=heard.client())
            self.rig.broker.start()
            before, batches = readings(self.rig), len(self.store.ledger(JOB))
            gap.recovered(
                lambda: readings(self.rig) > before and len(self.store.ledger(JOB)) > batches
            )

    def _engine_killed(self) -> None:
        with _Gap(self, ENGINE, self._size.away) as gap:
            assert self.rig.engine is not None
            self.rig.engine.kill()
            gap.wait()
            gap.hear(local=gap.listening.health())
            gap.back()
            self.rig.start_engine()
            batches = len(self.store.ledger(JOB))
            gap.recovered(lambda: len(self.store.ledger(JOB)) > batches)

    def strike(self, struck: Struck) -> None:
        self._struck.append(struck)
        self._say(f"{struck.what}: work went on {struck.recovered_seconds:g} s after it was back")

    def _settled_more_than(self, batches: int, limit: float, since: str) -> None:
        self._wait(lambda: len(self.store.ledger(JOB)) > batches, limit, f"a batch after {since}")

    def _wait(self, true: Callable[[], bool], limit: float, what: str) -> None:
        if not wait_until(lambda: true() or self._broken() != "", limit, 0.3):
            raise OperationError(f"there was no {what} within {limit:.0f} s")
        if broken := self._broken():
            raise OperationError("the play was broken off", why=broken)

    def _broken(self) -> str:
        if self._planter.error is not None:
            return f"nothing can be planted: {self._planter.error}"
        hasher = self.rig.hasher
        if hasher is not None and hasher.exit_code is not None:
            return f"the hasher ended: {' '.join(new_words(hasher, hasher.log_from)[-5:])}"
        return ""

    def _drain(self) -> float:
        """Everything planted is heard, read, and past its deadline."""
        begun = time.monotonic()
        self._planter.finish(DRAIN_SECONDS)
        keys = {pair.pk for pair in self._planter.planted}
        self._say(f"{len(keys):,} keys planted; waiting until all are settled")
        self._wait(lambda: self._all_there(keys), DRAIN_SECONDS, "verdict for every key")
        return round(time.monotonic() - begun, 1)

    def _all_there(self, keys: set[str]) -> bool:
        if unread(self.rig, self.store):
            return False
        found = finals(self.rig)
        told = all(final.settled and final.told == final.status for final in found)
        settled = told and {final.pk for final in found} == keys
        if not settled:
            time.sleep(2.0)
        return settled

    def _report(self, begun: float, drained: float) -> FaultReport:
        self.rig.command("job", "stop", JOB)
        found = compared(self._planter.planted, finals(self.rig), changes(self.rig))
        run = self.store.latest(JOB)
        return FaultReport(
            keys=len(self._planter.planted),
            events=self._planter.sent,
            seconds=round(time.monotonic() - begun, 1),
            drained_seconds=drained,
            restarts=run.restarts if run else 0,
            struck=tuple(self._struck),
            compared=found,
            certificate=self._certificate(),
        )

    def _certificate(self) -> str:
        """What our own accounts say of it; the verdicts above were held against the plant alone."""
        done = ended(self.rig.begin("certify", "certify"))
        words = [line for line in done.log.strip().splitlines() if line.strip()]
        return HOLDS if not done.exit_code else " ".join(words[-4:])

    def await_recovery(self, true: Callable[[], bool], what: str) -> None:
        self._wait(true, RECOVER_SECONDS, f"work after {what} was back")


class _Gap:
    """One thing away: from the kill until work goes on."""

    def __init__(self, play: Play, what: str, seconds: float) -> None:
        self._play, self._what, self._seconds = play, what, seconds
        self.listening = Listening(play.rig, play.store)
        self._begun = time.monotonic()
        self._told: dict[str, tuple[str, ...]] = {}
        self._back = self._went_on = 0.0

    def __enter__(self) -> _Gap:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            away, recovered = self._back - self._begun, self._went_on - self._back
            struck = Struck(self._what, round(away, 1), self._told, round(recovered, 1))
            self._play.strike(struck)

    def wait(self) -> None:
        time.sleep(self._seconds)

    def hear(self, **told: tuple[str, ...]) -> None:
        self._told = told

    def back(self) -> None:
        self._back = self._back or time.monotonic()

    def recovered(self, true: Callable[[], bool]) -> None:
        self.back()
        self._play.await_recovery(true, self._what)
        self._went_on = time.monotonic()


SMALL = Size(keys=100, cassandra_away=6.0, away=3.0, calm=3.0, times=Times(window=12, grace=4))


def run_reconcile_faults(
    settings: Settings,
    folder: Path,
    size: Size | None = None,
    faults: Sequence[str] = FAULTS,
    say: Say = lambda words: None,
) -> FaultReport:
    """The whole play; DifferenceError when anything is not as it must be."""
    place = settings.home / "reconcile-faults"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    size = size or Size()
    with pair_rig(settings, place, size.times, with_connect=CONNECT in faults) as rig:
        rig.home.home.mkdir(parents=True, exist_ok=True)
        with OpsStore.open(rig.home.ops_store_url) as store:
            report = Play(rig, store, size, say).perform(faults)
    write_report(folder, report)
    if report.faults:
        raise DifferenceError(
            "the faults left a trace", why="\n".join(report.faults), fix=f"read {place}"
        )
    return report


def write_report(folder: Path, report: FaultReport) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = {**asdict(report), "faults": report.faults}
    file = folder / "reconcile_faults.json"
    file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


def report_text(report: FaultReport) -> str:
    """For a person: each gap, who told of it, and what became of the keys."""
    lines = [
        f"{gap.what:<10} away {gap.away_seconds:g} s, work went on {gap.recovered_seconds:g} s later;"
        f" told by {', '.join(who for who, words in gap.told.items() if words) or 'nobody'}"
        for gap in report.struck
    ]
    found = ", ".join(f"{n:,} {status}" for status, n in report.compared.found.items())
    lines += [
        f"{report.keys:,} keys, {report.events:,} events, all settled {report.drained_seconds:g} s"
        " after the last",
        f"found as planted: {found}; {report.compared.late:,} of them late",
        f"certificate: {report.certificate}; the job was started again {report.restarts} times",
    ]
    return "\n".join(lines)
