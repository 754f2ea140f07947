"""Streams bursts with silver and maintenance beside, kills broker and engine, and compares with a batch run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import cast

from bench.faults.comparison import Comparison, compare_homes
from bench.faults.rig import (
    TOPIC,
    HomeEngine,
    TopicRig,
    count_unread,
    engine_of,
    open_rig,
    run_command,
)
from bench.faults.scenario import Load, Outage, PlannedOutage, Report, Say, Scenario, run_scenario
from headgate.certify.evidence import declared
from headgate.config.settings import Settings
from headgate.core.kafka.producer import TopicWriter
from headgate.core.lake.duckdb_reader import Lake
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import DEAD_LETTERS
from headgate.local.process import wait_until
from headgate.local.service import Running
from headgate.maintenance.job import maintained
from headgate.maintenance.plan import COMPACT, EXPIRE, MaintenanceRunOptions

ROWS = 2_000
# A burst goes out in pieces, so that a broker can be killed in the middle of it.
PIECES = 20
BURST_SECONDS = 3.0
BROKER_AWAY_SECONDS = 3.0
PATIENCE_SECONDS = 180.0
# The command line asks for an hour at least; whatever a job still needs stays at any age.
MAINTENANCE = MaintenanceRunOptions(
    actions=(COMPACT, EXPIRE),
    compact_tables=("bronze", "silver"),
    older_than=timedelta(seconds=20),
    keep=3,
    min_files=2,
)


@dataclass(frozen=True)
class Latency:
    """Seconds from a record's timestamp to the commit that made it visible in bronze."""

    records: int
    p50: float
    p95: float
    most: float


def measure_latency(home: Settings, store: OpsStore, job: str, until: float) -> Latency:
    """Over the records that came before `until`; a batch is known by its time, which its rows bear."""
    table = declared(home, home.need("dataset")).bronze_table
    batches = ", ".join(
        f"(epoch_us(TIMESTAMPTZ '{row.batch_time.isoformat()}'), {row.committed_at.timestamp()})"
        for row in store.ledger(job)
    )
    with Lake.open(home) as lake:
        sql = f"""
            SELECT count(*), quantile_cont(waited, 0.5), quantile_cont(waited, 0.95), max(waited)
            FROM (
                SELECT committed - epoch(kafka_timestamp) AS waited
                FROM {lake.scan_sql(table)}
                JOIN (VALUES {batches}) AS batch(began, committed) ON began = epoch_us(ingestion_ts)
                WHERE epoch(kafka_timestamp) < {until}
            )"""
        records, *figures = cast("tuple[int, float, float, float]", lake.query(sql)[0])
    return Latency(records, *(round(figure or 0.0, 2) for figure in figures))


@dataclass(frozen=True)
class StreamKill:
    """One kill: what was under way, and how long until the next batch was settled."""

    what: str
    under_way: int
    recovered_seconds: float


@dataclass(frozen=True)
class TableMaintenance:
    """What maintenance did to one table while the streams went on."""

    table: str
    files_before: int
    files_after: int
    snapshots_expired: int


@dataclass(frozen=True)
class BurstMeasurements:
    """What was done, and what was measured meanwhile; `calm` is what came before the first kill."""

    seconds: float
    records: int
    batches: int
    struck: tuple[StreamKill, ...]
    maintained: tuple[TableMaintenance, ...]
    calm: Latency
    whole: Latency


