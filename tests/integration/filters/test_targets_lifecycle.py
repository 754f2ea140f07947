"""A filter's life on the Confluent target: the control plane over a fake of its API."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.control_plane import filter_document
from tests.support.fake_confluent import (
    ENVIRONMENT,
    KEY,
    ORGANIZATION,
    SECRET,
    FakeConfluent,
    fake_confluent,
)
from tests.support.ops_store import create_database

from headgate.core.identity.roles import Identity
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.control.reconciler import AGREE_EVERY, Reconciler
from headgate.filters.control.service import FilterService
from headgate.filters.store.control import ControlStore
from headgate.filters.store.model import Status
from headgate.filters.targets.confluent import ConfluentTarget, StoredOwnership
from headgate.filters.targets.confluent_api import Place, Statements
from headgate.filters.targets.deployment import Deployment

ANN, BOB = (Identity(name, frozenset({"admin"})) for name in ("ann", "bob"))
SINK, INSERT = "filtered-one-sink", "filtered-one-insert"


class ConfluentHarness:
    """Two people, a reconciler, and a fake."""

    def __init__(self, store: OpsStore, fake: FakeConfluent) -> None:
        place = Place(fake.endpoint, ORGANIZATION, ENVIRONMENT, "lfcp", "lkc", KEY, SECRET)
        statements = Statements(place, 60.0, sleep=lambda _: None)
        owned = StoredOwnership(store.part(ControlStore), "confluent")
        self.target = ConfluentTarget(statements, owned, 120.0, sleep=lambda _: None)
        targets = {"confluent": self.target}
        self.fake, self.service = fake, FilterService(store, None, targets)
        # A step ends when the fake has answered, and not before.
        self._reconciler = Reconciler(store, None, targets, patience=240)

    def submit(self, value: str) -> None:
        found = filter_document(value=value)
        if self.service.list().total:
            self.service.update(ANN, "one", found, self.service.get("one").etag)
        else:
            self.service.create(ANN, found)

    def deploy(self, value: str) -> Status:
        self.submit(value)
        self.service.approve(BOB, "one", self.service.get("one").revision)
        self.service.deploy(BOB, "one", "confluent")
        return self.settle()

    def settle(self) -> Status:
        for _ in range(6):
            self._reconciler.step()
        return self.service.get("one").status

    @property
    def insert(self) -> str:
        return str(self.fake.statements[INSERT].body["spec"]["statement"])


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ConfluentHarness]:
    create_database(tmp_path / "ops.db")
    with fake_confluent() as fake, OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}") as store:
        found = ConfluentHarness(store, fake)
        yield found
        found.target.statements.close()


def test_a_filter_is_deployed_as_two_statements_that_run(harness: ConfluentHarness):
    assert harness.deploy("DEALER-001") is Status.DEPLOYED
    assert harness.fake.phases() == {SINK: "COMPLETED", INSERT: "RUNNING"}
    assert "JSON_VALUE" in harness.insert
    assert set(harness.service.get("one").statement_ids) == {SINK, INSERT}


def test_a_revision_that_confluent_refuses_leaves_the_one_before_running(harness: ConfluentHarness):
    harness.deploy("DEALER-001")
    before = harness.insert
    harness.fake.fails = lambda sql: "no quota" if "DEALER-002" in sql else ""
    harness.deploy("DEALER-002")
    record = harness.service.get("one")
    assert (record.deployed_version, harness.insert) == (1, before)
    assert "no quota" in (record.deployment_error or "")
    assert harness.fake.phases()[INSERT] == "RUNNING"


def test_pause_and_rollback(harness: ConfluentHarness):
    harness.deploy("DEALER-001")
    first = harness.insert
    assert harness.deploy("DEALER-002") is Status.DEPLOYED
    assert harness.insert != first
    harness.service.rollback(BOB, "one")
    harness.settle()
    assert harness.insert == first
    harness.service.pause(BOB, "one")
    harness.settle()
    assert harness.fake.phases()[INSERT] == "STOPPED"


def test_statements_that_somebody_deletes_come_back(harness: ConfluentHarness):
    harness.deploy("DEALER-001")
    del harness.fake.statements[INSERT]
    time.sleep(AGREE_EVERY.total_seconds())
    harness.settle()
    assert harness.fake.phases()[INSERT] == "RUNNING"


def test_two_filters_cannot_share_the_names_of_one_topic(harness: ConfluentHarness):
    harness.deploy("DEALER-001")
    before = harness.insert
    other = filter_document("two", "DEALER-002", outputTopic="filtered-one")
    harness.service.create(ANN, other)
    harness.service.approve(BOB, "two", harness.service.get("two").revision)
    harness.service.deploy(BOB, "two", "confluent")
    harness.settle()
    record = harness.service.get("two")
    assert record.status is Status.FAILED
    assert "one writes to filtered-one already" in (record.deployment_error or "")
    assert (harness.insert, harness.fake.phases()[INSERT]) == (before, "RUNNING")


def test_a_statement_of_somebody_else_is_left_alone(harness: ConfluentHarness):
    harness.target.statements.create(INSERT, "INSERT INTO `x` SELECT 1;")
    harness.deploy("DEALER-001")
    record = harness.service.get("one")
    assert record.status is Status.FAILED
    assert "is not ours" in (record.deployment_error or "")
    assert harness.insert == "INSERT INTO `x` SELECT 1;"
    harness.target.remove(Deployment("one", "", "", "", "filtered-one", ""))
    assert harness.insert == "INSERT INTO `x` SELECT 1;"
