"""`headgate demo filters`: from a document to a dealer's log, with two people and a proof."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass
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
from headgate.errors import DifferenceError
from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.demo.filters.filter_proof import FilterProof
    from headgate.demo.filters.filters_walk import FiltersWalk
    from headgate.terminal.steps import StepReport

EVENTS, LATER = 300, 60
HOME = ".headgate/demo-filters"


@dataclass(frozen=True)
class FiltersDemo:
    """One demo: its steps, and the proof of every filter."""

    home: str
    seconds: float
    fetch_seconds: float
    peak_memory_mib: int | None
    holds: bool
    outcomes: Mapping[str, int]
    proofs: tuple[FilterProof, ...]
    steps: tuple[StepReport, ...]


@click.command("filters")
@click.option("--events", type=click.IntRange(min=30), default=EVENTS, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=7, show_default=True)
@click.option("--keep-running", is_flag=True, help="Leave the services running at the end.")
def demo_filters(events: int, seed: int, keep_running: bool) -> None:
    """Route service events to three dealers, change a filter while they flow, and prove the rest.

    Starts Kafka, PostgreSQL, Connect with Debezium, the engine, the API and three consumers. One
    person writes the filters, another approves them, a third deploys them. Then events are posted,
    one filter is updated and rolled back, another paused and resumed, while events go on. At the
    end the ledger says which revision judged which offset: no gap, no overlap; and ledger, topics
    and consumers must count the same: exit code 5 if one differs.

    Everything stands in .headgate/demo-filters, which is emptied first.

    \b
    Examples:
      headgate demo filters
      headgate demo filters --events 2000 --seed 3
      headgate -o json demo filters
    """
    from headgate.config.env_files import find_root
    from headgate.demo.demo import SHORT_LIVED

    root = find_root(Path.cwd())
    home = root / HOME
    own = {**SHORT_LIVED, **embedded_environment(root, home, os.environ)}
    with alone(home), replaced(own):
        report = run(root, home, events, seed, keep_running)
    console.data(report, text=text(report, root))
    if not report.holds:
        raise difference(report)


def run(root: Path, home: Path, events: int, seed: int, keep_running: bool) -> FiltersDemo:
    """Take every step; whatever happens, nothing is left running unless that is asked for."""
    from headgate.demo.filters.filters_walk import NAME_WIDTH, FiltersWalk
    from headgate.local.memory import PeakMemory
    from headgate.terminal.steps import Steps

    console.say("Headgate demo: three dealers, three filters, two people for each\n")
    emptied(home)
    begun = time.monotonic()
    steps = Steps(home / "logs", "filters", NAME_WIDTH)
    walk = FiltersWalk(steps, root, home)
    with PeakMemory() as memory:
        with stopped_on_failure(home):
            fetched = walk.fetch()
            walk.up()
            proofs, outcomes = routed(walk, events, seed)
        if not keep_running:
            walk.down()
    return FiltersDemo(
        home=str(home),
        seconds=round(time.monotonic() - begun - fetched, 1),
        fetch_seconds=round(fetched, 1),
        peak_memory_mib=memory.peak // 2**20 if memory.peak else None,
        holds=not any(proof.faults for proof in proofs),
        outcomes=outcomes,
        proofs=proofs,
        steps=tuple(steps.taken),
    )


def routed(
    walk: FiltersWalk, events: int, seed: int
) -> tuple[tuple[FilterProof, ...], Mapping[str, int]]:
    """From no filter at all to the proof; API and consumers are stopped behind it."""
    from headgate.demo.filters.filter_proof_gather import routed_records
    from headgate.demo.filters.filter_stage import SOURCE
    from headgate.terminal.project import open_store

    settings, store = open_store()
    with store, walk.stage(store) as stage:
        walk.create(stage)
        walk.approve(stage)
        walk.source()
        walk.deploy(stage)
        walk.consume(stage)
        walk.samples(stage)
        walk.events(stage, events, seed)
        walk.update(stage, LATER, seed)
        walk.rollback(stage, LATER, seed)
        walk.pause(stage, LATER, seed)
        walk.stop(stage)
        proofs = walk.prove(stage, settings.need("bootstrap_servers"))
        return proofs, routed_records(store, SOURCE)


def difference(report: FiltersDemo) -> DifferenceError:
    told = [fault for proof in report.proofs for fault in proof.faults]
    return DifferenceError(
        "what was routed is not what was to be routed",
        why="\n".join(told),
        fix=f"read {report.home}/logs",
    )


def text(report: FiltersDemo, root: Path) -> str:
    """The summary for a person."""
    from headgate.demo.filters import filter_proof
    from headgate.demo.filters.filter_stage import SOURCE
    from headgate.terminal.steps import took

    home = Path(report.home).relative_to(root)
    total = took(report.seconds, report.fetch_seconds, report.peak_memory_mib)
    good = "Every event went where its filter said, and nowhere else"
    return f"""
{filter_proof.text(report.proofs, report.outcomes, SOURCE)}

{good if report.holds else "They differ"}
  {total}

Where to look next
  export HEADGATE_HOME={shlex.quote(str(home))}
  git --git-dir {home}/git/filters.git log --stat     every accepted filter is a commit
  .venv/bin/headgate audit verify                     who did what, in a chain that shows any change
  .venv/bin/headgate ledger show --job router-{SOURCE}
  less {home}/logs/consumer-001.log"""
