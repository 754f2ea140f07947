"""`headgate demo quality`: planted defects found again in every table, ledger and sink."""

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
    alone,
    embedded_environment,
    emptied,
    replaced,
    stopped_on_failure,
)
from headgate.errors import DifferenceError, UsageError
from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.demo.quality.comparison import Comparison
    from headgate.demo.quality.quality_gather import Sinks
    from headgate.demo.quality.quality_walk import QualityWalk
    from headgate.demo.quality.receivers import Datagrams, Posts
    from headgate.quality.compile.model import JudgedTable
    from headgate.terminal.steps import StepReport

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
    from headgate.demo.demo import SHORT_LIVED

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
    from headgate.demo.quality.quality_walk import NAME_WIDTH, QualityWalk
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
    from headgate.demo.quality.quality_gather import Sinks
    from headgate.demo.quality.receivers import datagrams, posts

    with datagrams() as agent, posts() as hook:
        os.environ |= sink_settings(agent, hook)
        yield Sinks(agent.texts, hook.bodies)


def sink_settings(agent: Datagrams, hook: Posts) -> dict[str, str]:
    return {"DOGSTATSD_ADDRESS": f"127.0.0.1:{agent.port}", "METRICS_PUSH_URL": hook.url}


def tables_of(root: Path) -> tuple[JudgedTable, ...]:
    """Every rule table that has a feed."""
    from headgate.config.settings import load_settings
    from headgate.demo.quality.rule_feed_loader import FOLDER
    from headgate.quality.compile.judge import open_rules

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
