"""`headgate demo quality`: plants defects, evaluates the rules, and compares every count with what was planted.

The first half are the steps, the second half the command that takes them.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.demo.own_home import (
    SHORT_LIVED,
    alone,
    embedded_environment,
    emptied,
    replaced,
    stopped_on_failure,
)
from headgate.demo.steps import Data, JobRun, Proof, Walk, command, reported
from headgate.errors import DifferenceError, UsageError
from headgate.terminal.console import console
from headgate.terminal.steps import Steps, wait_for

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.demo.quality.comparison import Comparison
    from headgate.demo.quality.counts import Datagrams, Gathering, Posts, Sinks
    from headgate.demo.quality.planting import Planted
    from headgate.quality.compile.resolve import JudgedTable
    from headgate.quality.spec.rule_set import RuleTable
    from headgate.terminal.steps import StepReport


NAME_WIDTH = 18


class Report(Data):
    html: str


class QualityWalk(Walk):
    """The steps of `headgate demo quality`; what was planted is kept by table."""

    def __init__(self, steps: Steps, root: Path) -> None:
        super().__init__(steps, root)
        self.planted: dict[str, list[Planted]] = {}

    def rules(self, tables: tuple[JudgedTable, ...]) -> None:
        with self._steps.step("rules") as step:
            command("rules", "check")
            count = sum(len(table.rules) for table in tables)
            names = ", ".join(table.table.name for table in tables)
            step.words = f"{count} rules checked: {names}"

    def feed(
        self,
        table: JudgedTable,
        rows: int,
        seed: int,
        start: datetime | None = None,
        *,
        late: bool = False,
    ) -> None:
        """Send rows and keep what was planted in them."""
        from headgate.demo.quality.feed import fed

        name = table.table.name
        with self._steps.step(f"feed {name}") as step:
            done = fed(name, rows, seed, start=start)
            self.planted.setdefault(name, []).append(done.planted)
            bad = sum(defect.rows for defect in done.planted.defects)
            kinds = len(done.planted.defects)
            step.words = f"{done.sent:,} messages, {bad:,} with one of {kinds} defects"
            if late:
                step.words += ", for windows that are closed"

    def reconcile(self, table: JudgedTable) -> None:
        """Both topics to their end, waited for."""
        job = f"reconcile-{table.table.name}"
        with self._steps.step(f"reconcile {table.table.name}") as step:
            step.words = reported(JobRun, "job", "run", job).outcome

    def start(self, table: JudgedTable) -> None:
        with self._steps.step(f"start {table.table.name}") as step:
            command("job", "start", f"quality-{table.table.name}")
            step.words = "as a stream: it judges what comes from now on"

    def judged(self, table: JudgedTable, store: OpsStore) -> None:
        """Wait until the stream has settled all that was sent."""
        name = table.table.name
        sent = sum(sum(one.messages.values()) for one in self.planted[name])
        with self._steps.step(f"judge {name}") as step:
            wait_for(
                lambda: settled(store, name) >= sent,
                lambda: f"{settled(store, name):,} of {sent:,} records settled",
                step,
            )
            batches = len(store.ledger(f"quality-{name}"))
            step.words = f"{sent:,} records settled, {_plural(batches, 'batch', 'batches')} so far"

    def closed(self, store: OpsStore) -> None:
        """Wait until every window is closed, and every sink has its record."""
        with self._steps.step("windows") as step:
            wait_for(lambda: all_sent(store), lambda: windows_words(store), step)
            step.words = f"{windows_words(store)}; every sink has them"

    def stop(self, table: JudgedTable) -> None:
        with self._steps.step(f"stop {table.table.name}") as step:
            command("job", "stop", f"quality-{table.table.name}")
            step.words = "between two batches"

    def compare(self, tables: tuple[JudgedTable, ...], sinks: Sinks) -> tuple[Comparison, ...]:
        """Every count in every place against what was planted."""
        with self._steps.step("compare") as step, gathering_of(sinks) as gathering:
            found = tuple(
                gathering.compared(table, self.planted[table.table.name]) for table in tables
            )
            total = sum(comparison.compared for comparison in found)
            differing = sum(not line.holds for one in found for line in one.lines)
            step.words = (
                f"all {total} counts are what was planted"
                if not differing
                else f"{differing} lines differ from what was planted"
            )
            step.holds = not differing
        return found

    def prove(self, file: Path) -> None:
        """The ledger against tables, dead letters and windows, as for any data."""
        with self._steps.step("certify") as step:
            found = reported(Proof, "certify", "--all", "--out", str(file))
            statements = sum(len(account.checks) for account in found.rules)
            step.words = f"every record is accounted for: {statements} statements hold"

    def report(self, tables: tuple[JudgedTable, ...], folder: Path) -> tuple[str, ...]:
        """A page for each table."""
        with self._steps.step("report") as step:
            pages = tuple(page_of(table.table, folder) for table in tables)
            step.words = f"{len(pages)} pages with counts, trend and failing rows"
        return pages


def page_of(table: RuleTable, folder: Path) -> str:
    """The page that was written: of a pair what its keys are now, else what the run found."""
    kind = "reconcile" if table.is_pair else "rules"
    return reported(Report, kind, "report", table.name, "--out", str(folder / table.name)).html


@contextmanager
def gathering_of(sinks: Sinks) -> Generator[Gathering]:
    """One look at all places, with a session on the engine."""
    from headgate.core.engine.connect import connect
    from headgate.core.lake.spark import sql
    from headgate.demo.quality.counts import Gathering
    from headgate.terminal.project import open_store

    settings, store = open_store()
    with store, connect(settings) as session:
        yield Gathering(
            settings,
            store,
            lambda query: [row.asDict() for row in sql(session, query).collect()],
            sinks,
        )


def settled(store: OpsStore, table: str) -> int:
    return sum(row.read for row in store.ledger(f"quality-{table}"))


def all_sent(store: OpsStore) -> bool:
    still_open = any(one[0] for one in store.window_counts().values())
    return not still_open and not any(store.waiting_windows(sink) for sink in store.sinks())


def windows_words(store: OpsStore) -> str:
    counts = list(store.window_counts().values())
    still_open, closed, late = (sum(one[at] for one in counts) for at in range(3))
    waiting = f"{still_open} open, " if still_open else ""
    return f"{waiting}{_plural(closed, 'window')} closed, {late} closed again for late rows"


def _plural(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


ROWS = 20_000
# The stream's rows come in three bursts, of which the last is late.
BURSTS = 3
QUICK = {"TRIGGER_SECONDS": "2"}


@dataclass(frozen=True)
class Burst:
    """Some rows of a stream, with event times from `start` on."""

    rows: int
    seed: int
    start: datetime


@dataclass(frozen=True)
class QualityDemo:
    """One demo: its steps, every comparison, and where the reports are."""

    home: str
    seconds: float
    fetch_seconds: float
    holds: bool
    steps: tuple[StepReport, ...]
    comparisons: tuple[Comparison, ...]
    reports: tuple[str, ...]


@click.command("quality")
@click.option("--rows", type=click.IntRange(min=1000), default=ROWS, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=42, show_default=True)
@click.option("--keep-running", is_flag=True, help="Leave broker and engine running at the end.")
def demo_quality(rows: int, seed: int, keep_running: bool) -> None:
    """Plant defects, judge the rows, and find every single one again.

    Every table of rules/feed/ is fed. Those with two sources are reconciled to the end of their
    topics, those with one are judged as a stream, with a burst that is late. Then all counts in
    results, metrics, ledger, dq.metrics, DogStatsD, HTTP and Prometheus are compared with what was
    planted: exit code 5 if one differs.

    Everything stands in .headgate/demo-quality, which is emptied first.

    \b
    Examples:
      headgate demo quality
      headgate demo quality --rows 5000 --seed 7
      headgate -o json demo quality
    """
    from headgate.config.env_files import find_root

    root = find_root(Path.cwd())
    home = root / ".headgate" / "demo-quality"
    environ = {**SHORT_LIVED, **QUICK, **embedded_environment(root, home, os.environ)}
    with alone(home), replaced(environ):
        report = run(root, home, rows, seed, keep_running)
    console.data(report, text=text(report, root))
    if not report.holds:
        raise difference(report)


def run(root: Path, home: Path, rows: int, seed: int, keep_running: bool) -> QualityDemo:
    """Take every step; whatever happens, nothing is left running unless that is asked for."""
    from headgate.terminal.steps import Steps

    console.say(f"Headgate demo: {rows:,} rows a table, every planted defect found again\n")
    emptied(home)
    begun = time.monotonic()
    steps = Steps(home / "logs", "quality", NAME_WIDTH)
    walk = QualityWalk(steps, root)
    with listening() as sinks:
        with stopped_on_failure(home):
            fetched = walk.fetch()
            tables = tables_of(root)
            walk.rules(tables)
            walk.up()
            judge_all(walk, tables, rows, seed)
            comparisons = walk.compare(tables, sinks)
            walk.prove(home / "certificates" / "quality.json")
            reports = walk.report(tables, home / "reports")
        if not keep_running:
            walk.down()
    return QualityDemo(
        home=str(home),
        seconds=round(time.monotonic() - begun - fetched, 1),
        fetch_seconds=round(fetched, 1),
        holds=all(comparison.holds for comparison in comparisons),
        steps=tuple(steps.taken),
        comparisons=comparisons,
        reports=reports,
    )


@contextmanager
def listening() -> Generator[Sinks]:
    """A UDP listener and an HTTP receiver, and the settings that send metrics to them."""
    from headgate.demo.quality.counts import Sinks, datagrams, posts

    with datagrams() as agent, posts() as hook:
        os.environ |= sink_settings(agent, hook)
        yield Sinks(agent.texts, hook.bodies)


def sink_settings(agent: Datagrams, hook: Posts) -> dict[str, str]:
    return {"DOGSTATSD_ADDRESS": f"127.0.0.1:{agent.port}", "METRICS_PUSH_URL": hook.url}


def tables_of(root: Path) -> tuple[JudgedTable, ...]:
    """Every rule table that has a feed."""
    from headgate.config.settings import load_settings
    from headgate.demo.quality.declaration import FOLDER
    from headgate.quality.compile.resolve import open_rules

    settings: Settings = load_settings(root)
    names = sorted(file.stem for file in (root / FOLDER).glob("*.yml"))
    if not names:
        raise UsageError("there is no feed", why=f"{FOLDER} is empty", fix=f"write {FOLDER}/x.yml")
    return tuple(open_rules(settings, name) for name in names)


def judge_all(walk: QualityWalk, tables: tuple[JudgedTable, ...], rows: int, seed: int) -> None:
    """The streams first: while their windows wait to be closed, the pairs are reconciled."""
    from headgate.terminal.project import open_store

    streams = [table for table in tables if not table.table.is_pair]
    settings, store = open_store()
    with store:
        for table in streams:
            stream(walk, table, store, bursts(settings, table, rows // BURSTS, seed))
        for table in (table for table in tables if table.table.is_pair):
            walk.feed(table, rows, seed)
            walk.reconcile(table)
        walk.closed(store)
        for table in streams:
            walk.stop(table)


def bursts(settings: Settings, table: JudgedTable, rows: int, seed: int) -> tuple[Burst, ...]:
    """Two that follow each other in event time, then one for windows that are closed by then."""
    from headgate.demo.quality.feed import open_feed, order_of

    feed = open_feed(settings, table).value
    span = feed.event_time.span
    first = order_of(feed, table, rows, seed, (), None).start
    if feed.event_time.start is None:
        first -= span
    starts = (first, first + span, first)
    return tuple(Burst(rows, seed + number, start) for number, start in enumerate(starts))


def stream(walk: QualityWalk, table: JudgedTable, store: OpsStore, sent: tuple[Burst, ...]) -> None:
    """Start the job behind the first burst, and let it judge each before the next is sent."""
    for number, burst in enumerate(sent):
        walk.feed(table, burst.rows, burst.seed, burst.start, late=number == len(sent) - 1)
        if not number:
            walk.start(table)
        walk.judged(table, store)


def difference(report: QualityDemo) -> DifferenceError:
    lines = [
        f"{one.table}: {line.kind} {line.name}: planted {line.planted:,}, found "
        + ", ".join(f"{n:,} in {place}" for place, n in line.found.items() if n != line.planted)
        for one in report.comparisons
        for line in one.lines
        if not line.holds
    ]
    return DifferenceError(
        "what was found is not what was planted",
        why="\n".join(lines),
        fix=f"read {report.home}/logs, or `headgate ledger show` there",
    )


def text(report: QualityDemo, root: Path) -> str:
    """The summary for a person."""
    from headgate.demo.quality import comparison as quality
    from headgate.terminal.steps import took

    home = Path(report.home).relative_to(root)
    blocks = "\n\n".join(quality.text(comparison) for comparison in report.comparisons)
    total = sum(comparison.compared for comparison in report.comparisons)
    verdict = f"All {total} counts are what was planted" if report.holds else "They differ"
    pages = "\n".join(f"  {Path(page).relative_to(root)}" for page in report.reports)
    return f"""
{blocks}

{verdict}
  {took(report.seconds, report.fetch_seconds)}

Where to look next
{pages}
  export HEADGATE_HOME={shlex.quote(str(home))}
  .venv/bin/headgate local up       broker and engine on these data again
  .venv/bin/headgate sql "SELECT * FROM dq_results_{report.comparisons[0].table} LIMIT 20"
  .venv/bin/headgate ledger show    what became of every offset"""
