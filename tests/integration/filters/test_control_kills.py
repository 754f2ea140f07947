"""R9: the control plane is killed at each step of approve and deploy, and all sides agree again."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from tests.support.control_plane import ANN, BOB, filter_document
from tests.support.ops_store import create_database

from headgate.core.identity.audit import breaks
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.filters.api.service import RECONCILE_EVERY
from headgate.filters.control.operations import VARIABLE, Point
from headgate.filters.control.reconciler import LEASE, Reconciler
from headgate.filters.control.revisions import document_text
from headgate.filters.control.service import FilterService
from headgate.filters.git.store import GitStore
from headgate.filters.store.control import ControlStore
from headgate.filters.store.model import Seen, Standing, Status
from headgate.filters.store.routing import RoutingStore
from headgate.filters.targets.deployment import EngineTarget

# R9: so long after a kill all sides agree, with a step as often as the server makes one.
MOST_SECONDS = 10.0
# On any machine.
PATIENCE = 240.0


class Plane:
    """The control plane on real parts; the router is moved by hand."""

    def __init__(self, folder: Path) -> None:
        self.store = OpsStore.open(f"sqlite:///{folder / 'ops.db'}")
        self.git = GitStore(folder / "filters.git")
        targets = {"engine": EngineTarget(self.store.part(RoutingStore))}
        self.service = FilterService(self.store, self.git, targets)
        self.reconciler = Reconciler(self.store, self.git, targets)

    def approve_and_deploy(self) -> None:
        """What is still to be done, as a person would try it again."""
        record = self.service.get("one")
        if record.status is Status.PENDING_APPROVAL:
            record = self.service.approve(BOB, "one", record.revision)
        if record.status is Status.APPROVED:
            self.service.deploy(ANN, "one")

    def reconcile(self) -> int:
        """Until all sides agree; in how many steps, not counting those under another's lease."""
        until, steps = time.monotonic() + PATIENCE, 0
        while not self.agrees():
            assert time.monotonic() < until, self.service.get("one")
            steps += self.reconciler.step()
            self.route()
            time.sleep(0.05)
        return steps

    def route(self) -> None:
        row = self.store.part(RoutingStore).wanted_filter("one")
        if row is not None:
            place = (row.filter, row.source, row.revision, row.deployment)
            self.store.part(RoutingStore).see([Seen(*place, Standing.LIVE, "set", {"0": 1})])

    def agrees(self) -> bool:
        """Git has what was accepted, the engine runs what is deployed, and no errand is open."""
        record, wanted = self.service.get("one"), self.store.part(RoutingStore).wanted_filter("one")
        settled = (
            record.status is Status.DEPLOYED and not self.store.part(ControlStore).open_errands()
        )
        text = document_text(record.document)
        runs = wanted is not None and wanted.deployment == record.wanted_deployment
        return settled and runs and self.git.read("one") == text


@dataclass(frozen=True)
class Killed:
    """What a control plane that was killed has left behind."""

    folder: Path
    witness: Path
    at: datetime


def served(folder: Path) -> None:
    """A server in short: it approves, deploys and reconciles until it is killed or done."""
    plane = Plane(folder)
    plane.approve_and_deploy()
    plane.reconcile()


def kill_at(point: Point, folder: Path) -> Killed:
    """Let a control plane of its own run until it is killed there."""
    create_database(folder / "ops.db")
    plane = Plane(folder)
    plane.service.create(ANN, filter_document())
    plane.store.close()
    witness = folder / f"{point}.witness"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, f"{point}:{witness}")
        process = multiprocessing.get_context("fork").Process(target=served, args=(folder,))
        process.start()
    process.join(timeout=PATIENCE)
    assert process.exitcode == -9
    return Killed(folder, witness, utc_now())


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[Point, Killed]:
    """One for each point, all killed before the first is followed: their leases run out meanwhile."""
    return {point: kill_at(point, tmp_path_factory.mktemp("killed")) for point in Point}


@pytest.mark.integration
@pytest.mark.parametrize("point", list(Point))
def test_a_control_plane_killed_at_any_step_is_followed_by_one_that_agrees(
    point: Point, killed: dict[Point, Killed]
) -> None:
    before = killed[point]
    assert before.witness.read_text() == point
    plane = Plane(before.folder)
    plane.approve_and_deploy()
    held = plane.store.lease(LEASE)  # by the one that was killed
    waits = (held.expires_at - before.at).total_seconds() if held else 0.0
    began = time.monotonic()
    steps = plane.reconcile()
    assert time.monotonic() - began < MOST_SECONDS
    assert waits + (steps + 1) * RECONCILE_EVERY < MOST_SECONDS
    assert len(plane.git.history("one")) == 1
    assert breaks(*plane.store.part(ControlStore).audit_chain()) == ()
    actions = [entry.action for entry in plane.store.part(ControlStore).audit_of("one")]
    assert actions == ["create", "approve", "deploy", "deploy_done"]
