"""`headgate demo reconcile`: plants keys in three waves, reconciles them as a stream, compares key by key."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass
from datetime import timedelta
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
from headgate.errors import DifferenceError
from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.demo.reconcile.comparison import Line, Wrong
    from headgate.demo.reconcile.steps import Compared, ReconcileWalk
    from headgate.terminal.steps import StepReport

KEYS = 20_000
FEWEST = 100
MOST_TOLD = 20
HOME = ".headgate/demo-reconcile"
QUICK = {"TRIGGER_SECONDS": "2"}


@dataclass(frozen=True)
class ReconcileDemo:
    """One demo: its steps, what is not as planted, and where the report is."""

    home: str
    seconds: float
    fetch_seconds: float
    peak_memory_mib: int | None
    holds: bool
    keys: int
    wrong: tuple[Wrong, ...]
    lines: tuple[Line, ...]
    steps: tuple[StepReport, ...]
    report: str
    certificate: str


@click.command("reconcile")
@click.option("--keys", type=click.IntRange(min=FEWEST), default=KEYS, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=42, show_default=True)
@click.option(
    "--window", type=click.IntRange(30, 600), help="Seconds. Default: 45, more if it starts slowly."
)
@click.option("--grace", type=click.IntRange(5, 600), help="Seconds. Default: 20.")
@click.option("--keep-running", is_flag=True, help="Leave all services running at the end.")
def demo_reconcile(
    keys: int, seed: int, window: int | None, grace: int | None, keep_running: bool
) -> None:
    """Plant defects on both sides of a reconciliation, and find every single one again.

    Starts Kafka, Cassandra and Connect with our source and SMT, plants keys on-prem and in the
    cloud, in three waves of which the last is late, and reconciles them as a stream. Then every key
    must have the right status and, where rows differ, the right kind; nothing else may be
    reported; and all counts must agree in every place: exit code 5 if one differs.

    Everything stands in .headgate/demo-reconcile, which is emptied first.

    \b
    Examples:
      headgate demo reconcile
      headgate demo reconcile --keys 2000 --seed 7
      headgate demo reconcile --window 120 --grace 60
      headgate -o json demo reconcile
    """
    from headgate.config.env_files import find_root

    root = find_root(Path.cwd())
    home = root / HOME
    own = {**SHORT_LIVED, **QUICK, **embedded_environment(root, home, os.environ)}
    with alone(home), replaced(own):
        report = run(root, home, Order(keys, seed, window, grace), keep_running)
    console.data(report, text=text(report, root))
    if not report.holds:
        raise difference(report)


@dataclass(frozen=True)
class Order:
    """What is planted, and how long sides wait for each other, in seconds."""

    keys: int
    seed: int
    window: int | None = None
    grace: int | None = None

    def waits(self, started: float) -> tuple[timedelta, timedelta]:
        """Window and grace on a machine that took so many seconds to start everything."""
        from headgate.demo.reconcile.steps import GRACE, LONGEST, SLOWNESS, WINDOW

        slow = min(max(WINDOW, timedelta(seconds=round(SLOWNESS * started))), LONGEST)
        return (
            timedelta(seconds=self.window) if self.window else slow,
            timedelta(seconds=self.grace) if self.grace else GRACE,
        )


def run(root: Path, home: Path, order: Order, keep_running: bool) -> ReconcileDemo:
    """Take every step; whatever happens, nothing is left running unless that is asked for."""
    from headgate.demo.reconcile.steps import NAME_WIDTH, ReconcileWalk
    from headgate.local.process import PeakMemory
    from headgate.terminal.steps import Steps

    console.say(f"Headgate demo: {order.keys:,} keys on both sides, every planted defect found\n")
    emptied(home)
    begun = time.monotonic()
    steps = Steps(home / "logs", "reconcile", NAME_WIDTH)
    walk = ReconcileWalk(steps, root)
    file = home / "certificates" / "reconcile.json"
    with PeakMemory() as memory:
        with stopped_on_failure(home):
            fetched = walk.fetch()
            walk.build()
            walk.wait_so_long(*order.waits(walk.up_seconds()))
            compared = reconciled(walk, home, order)
            walk.prove(file)
            page = walk.report(home / "reports" / "business")
        if not keep_running:
            walk.down()
    return ReconcileDemo(
        home=str(home),
        seconds=round(time.monotonic() - begun - fetched, 1),
        fetch_seconds=round(fetched, 1),
        peak_memory_mib=memory.peak // 2**20 if memory.peak else None,
        holds=compared.holds and all(step.holds for step in steps.taken),
        keys=compared.keys,
        wrong=compared.wrong,
        lines=compared.lines,
        steps=tuple(steps.taken),
        report=page,
        certificate=str(file),
    )


def reconciled(walk: ReconcileWalk, home: Path, order: Order) -> Compared:
    """From empty topics to settled verdicts; the hasher and the job are stopped behind it."""
    from headgate.demo.reconcile.steps import pair_gathering
    from headgate.terminal.project import open_store

    settings, store = open_store()
    with store:
        walk.topics()
        walk.table(settings)
        walk.start()
        walk.deploy()
        with walk.hasher(home / "logs" / "hasher.log"):
            walk.plant("early", order.keys, order.seed)
            walk.warm(settings)
            planted = walk.plant("first", order.keys, order.seed).planted
            keys = sum(planted.statuses.values())
            waited = walk.heard(settings, keys)
            walk.plant("soon", order.keys, order.seed)
            walk.past_the_window(settings, keys)
            walk.plant("late", order.keys, order.seed)
            walk.settle(settings, dict(planted.statuses))
        with pair_gathering(settings, store) as gathering:
            walk.told(gathering, dict(planted.statuses))
            compared = walk.compare(gathering, home / "data" / "pairs", waited=waited)
        walk.stop()
    return compared


def difference(report: ReconcileDemo) -> DifferenceError:
    told = [wrong.sentence() for wrong in report.wrong[:MOST_TOLD]]
    if len(report.wrong) > MOST_TOLD:
        told.append(f"… and {len(report.wrong) - MOST_TOLD:,} keys more")
    told += [line.sentence() for line in report.lines if not line.holds]
    told += [f"step {step.name}: {step.words}" for step in report.steps if not step.holds]
    return DifferenceError(
        "what was found is not what was planted",
        why="\n".join(told),
        fix=f"read {report.home}/logs; `headgate reconcile history business KEY` tells of one key",
    )


def text(report: ReconcileDemo, root: Path) -> str:
    """The summary for a person."""
    from headgate.demo.reconcile import comparison as reconcile_planted
    from headgate.terminal.steps import took

    home = Path(report.home).relative_to(root)
    total = took(report.seconds, report.fetch_seconds, report.peak_memory_mib)
    counts = sum(len(line.found) for line in report.lines)
    good = f"All {report.keys:,} keys are as planted, and so are {counts} counts"
    return f"""
{reconcile_planted.text(report.lines)}

{good if report.holds else "They differ"}
  {total}

Where to look next
  {Path(report.report).relative_to(root)}
  export HEADGATE_HOME={shlex.quote(str(home))}
  .venv/bin/headgate local up --with cassandra    broker, engine and Cassandra on these data again
  .venv/bin/headgate reconcile status business
  .venv/bin/headgate sql "SELECT * FROM dq_hash_check LIMIT 20"
  .venv/bin/headgate ledger show                  what became of every offset"""
