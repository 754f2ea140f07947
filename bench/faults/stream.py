"""Streams bursts with silver and maintenance beside, kills broker and engine, and compares with a batch run."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import cast

import orjson

from bench.faults.comparison import Comparison, compare
from bench.faults.rig import TOPIC, Rig, StreamEngine, rig, unread
from headgate.certify.evidence import declared
from headgate.config.settings import Settings
from headgate.core.kafka.producer import TopicWriter
from headgate.core.lake.duckdb_reader import Lake
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import DEAD_LETTERS
from headgate.errors import DifferenceError, OperationError
from headgate.local.process import wait_until
from headgate.maintenance.job import maintained
from headgate.maintenance.plan import COMPACT, EXPIRE, Wanted


@dataclass(frozen=True)
class Latency:
    """Seconds from a record's timestamp to the commit that made it visible in bronze."""

    records: int
    p50: float
    p95: float
    most: float


def latency(home: Settings, store: OpsStore, job: str, until: float) -> Latency:
    """Over the records that came before `until`; a batch is known by its time, which its rows bear."""
    table = declared(home, home.need("dataset")).bronze_table
    seen = ", ".join(
        f"(epoch_us(TIMESTAMPTZ '{row.batch_time.isoformat()}'), {row.committed_at.timestamp()})"
        for row in store.ledger(job)
    )
    with Lake.open(home) as lake:
        sql = f"""
            SELECT count(*), quantile_cont(waited, 0.5), quantile_cont(waited, 0.95), max(waited)
            FROM (
                SELECT committed - epoch(kafka_timestamp) AS waited
                FROM {lake.scan_sql(table)}
                JOIN (VALUES {seen}) AS batch(began, committed) ON began = epoch_us(ingestion_ts)
                WHERE epoch(kafka_timestamp) < {until}
            )"""
        records, *figures = cast("tuple[int, float, float, float]", lake.query(sql)[0])
    return Latency(records, *(round(figure or 0.0, 2) for figure in figures))


ROWS = 2_000
# A burst goes out in pieces, so that a broker can be killed in the middle of it.
PIECES = 20
BURST_SECONDS = 3.0
BROKER_AWAY_SECONDS = 3.0
DRAIN_SECONDS = 180.0
# The command line asks for an hour at least; whatever a job still needs stays at any age.
MAINTENANCE = Wanted(
    actions=(COMPACT, EXPIRE),
    compact_tables=("bronze", "silver"),
    older_than=timedelta(seconds=20),
    keep=3,
    min_files=2,
)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Struck:
    """One kill: what was under way, and how long until the next batch was settled."""

    what: str
    under_way: int
    recovered_seconds: float


@dataclass(frozen=True)
class Maintained:
    """What maintenance did to one table while the streams went on."""

    table: str
    files_before: int
    files_after: int
    snapshots_expired: int


@dataclass(frozen=True)
class Played:
    """What was done, and what was measured meanwhile; `calm` is what came before the first kill."""

    seconds: float
    records: int
    batches: int
    struck: tuple[Struck, ...]
    maintained: tuple[Maintained, ...]
    calm: Latency
    whole: Latency


