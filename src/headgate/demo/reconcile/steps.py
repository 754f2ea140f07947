"""Steps of the reconciliation demo: plant in waves, hash, judge, wait for deadlines, compare, certify, report."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.demo.steps import Data, Proof, Walk, command, reported
from headgate.errors import OperationError, count_of
from headgate.terminal.steps import POLL_SECONDS, Steps, wait_for

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.lake.duckdb_reader import Lake
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.demo.reconcile.comparison import Line, PairGathering, Wrong
    from headgate.demo.reconcile.feed import Fed
    from headgate.demo.reconcile.keys import Phase
    from headgate.demo.reconcile.planting import ExpectedKey
    from headgate.local.process import Child


TABLE = "business"


def expected(keys: Iterable[ExpectedKey], *, waited: bool) -> Iterator[ExpectedKey]:
    """As planted; where the second wave came before the first verdicts, its keys need not have waited."""
    for key in keys:
        free = key.role == "soon" and not waited
        yield replace(key, expected=replace(key.expected, path=())) if free else key


def newest(lake: Lake) -> dict[str, str]:
    """Each key with its newest verdict in the lake; none before the first batch."""
    from headgate.reconcile.report.gather import newest_sql

    if not lake.exists(f"dq.results_{TABLE}"):
        return {}
    scan = lake.scan_sql(f"dq.results_{TABLE}")
    rows = lake.query(f"SELECT pk, dq_status FROM {newest_sql(scan)}")
    return {str(pk): str(status) for pk, status in rows}


def newest_counts(lake: Lake) -> dict[str, int]:
    return dict(sorted(Counter(newest(lake).values()).items()))


@contextmanager
def pair_gathering(settings: Settings, store: OpsStore) -> Generator[PairGathering]:
    """One look at all places, with a session on the engine."""
    from headgate.core.engine.connect import connect
    from headgate.core.lake.spark import sql
    from headgate.demo.reconcile.comparison import PairGathering, Places
    from headgate.demo.reconcile.feed import plan_of
    from headgate.quality.compile.resolve import open_rules
    from headgate.quality.revision import with_limits
    from headgate.quality.spec.reconcile_checks import limits_of
    from headgate.reconcile.cli.report import why_of

    judged = with_limits(open_rules(settings, TABLE), settings)
    reconcile = judged.table.reconcile
    why = why_of(settings, judged)
    assert reconcile is not None
    assert why is not None
    with connect(settings) as session:
        places = Places(
            table=TABLE,
            ask=lambda query: [row.asDict() for row in sql(session, query).collect()],
            why=why,
            topics=plan_of(settings, TABLE).topics,
            status_topic=reconcile.status_topic,
            audit_topic=reconcile.audit.topic,
            limits=limits_of(reconcile),
        )
        yield PairGathering(settings, store, places)


def start_hasher(log: Path) -> Child:
    from headgate.local.process import Child, Command

    words = (sys.executable, "-m", "headgate.cli.main", "reconcile", "hasher", TABLE)
    return Child(Command(words, log, Path.cwd(), dict(os.environ)))


def words_of(log: Path) -> str:
    return log.read_text("utf-8", errors="replace") if log.is_file() else ""


NAME_WIDTH = 11
JOB = f"reconcile-{TABLE}"
# The second wave is sent when this part of the window is over, at the latest.
SOON = 0.5
# So long Connect may take to see a row.
POLLED_SECONDS = 10.0
WINDOW, GRACE = timedelta(seconds=45), timedelta(seconds=20)
# A machine that takes long to start everything gets a longer window.
SLOWNESS, LONGEST = 2, timedelta(minutes=3)
STOP_SECONDS = 30.0
# After a deadline the next sweep must come, and its batch be written.
SWEEP_SECONDS = 60.0
TOLD_SECONDS = 120.0


class Report(Data):
    html: str
    keys: int


@dataclass(frozen=True)
class Compared:
    """What was found: keys that are wrong, and every sum beside every place."""

    keys: int
    wrong: tuple[Wrong, ...]
    lines: tuple[Line, ...]

    @property
    def holds(self) -> bool:
        return not self.wrong and all(line.holds for line in self.lines)


class ReconcileWalk(Walk):
    """The steps of `headgate demo reconcile`."""

    bundles = ("kafka", "spark", "cassandra", "connect", "cassandra-java-driver", "jmx-exporter")

    def __init__(self, steps: Steps, root: Path) -> None:
        super().__init__(steps, root)
        self._window, self._grace = WINDOW, GRACE
        self._sent_at = 0.0

    def wait_so_long(self, window: timedelta, grace: timedelta) -> None:
        """Short times, so that one sees the end of them; the horizon is passed while it runs."""
        self._window, self._grace = window, grace
        times = {"WINDOW": window, "GRACE": grace, "HORIZON": window + grace}
        for name, time_ in times.items():
            os.environ[f"RECONCILE_{name}"] = f"{time_.total_seconds():.0f} SECONDS"

    def build(self) -> None:
        with self._steps.step("build") as step:
            command("connect", "build")
            step.words = "source and HashRowSMT compiled, each plugin in its own folder"

    def up_seconds(self) -> float:
        """Start everything; how long it took tells how slow this machine is."""
        from headgate.config.settings import load_settings

        with self._steps.step("up") as step:
            command("local", "up", "--with", "cassandra,connect", "--timeout", "240")
            running = load_settings(self._root)
            step.words = (
                f"broker {running.bootstrap_servers}, Cassandra on {running.cassandra_port}, "
                f"Connect {running.kafka_connect_url}, engine {running.connect_url}"
            )
        return step.seconds

    def topics(self) -> None:
        with self._steps.step("topics") as step:
            command("topics", "create", "--table", TABLE)
            step.words = "topic1, topic2, audit, status counts, dead letters"

    def table(self, settings: Settings) -> None:
        """The empty table in Cassandra: connector and hasher look at its columns."""
        from headgate.demo.reconcile.feed import plan_of
        from headgate.demo.reconcile.planting import prepare
        from headgate.reconcile.cassandra.session import open_session

        with self._steps.step("table") as step, open_session(settings) as cassandra:
            name = plan_of(settings, TABLE).cassandra
            prepare(cassandra, name)
            step.words = f"{name} in Cassandra, empty"

    def start(self) -> None:
        with self._steps.step("start") as step:
            command("job", "start", JOB)
            step.words = f"{JOB} as a stream: it judges what comes from now on"

    def deploy(self) -> None:
        with self._steps.step("connect") as step:
            command("connect", "deploy", TABLE)
            step.words = f"Connect polls {TABLE}_table and hashes its rows to topic2"

    @contextmanager
    def hasher(self, log: Path) -> Generator[None]:
        """The hasher as a child, from here on; stopped cleanly, or ended with us."""
        with self._steps.step("hasher") as step:
            child = start_hasher(log)
            try:
                wait_for(lambda: "metrics at" in words_of(log), lambda: words_of(log), step)
            except BaseException:
                child.stop(STOP_SECONDS)
                raise
            step.words = "looks up every row that topic1 speaks of, and reads again what differs"
        try:
            yield
        finally:
            child.stop(STOP_SECONDS)

    def plant(self, phase: Phase, keys: int, seed: int) -> Fed:
        from headgate.demo.reconcile.feed import fed

        with self._steps.step(f"plant {phase}") as step:
            done = fed(TABLE, phase, keys, seed)
            messages = sum(done.messages.values())
            step.words = f"{done.rows:,} rows into Cassandra, {messages:,} messages"
            if phase == "first":
                self._sent_at = time.monotonic()
                kinds = len(done.planted.roles) - 1
                step.words = f"{keys:,} keys, {kinds} kinds of defect: {step.words}"
            elif phase != "early":
                step.words += f", {self._age:.0f} s after the first"
        if phase == "soon":
            self._refuse_late()
        return done

    def _refuse_late(self) -> None:
        if self._age > self._window.total_seconds() - POLLED_SECONDS:
            raise OperationError(
                "this machine is too slow for the window",
                why=f"the second wave came {self._age:.0f} s after the first, and is to come"
                f" within {self._window.total_seconds():.0f} s",
                fix="close other programs, or give it longer: --window",
            )

    @property
    def _age(self) -> float:
        """Seconds since the first wave was sent."""
        return time.monotonic() - self._sent_at

    def warm(self, settings: Settings) -> None:
        """Wait for a first batch: it compiles everything, which takes longer than to run it."""
        from headgate.core.lake.duckdb_reader import Lake

        with self._steps.step("warm up") as step, Lake.open(settings) as lake:
            wait_for(lambda: bool(newest(lake)), lambda: "no key is judged yet", step)
            step.words = "the first batch is written"

    def heard(self, settings: Settings, keys: int) -> bool:
        """Wait until each planted key has a first verdict, or the second wave cannot wait any more.

        A slow machine may judge nothing before the second wave comes: then its keys never wait.
        """
        from headgate.core.lake.duckdb_reader import Lake

        limit = SOON * self._window.total_seconds()
        with self._steps.step("judge") as step, Lake.open(settings) as lake:
            while (seen := len(newest(lake))) < keys and self._age < limit:
                step.log.write(f"{seen:,} of {keys:,} keys judged\n")
                time.sleep(POLL_SECONDS)
            step.words = f"{seen:,} of {keys:,} keys judged {self._age:.0f} s after sending"
        return seen >= keys

    def past_the_window(self, settings: Settings, keys: int) -> None:
        """Whatever comes from now on is late; every key has had a first verdict by then."""
        from headgate.core.lake.duckdb_reader import Lake

        end = self._window.total_seconds() + 2
        with self._steps.step("window") as step, Lake.open(settings) as lake:
            wait_for(
                lambda: self._age > end and len(newest(lake)) >= keys,
                lambda: f"{max(end - self._age, 0):.0f} s until the window is over",
                step,
            )
            step.words = f"{keys:,} keys have a verdict, and the window is over"

    def settle(self, settings: Settings, planted: dict[str, int]) -> None:
        """Wait until every key has the status that it should have, or had time enough for it."""
        from headgate.core.lake.duckdb_reader import Lake

        patience = (self._window + self._grace).total_seconds() + SWEEP_SECONDS
        with self._steps.step("settle") as step, Lake.open(settings) as lake:
            end = time.monotonic() + patience
            while (found := newest_counts(lake)) != planted and time.monotonic() < end:
                waiting = found.get("PENDING", 0) + found.get("DELETE_PENDING", 0)
                step.log.write(f"{waiting:,} keys wait for their deadline\n")
                time.sleep(POLL_SECONDS)
            step.words = ", ".join(f"{n:,} {status}" for status, n in found.items())
            step.holds = found == planted

    def told(self, gathering: PairGathering, planted: dict[str, int]) -> None:
        """Wait until gauges and topics have caught up, or had time enough for it."""
        with self._steps.step("tell") as step:
            end = time.monotonic() + TOLD_SECONDS
            while not (caught_up := gathering.stands(planted)) and time.monotonic() < end:
                step.log.write("gauges, dq-metrics and the audit topic follow\n")
                time.sleep(POLL_SECONDS)
            step.words = (
                "gauges, dq-metrics and the audit topic have caught up"
                if caught_up
                else "gauges and topics do not say the same yet"
            )
            step.holds = caught_up

    def compare(self, gathering: PairGathering, folder: Path, *, waited: bool) -> Compared:
        """Every planted key, and every sum in every place."""
        from headgate.demo.reconcile.comparison import wrong_keys
        from headgate.demo.reconcile.planting import read_keys, read_sums

        with self._steps.step("compare") as step:
            found = gathering.keys()
            wrong = wrong_keys(expected(read_keys(folder), waited=waited), found)
            lines = gathering.lines(read_sums(folder), found, gathering.recount())
            compared = Compared(len(found), wrong, lines)
            for told in (*wrong, *(line for line in lines if not line.holds)):
                step.log.write(f"{told.sentence()}\n")
            differing = sum(not line.holds for line in lines)
            counts = sum(len(line.found) for line in lines)
            step.words = (
                f"all {len(found):,} keys are as planted, and so are {counts} counts"
                if compared.holds
                else f"not as planted: {count_of(len(wrong), 'key')}, {count_of(differing, 'sum')}"
            )
            step.holds = compared.holds
        return compared

    def prove(self, file: Path) -> None:
        with self._steps.step("certify") as step:
            found = reported(Proof, "certify", "--all", "--out", str(file))
            statements = sum(len(account.checks) for account in found.rules)
            step.words = f"every record is accounted for: {statements} statements hold"

    def report(self, folder: Path) -> str:
        with self._steps.step("report") as step:
            made = reported(Report, "reconcile", "report", TABLE, "--out", str(folder))
            step.words = f"a page about {made.keys:,} keys: {Path(made.html).name}"
        return made.html

    def stop(self) -> None:
        with self._steps.step("stop") as step:
            command("job", "stop", JOB)
            step.words = "between two batches"
