"""`headgate demo filters`: creates, approves, deploys, updates, rolls back and pauses filters while events flow.

The first half are the steps, the second half the command that takes them.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
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
from headgate.demo.steps import Walk, command
from headgate.errors import DifferenceError, OperationError
from headgate.terminal.console import console
from headgate.terminal.steps import Step, Steps

if TYPE_CHECKING:
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.demo.filters.events import Drawn
    from headgate.demo.filters.proof import FilterProof
    from headgate.demo.filters.stage import Stage
    from headgate.terminal.steps import StepReport


NAME_WIDTH = 10
WAIT_SECONDS = 120.0
LEAST = Decimal(500)
FIRST, THIRD = "service-by-dealer-001", "service-by-dealer-003"
THIRD_DEALER = "DEALER-003"


class FiltersWalk(Walk):
    """The steps of `headgate demo filters`."""

    bundles = ("kafka", "spark", "connect", "debezium-postgres")

    def __init__(self, steps: Steps, root: Path, home: Path) -> None:
        super().__init__(steps, root)
        self._home = home

    def up(self) -> None:
        from headgate.config.settings import load_settings

        with self._steps.step("up") as step:
            command("local", "up", "--with", "postgres,connect", "--timeout", "240")
            running = load_settings(self._root)
            step.words = (
                f"broker {running.bootstrap_servers}, PostgreSQL on {running.postgres_port},"
                f" Connect {running.kafka_connect_url}, engine"
            )

    @contextmanager
    def stage(self, store: OpsStore) -> Generator[Stage]:
        """The API with a key for each person; all that is started on it is stopped behind it."""
        from headgate.demo.filters.stage import PEOPLE, Stage

        with Stage(self._root, self._home, store, os.environ) as stage:
            with self._steps.step("serve") as step:
                stage.serve()
                people = ", ".join(f"{who} ({' and '.join(r)})" for who, r in PEOPLE.items())
                step.words = f"{stage.url}; keys for {people}"
            yield stage

    def create(self, stage: Stage) -> None:
        with self._steps.step("create") as step:
            stage.create(step.log.write)
            step.words = "three filters by ana: two statements each, valid, waiting for approval"

    def approve(self, stage: Stage) -> None:
        with self._steps.step("approve") as step:
            step.log.write(f"{stage.refused_to_ana(FIRST)}\n")
            for name in _filters(stage):
                stage.approve(name)
            step.words = "ana may not approve what she wrote; ben approves all three"

    def source(self) -> None:
        from headgate.demo.filters.stage import SOURCE

        with self._steps.step("source") as step:
            command("connect", "deploy", "events")
            command("job", "start", f"router-{SOURCE}")
            step.words = f"Debezium reads event_headers into {SOURCE}; one query routes it"

    def deploy(self, stage: Stage) -> None:
        with self._steps.step("deploy") as step:
            begun = time.monotonic()
            for name in _filters(stage):
                stage.order(name, "deploy")
            step.words = f"by dora: live after {time.monotonic() - begun:.1f} s"

    def consume(self, stage: Stage) -> None:
        with self._steps.step("consume") as step:
            stage.consume()
            step.words = "three consumers, each on its own topic and group"

    def samples(self, stage: Stage) -> None:
        """The documents' three events: each dealer logs its own."""
        from headgate.demo.filters.stage import NUMBERS, expected, samples

        events = samples(self._root)
        with self._steps.step("samples") as step:
            self._through(stage, events, expected(events), step)
            for event, number in zip(events, NUMBERS, strict=True):
                log = stage.log(f"consumer-{number}").read_text("utf-8")
                if log.count(event.id) == 0 or any(e.id in log for e in events if e is not event):
                    raise OperationError(f"the consumer of {event.dealer} logged something else")
            step.words = "one event each, logged by its own dealer and by no other"

    def events(self, stage: Stage, count: int, seed: int) -> None:
        from headgate.demo.filters.stage import expected

        events = _drawn(count, seed, "event")
        with self._steps.step("events") as step:
            told = expected(events)
            self._through(stage, events, told, step)
            counts = ", ".join(f"{len(ids)} for {dealer}" for dealer, ids in told.items())
            step.words = f"{count:,} more, {counts}, the rest for nobody"

    def update(self, stage: Stage, count: int, seed: int) -> None:
        """A new version of the first filter, by two people, while the others go on."""
        from headgate.demo.filters.stage import dearer, expected

        document = next(iter(stage.documents.values()))
        with self._steps.step("update") as step:
            stage.people["ana"].change(FIRST, dearer(document, LEAST))
            stage.approve(FIRST)
            stage.order(FIRST, "deploy")
            events = _drawn(count, seed, "updated")
            self._through(stage, events, expected(events, LEAST), step)
            step.words = f"version 2 of {FIRST} takes only what costs {LEAST} or more"

    def rollback(self, stage: Stage, count: int, seed: int) -> None:
        from headgate.demo.filters.stage import expected

        with self._steps.step("rollback") as step:
            stage.order(FIRST, "rollback")
            events = _drawn(count, seed, "rolledback")
            self._through(stage, events, expected(events), step)
            step.words = f"{FIRST} is as it was, in one call"

    def pause(self, stage: Stage, count: int, seed: int) -> None:
        """The third filter gets nothing while it is paused, and all of it afterwards."""
        from headgate.demo.filters.stage import expected

        with self._steps.step("pause") as step:
            stage.order(THIRD, "pause")
            events = _drawn(count, seed, "paused")
            told = expected(events)
            held = told.pop(THIRD_DEALER)
            self._through(stage, events, told, step)
            self._refuse_early(stage, held)
            step.words = f"{THIRD} gets none of {len(held)} events while the others get theirs"
        with self._steps.step("resume") as step:
            stage.approve(THIRD)
            stage.order(THIRD, "resume")
            stage.expect({THIRD_DEALER: held})
            stage.arrived(step.log.write, WAIT_SECONDS)
            step.words = f"ben agrees; {THIRD} catches up with {len(held)} events beside the others"

    def _through(
        self,
        stage: Stage,
        events: Sequence[Drawn],
        told: Mapping[str, Sequence[str]],
        step: Step,
    ) -> None:
        stage.post(events)
        stage.expect(told)
        stage.arrived(step.log.write, WAIT_SECONDS, told)

    def _refuse_early(self, stage: Stage, ids: Sequence[str]) -> None:
        from headgate.demo.filters.proof import handled

        early = set(ids) & set(handled(stage.places()[THIRD_DEALER].state))
        if early:
            raise OperationError(f"{len(early)} events passed a paused filter")

    def stop(self, stage: Stage) -> None:
        """Seven deployments later it is still the first run."""
        from headgate.demo.filters.stage import SOURCE

        job = f"router-{SOURCE}"
        with self._steps.step("stop") as step:
            run = stage.store.latest(job)
            if run is None or (run.number, run.restarts) != (1, 0):
                raise OperationError(f"{job} was started more than once")
            command("job", "stop", job)
            step.words = f"{job}, between two batches; no filter made it start again"

    def prove(self, stage: Stage, bootstrap: str) -> tuple[FilterProof, ...]:
        """Every filter against ledger, topic and consumer."""
        with self._steps.step("prove") as step:
            proofs = stage.prove(bootstrap)
            faults = [fault for proof in proofs for fault in proof.faults]
            for fault in faults:
                step.log.write(f"{fault}\n")
            step.words = (
                f"{len(faults)} statements do not hold"
                if faults
                else "no gap, no overlap; ledger, topics and consumers count the same"
            )
            step.holds = not faults
        return proofs


def _filters(stage: Stage) -> list[str]:
    from headgate.demo.filters.stage import filter_of

    return [filter_of(dealer) for dealer in stage.documents]


def _drawn(count: int, seed: int, prefix: str) -> list[Drawn]:
    from headgate.demo.filters.events import draw

    return list(draw(count, seed, prefix))


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
    from headgate.local.process import PeakMemory
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
    from headgate.demo.filters.proof import routed_records
    from headgate.demo.filters.stage import SOURCE
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
    from headgate.demo.filters import proof as filter_proof
    from headgate.demo.filters.stage import SOURCE
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
