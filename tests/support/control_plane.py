"""The control plane over a store of its own, with a router whose batches the test triggers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support.clock import ManualClock

from headgate.core.identity.roles import Identity
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import UnavailableError
from headgate.filters.control.operations import ControlFaults
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.control.service import FilterService
from headgate.filters.store.model import FilterRecord, Operation, Seen, Standing, Wanted
from headgate.filters.store.routing import RoutingStore
from headgate.filters.targets.deployment import Deployment, EngineTarget, Observed, State

ANN, BOB, CAT = (Identity(name, frozenset({"admin"})) for name in ("ann", "bob", "cat"))
ENGINE = "engine"
TOPIC_TARGET = "by-topic"


def filter_document(id: str = "one", value: str = "DEALER-001", **more: object) -> dict[str, Any]:
    """A filter document that selects one dealer."""
    return {
        "id": id,
        "name": f"Filter {id}",
        "consumerId": f"{id}-consumer",
        "outputTopic": f"filtered-{id}",
        "conditions": [{"field": "header_data.dealerId", "operator": "equals", "value": value}],
        "enabled": True,
        **more,
    }


class ControlPlaneHarness:
    """Service and reconciler of one control-plane process, on a manual clock.

    The router is simulated: `run_router_batch` writes what a router observes at a batch boundary.
    """

    def __init__(
        self,
        path: Path,
        clock: ManualClock | None = None,
        faults: ControlFaults | None = None,
        approval_hours: float = 72,
    ) -> None:
        self.path, self.clock, self._hours = path, clock or ManualClock(), approval_hours
        self.store = OpsStore.open(f"sqlite:///{path}", self.clock)
        targets = {ENGINE: EngineTarget(self.store.part(RoutingStore))}
        self.service = FilterService(
            self.store, None, targets, faults=faults, approval_valid=timedelta(hours=approval_hours)
        )
        self.reconciler = Reconciler(self.store, None, targets, faults)

    @classmethod
    def copy(cls, made: Path, to: Path, **more: Any) -> ControlPlaneHarness:
        """A harness over a copy of this database."""
        shutil.copy(made, to)
        return cls(to, **more)

    def restart(self, faults: ControlFaults | None = None) -> ControlPlaneHarness:
        """Close this process's store and return the next process over the same database."""
        self.store.close()
        return ControlPlaneHarness(self.path, self.clock, faults, self._hours)

    def wanted_filter(self, id: str = "one") -> Wanted | None:
        return self.store.part(RoutingStore).wanted_filter(id)

    def run_router_batch(self, refuses: Mapping[str, str] | None = None) -> None:
        """Report every wanted filter as taken up, or as failed for the reason given for its revision."""
        wanted = self.store.part(RoutingStore).wanted()
        self.store.part(RoutingStore).see(
            [_seen(row, (refuses or {}).get(row.revision, "")) for row in wanted]
        )
        gone = {row.filter for row in self.store.part(RoutingStore).seen()} - {
            row.filter for row in wanted
        }
        for row in self.store.part(RoutingStore).seen():
            if row.filter in gone and row.standing is not Standing.OFF:
                off = Seen(row.filter, row.source, row.revision, row.deployment, Standing.OFF, "")
                self.store.part(RoutingStore).see([off])

    def settle(self, refuses: Mapping[str, str] | None = None, steps: int = 3) -> None:
        """Alternate the reconciler and the router, five seconds apart, until nothing is left to do."""
        for _ in range(steps):
            self.clock.advance(5)
            self.reconciler.step()
            self.run_router_batch(refuses)
        self.reconciler.step()

    def create_deployed(
        self, id: str = "one", value: str = "DEALER-001", by: Identity = ANN
    ) -> FilterRecord:
        """Create a filter that `by` wrote and BOB approved, and deploy it."""
        self.service.create(by, filter_document(id, value))
        return self.approve_and_deploy(id)

    def update(self, value: str, id: str = "one", by: Identity = ANN) -> FilterRecord:
        return self.service.update(by, id, filter_document(id, value))

    def approve_and_deploy(self, id: str = "one") -> FilterRecord:
        self.service.approve(BOB, id, self.service.get(id).revision)
        self.service.deploy(ANN, id)
        self.settle()
        return self.service.get(id)

    def current_operation(self, operation: Operation) -> Operation:
        """The operation as the store has it now."""
        return self.service.operation(operation.id)


def _seen(row: Wanted, reason: str) -> Seen:
    standing = Standing.FAILED if reason else Standing.PAUSED if row.paused else Standing.LIVE
    place = (row.filter, row.source, row.revision, row.deployment)
    return Seen(*place, standing, "set", {"0": 7}, reason)


@dataclass
class TopicTarget:
    """A target that knows deployments by their output topic only, as Flink on Confluent Cloud does."""

    running: dict[str, Deployment] = field(default_factory=dict)
    slow: set[str] = field(default_factory=set)
    away: bool = False
    name: str = TOPIC_TARGET

    def deploy(self, wanted: Deployment) -> tuple[str, ...]:
        self._need()
        self.running[wanted.topic] = wanted
        return (f"{wanted.topic}-insert",)

    def observe(self, wanted: Deployment) -> Observed:
        self._need()
        found = self.running.get(wanted.topic)
        if found is None:
            return Observed(wanted.filter, State.ABSENT)
        state = State.PENDING if wanted.topic in self.slow else State.RUNNING
        return Observed(wanted.filter, state, found.revision, found.deployment)

    def remove(self, wanted: Deployment) -> None:
        self._need()
        self.running.pop(wanted.topic, None)

    def held(self) -> None:
        return None

    def _need(self) -> None:
        if self.away:
            raise UnavailableError("the target is away")