@dataclass(frozen=True)
class BurstReport(Report):
    """What the bursts, the kills and the maintenance left behind."""

    seed: int
    bursts: int
    played: BurstMeasurements
    comparisons: tuple[Comparison, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        done = self.played.maintained
        # A merge that replaces rows writes a date's file anew, so silver may have none too many.
        smaller = any(m.files_after < m.files_before for m in done)
        idle = [kill.what for kill in self.played.struck if not kill.under_way]
        return (
            *(c.what for c in self.comparisons if not c.holds),
            *(f"the kill of the {what} met nothing under way" for what in idle),
            *(() if smaller else ("no table has fewer files",)),
            *(() if any(m.snapshots_expired for m in done) else ("no snapshot was expired",)),
        )


class BurstLoad(Load):
    """Sends bursts on time, but none before it is allowed. What is not acknowledged is an error."""

    def __init__(self, rig: TopicRig, seed: int, bursts: int, every: float) -> None:
        super().__init__()
        self.seed, self.bursts, self.every = seed, bursts, every
        self.burst, self.allowed = 0, 1
        self._rig, self._writer = rig, TopicWriter(rig.bootstrap)

    def count_unacknowledged(self) -> int:
        return self.sent - self._writer.acknowledged

    def send(self) -> None:
        begun = time.monotonic()
        for number in range(self.bursts):
            time.sleep(max(0.0, begun + number * self.every - time.monotonic()))
            wait_until(
                lambda number=number: number < self.allowed or self.ending.is_set(),
                PATIENCE_SECONDS,
            )
            self._send_burst(number)

    def _send_burst(self, number: int) -> None:
        values, keys = self._rig.draw_round(self.seed + number, ROWS)
        self.burst = number + 1
        size = -(-len(values) // PIECES)
        for at in range(0, len(values), size):
            self.sent += len(values[at : at + size])
            self._writer.send(TOPIC, values[at : at + size], keys[at : at + size])
            time.sleep(BURST_SECONDS / PIECES)
        self._writer.flush()


@dataclass
class BurstScenario(Scenario[BurstLoad, BurstReport]):
    """Bursts into bronze; after tenths of them silver runs, tables are maintained, and parts are killed."""

    rig: TopicRig
    home: Settings
    store: OpsStore
    engine: Running[HomeEngine]
    maintenance: list[TableMaintenance] = field(default_factory=list[TableMaintenance])
    calm_until: float = 0.0

    @property
    def job(self) -> str:
        return f"bronze-{self.home.need('dataset')}"

    def begin(self) -> None:
        self.engine.start()
        run_command(self.home, "job", "start", "bronze")

    def watch_progress(self) -> Callable[[], bool]:
        known = len(self.store.ledger(self.job))
        return lambda: len(self.store.ledger(self.job)) > known

    def plan_outages(self) -> Iterator[PlannedOutage]:
        self._wait_for_tenth(2)
        self._run_silver()
        self._wait_for_tenth(3)
        self._maintain()
        self._wait_for_tenth(4)
        yield self._plan_broker_kill()
        self._wait_for_tenth(5)
        self._run_silver()
        self._wait_for_tenth(6)
        yield self._plan_engine_kill()
        self._wait_for_tenth(7)
        run_command(self.home, "job", "start", "silver")
        self._wait_for_tenth(8)
        self._maintain()

    def _wait_for_tenth(self, tenth: int) -> None:
        """Wait for this tenth of the bursts. What follows has the time of one more; then bursts wait."""
        load, number = self.load, tenth * self.load.bursts // 10
        load.allowed = max(load.allowed, number)
        limit = 60.0 + number * load.every
        self.wait_for(lambda: load.burst >= number, f"burst number {number}", limit)
        load.allowed = max(load.allowed, (tenth + 1) * load.bursts // 10)

    def _run_silver(self) -> None:
        self.say(f"burst {self.load.burst}: silver")
        run_command(self.home, "job", "run", "silver")

    def _maintain(self) -> None:
        self.say(f"burst {self.load.burst}: maintenance")
        dataset = self.home.need("dataset")
        _, report = maintained(self.home, self.store, dataset, MAINTENANCE)
        self.maintenance += [
            TableMaintenance(t.table, t.before.files, t.after.files, t.snapshots_expired)
            for t in (report.tables if report else ())
            if t.table != DEAD_LETTERS
        ]

    def _plan_broker_kill(self) -> PlannedOutage:
        self.calm_until = time.time()
        self.load.allowed += 1
        return PlannedOutage(
            "broker",
            strike=self.rig.broker.kill,
            away_seconds=BROKER_AWAY_SECONDS,
            restore=self.rig.broker.start,
            under_way=lambda: self._wait_for_work(self.load.count_unacknowledged, 0.001),
        )

    def _plan_engine_kill(self) -> PlannedOutage:
        self.load.allowed += 1
        return PlannedOutage(
            "engine",
            strike=self.engine.kill,
            restore=self.engine.start,
            under_way=lambda: self._wait_for_work(self._count_unread, 0.05),
        )

    def _wait_for_work(self, count: Callable[[], int], pause: float) -> int:
        """How much there is once there is any; 0 when the time of a burst brings none."""
        wait_until(lambda: count() > 0, self.load.every, pause)
        return count()

    def _count_unread(self) -> int:
        return count_unread(self.home, self.store, self.job, {"": TOPIC})

    def drain(self) -> None:
        self.wait_for(lambda: self._count_unread() == 0, "batch at the topic's end")
        for job in ("bronze", "silver"):
            run_command(self.home, "job", "stop", job)

    def report(
        self, outages: Sequence[Outage], seconds: float, drained_seconds: float
    ) -> BurstReport:
        self.engine.stop()
        measured = BurstMeasurements(
            seconds=seconds,
            records=self.load.sent,
            batches=len(self.store.ledger(self.job)),
            struck=tuple(StreamKill(o.what, o.under_way, o.recovered_seconds) for o in outages),
            maintained=tuple(self.maintenance),
            calm=measure_latency(self.home, self.store, self.job, self.calm_until),
            whole=measure_latency(self.home, self.store, self.job, time.time()),
        )
        comparisons = compare_homes(self.rig, self.home)
        return BurstReport(self.load.seed, self.load.bursts, measured, comparisons)


def run_bursts(
    settings: Settings,
    bursts: int,
    seconds: float,
    folder: Path,
    seed: int = 42,
    say: Say = lambda text: None,
) -> BurstReport:
    """Run the scenario and write bursts.json; DifferenceError when anything is not as it must be."""
    homes = settings.home / "bursts"
    shutil.rmtree(homes, ignore_errors=True)
    homes.mkdir(parents=True)
    say(f"seed {seed}: {bursts} bursts in {seconds:g} s")
    with open_rig(settings, homes) as rig:
        home = rig.create_home("streamed")
        home.home.mkdir(parents=True)
        with OpsStore.open(home.ops_store_url) as store, engine_of(home) as engine:
            load = BurstLoad(rig, seed, bursts, seconds / bursts)
            scenario = BurstScenario(load, say, rig, home, store, engine)
            return run_scenario(scenario, folder / "bursts.json", f"the homes are in {homes}")
