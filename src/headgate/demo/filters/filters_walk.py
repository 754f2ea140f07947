"""The path of filters as steps: create, approve, deploy, route, update, roll back, pause, prove."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.demo.steps import Walk
from headgate.errors import OperationError
from headgate.terminal.steps import Step, Steps, command

if TYPE_CHECKING:
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.demo.filters.drawing import Drawn
    from headgate.demo.filters.filter_proof import FilterProof
    from headgate.demo.filters.filter_stage import Stage

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
        from headgate.demo.filters.filter_stage import PEOPLE, Stage

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
        from headgate.demo.filters.filter_stage import SOURCE

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
        from headgate.demo.filters.filter_stage import NUMBERS, expected, samples

        events = samples(self._root)
        with self._steps.step("samples") as step:
            self._through(stage, events, expected(events), step)
            for event, number in zip(events, NUMBERS, strict=True):
                log = stage.log(f"consumer-{number}").read_text("utf-8")
                if log.count(event.id) == 0 or any(e.id in log for e in events if e is not event):
                    raise OperationError(f"the consumer of {event.dealer} logged something else")
            step.words = "one event each, logged by its own dealer and by no other"

    def events(self, stage: Stage, count: int, seed: int) -> None:
        from headgate.demo.filters.filter_stage import expected

        events = _drawn(count, seed, "event")
        with self._steps.step("events") as step:
            told = expected(events)
            self._through(stage, events, told, step)
            counts = ", ".join(f"{len(ids)} for {dealer}" for dealer, ids in told.items())
            step.words = f"{count:,} more, {counts}, the rest for nobody"

    def update(self, stage: Stage, count: int, seed: int) -> None:
        """A new version of the first filter, by two people, while the others go on."""
        from headgate.demo.filters.filter_stage import dearer, expected

        document = next(iter(stage.documents.values()))
        with self._steps.step("update") as step:
            stage.people["ana"].change(FIRST, dearer(document, LEAST))
            stage.approve(FIRST)
            stage.order(FIRST, "deploy")
            events = _drawn(count, seed, "updated")
            self._through(stage, events, expected(events, LEAST), step)
            step.words = f"version 2 of {FIRST} takes only what costs {LEAST} or more"

    def rollback(self, stage: Stage, count: int, seed: int) -> None:
        from headgate.demo.filters.filter_stage import expected

        with self._steps.step("rollback") as step:
            stage.order(FIRST, "rollback")
            events = _drawn(count, seed, "rolledback")
            self._through(stage, events, expected(events), step)
            step.words = f"{FIRST} is as it was, in one call"

    def pause(self, stage: Stage, count: int, seed: int) -> None:
        """The third filter gets nothing while it is paused, and all of it afterwards."""
        from headgate.demo.filters.filter_stage import expected

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
        from headgate.demo.filters.filter_proof_gather import handled

        early = set(ids) & set(handled(stage.places()[THIRD_DEALER].state))
        if early:
            raise OperationError(f"{len(early)} events passed a paused filter")

    def stop(self, stage: Stage) -> None:
        """Seven deployments later it is still the first run."""
        from headgate.demo.filters.filter_stage import SOURCE

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
    from headgate.demo.filters.filter_stage import filter_of

    return [filter_of(dealer) for dealer in stage.documents]


def _drawn(count: int, seed: int, prefix: str) -> list[Drawn]:
    from headgate.demo.filters.drawing import draw

    return list(draw(count, seed, prefix))