@dataclass(frozen=True)
class BurstReport:
    """What the bursts, the kills and the maintenance left behind."""

    seed: int
    bursts: int
    played: Played
    comparisons: tuple[Comparison, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is not as it must be."""
        done = self.played.maintained
        # A merge that replaces rows writes a date's file anew, so silver may have none too many.
        smaller = any(m.files_after < m.files_before for m in done)
        idle = [s.what for s in self.played.struck if not s.under_way]
        return (
            *(c.what for c in self.comparisons if not c.holds),
            *(f"the kill of the {what} met nothing under way" for what in idle),
            *(() if smaller else ("no table has fewer files",)),
            *(() if any(m.snapshots_expired for m in done) else ("no snapshot was expired",)),
        )


@dataclass
class Producer(threading.Thread):
    """Sends the bursts on time, but none before the play allows it.

    What the broker did not acknowledge is an error at the end.
    """

    place: Rig
    seed: int
    bursts: int
    every: float
    rows: int
    sent: int = 0
    burst: int = 0
    allowed: int = 0
    error: Exception | None = None
    writer: TopicWriter = field(init=False)

    def __post_init__(self) -> None:
        super().__init__(name="bursts", daemon=True)
        self.writer = TopicWriter(self.place.broker.bootstrap)

    __hash__ = threading.Thread.__hash__

    @property
    def unacknowledged(self) -> int:
        return self.sent - self.writer.acknowledged

    def run(self) -> None:
        begun = time.monotonic()
        try:
            for number in range(self.bursts):
                time.sleep(max(0.0, begun + number * self.every - time.monotonic()))
                wait_until(lambda number=number: number < self.allowed, DRAIN_SECONDS)
                self._send(number)
        except Exception as error:
            self.error = error

    def _send(self, number: int) -> None:
        values, keys = self.place.round(self.seed + number, self.rows)
        self.burst = number + 1
        size = -(-len(values) // PIECES)
        for at in range(0, len(values), size):
            self.sent += len(values[at : at + size])
            self.writer.send(TOPIC, values[at : at + size], keys[at : at + size])
            time.sleep(BURST_SECONDS / PIECES)
        self.writer.flush()


def run_bursts(
    settings: Settings,
    bursts: int,
    seconds: float,
    folder: Path,
    seed: int = 42,
    say: Say = lambda words: None,
) -> BurstReport:
    """The whole play; DifferenceError when anything is not as it must be."""
    homes = settings.home / "bursts"
    shutil.rmtree(homes, ignore_errors=True)
    homes.mkdir(parents=True)
    say(f"seed {seed}: {bursts} bursts in {seconds:g} s")
    with rig(settings, homes) as place:
        home = place.home("streamed")
        home.home.mkdir(parents=True)
        with OpsStore.open(home.ops_store_url) as store, StreamEngine(place, home) as engine:
            play = Play(
                place, engine, store, Producer(place, seed, bursts, seconds / bursts, ROWS), say
            )
            played = play.perform()
        report = BurstReport(seed, bursts, played, compare(place, home))
    write_report(folder, report)
    if report.faults:
        raise DifferenceError(
            "the stream left a trace",
            why="; ".join(report.faults),
            fix=f"the homes are in {homes}",
        )
    return report


class Play:
    """Who does what when; the kernel ties children to this thread, so all of them start here."""

    def __init__(
        self, place: Rig, engine: StreamEngine, store: OpsStore, producer: Producer, say: Say
    ) -> None:
        self._place, self._engine, self._store = place, engine, store
        self._producer, self._say = producer, say
        self._home = engine.home
        self._job = f"bronze-{self._home.need('dataset')}"
        self._struck: list[Struck] = []
        self._maintained: list[Maintained] = []
        self._calm_until = 0.0

    def perform(self) -> Played:
        begun = time.monotonic()
        self._engine.start()
        self._engine.command("job", "start", "bronze")
        self._producer.allowed = 1
        self._producer.start()
        self._settled_more_than(0, "the first burst")
        for tenth, act in enumerate(self._acts(), 2):
            self._wait_for_burst(self._allow(tenth))
            self._allow(tenth + 1)
            act()
        self._producer.allowed = self._producer.bursts
        self._drain()
        return self._report(round(time.monotonic() - begun, 1))

    def _allow(self, tenth: int) -> int:
        """Bursts go on during an act, but not past the next one."""
        allowed = tenth * self._producer.bursts // 10
        self._producer.allowed = max(self._producer.allowed, allowed)
        return allowed

    def _acts(self) -> Sequence[Callable[[], None]]:
        """One after each tenth of the bursts, from the second on."""
        return (
            self._silver,
            self._maintain,
            self._kill_broker,
            self._silver,
            self._kill_engine,
            lambda: self._engine.command("job", "start", "silver"),
            self._maintain,
        )

    def _silver(self) -> None:
        self._say(f"burst {self._producer.burst}: silver")
        self._engine.command("job", "run", "silver")

    def _maintain(self) -> None:
        self._say(f"burst {self._producer.burst}: maintenance")
        dataset = self._home.need("dataset")
        _, report = maintained(self._home, self._store, dataset, MAINTENANCE)
        for table in report.tables if report else ():
            if table.table != DEAD_LETTERS:
                files = table.before.files, table.after.files
                done = Maintained(table.table, *files, table.snapshots_expired)
                self._maintained.append(done)

    def _kill_broker(self) -> None:
        self._calm_until = time.time()
        self._producer.allowed += 1
        wait_until(lambda: self._producer.unacknowledged > 0, self._producer.every, 0.001)
        under_way = self._producer.unacknowledged
        self._place.broker.kill()
        self._say(f"burst {self._producer.burst}: broker killed, {under_way} records under way")
        time.sleep(BROKER_AWAY_SECONDS)
        self._place.broker.start()
        self._recovered("broker", under_way)

    def _kill_engine(self) -> None:
        self._producer.allowed += 1
        wait_until(lambda: unread(self._home, self._store, self._job) > 0, self._producer.every)
        under_way = unread(self._home, self._store, self._job)
        self._engine.kill()
        self._say(f"burst {self._producer.burst}: engine killed, {under_way} records unread")
        self._engine.start()
        self._recovered("engine", under_way)

    def _recovered(self, what: str, under_way: int) -> None:
        began, known = time.monotonic(), len(self._store.ledger(self._job))
        self._settled_more_than(known, f"the {what} was killed")
        self._struck.append(Struck(what, under_way, round(time.monotonic() - began, 1)))

    def _settled_more_than(self, batches: int, since: str) -> None:
        if not wait_until(lambda: len(self._store.ledger(self._job)) > batches, DRAIN_SECONDS):
            raise OperationError(f"no batch was settled after {since}")

    def _wait_for_burst(self, number: int) -> None:
        limit = 60.0 + number * self._producer.every
        wait_until(
            lambda: self._producer.burst >= number or self._producer.error is not None, limit
        )

    def _drain(self) -> None:
        """Everything sent is acknowledged, read, and the streams are stopped."""
        self._producer.join(DRAIN_SECONDS)
        if self._producer.error is not None or self._producer.is_alive():
            raise OperationError("the bursts were not sent", why=str(self._producer.error))
        if not wait_until(lambda: unread(self._home, self._store, self._job) == 0, DRAIN_SECONDS):
            raise OperationError("the stream did not reach the topic's end")
        for job in ("bronze", "silver"):
            self._engine.command("job", "stop", job)

    def _report(self, seconds: float) -> Played:
        return Played(
            seconds=seconds,
            records=self._producer.sent,
            batches=len(self._store.ledger(self._job)),
            struck=tuple(self._struck),
            maintained=tuple(self._maintained),
            calm=latency(self._home, self._store, self._job, self._calm_until),
            whole=latency(self._home, self._store, self._job, time.time()),
        )


def write_report(folder: Path, report: BurstReport) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = {**asdict(report), "faults": report.faults}
    (folder / "bursts.json").write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
