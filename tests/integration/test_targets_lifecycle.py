"""A filter's life on the Confluent target: the control plane over a fake of its API."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.control_plane import document
from tests.support.fake_confluent import (
    ENVIRONMENT,
    KEY,
    ORGANIZATION,
    SECRET,
    FakeConfluent,
    fake_confluent,
)
from tests.support.ops_store import create_database

from headgate.control.deploying import AGREE_EVERY, Reconciler
from headgate.control.identity.model import Identity
from headgate.control.service import FilterService
from headgate.control.targets.confluent import ConfluentTarget
from headgate.control.targets.confluent_api import Place, Statements
from headgate.control.targets.model import Deployment
from headgate.control.targets.ownership import StoredOwnership
from headgate.store.control_model import Status
from headgate.store.ops import OpsStore

ANN, BOB = (Identity(name, frozenset({"admin"})) for name in ("ann", "bob"))
SINK, INSERT = "filtered-one-sink", "filtered-one-insert"


class Room:
    """Two people, a reconciler, and a fake."""

    def __init__(self, store: OpsStore, fake: FakeConfluent) -> None:
        place = Place(fake.endpoint, ORGANIZATION, ENVIRONMENT, "lfcp", "lkc", KEY, SECRET)
        statements = Statements(place, 60.0, sleep=lambda _: None)
        owned = StoredOwnership(store.control, "confluent")
        self.target = ConfluentTarget(statements, owned, 120.0, sleep=lambda _: None)
        targets = {"confluent": self.target}
        self.fake, self.service = fake, FilterService(store, None, targets)
        # A step ends when the fake has answered, and not before.
        self._reconciler = Reconciler(store, None, targets, patience=240)

    def submitted(self, value: str) -> None:
        found = document(value=value)
        if self.service.list().total:
            self.service.update(ANN, "one", found, self.service.get("one").etag)
        else:
            self.service.create(ANN, found)

    def deployed(self, value: str) -> Status:
        self.submitted(value)
        self.service.approve(BOB, "one", self.service.get("one").revision)
        self.service.deploy(BOB, "one", "confluent")
        return self.settled()

    def settled(self) -> Status:
        for _ in range(6):
            self._reconciler.step()
        return self.service.get("one").status

    @property
    def insert(self) -> str:
        return str(self.fake.statements[INSERT].body["spec"]["statement"])


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    create_database(tmp_path / "ops.db")
    with fake_confluent() as fake, OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}") as store:
        found = Room(store, fake)
        yield found
        found.target.statements.close()


def test_a_filter_is_deployed_as_two_statements_that_run(room: Room):
    assert room.deployed("DEALER-001") is Status.DEPLOYED
    assert room.fake.phases() == {SINK: "COMPLETED", INSERT: "RUNNING"}
    assert "JSON_VALUE" in room.insert
    assert set(room.service.get("one").statement_ids) == {SINK, INSERT}


def test_a_revision_that_confluent_refuses_leaves_the_one_before_running(room: Room):
    room.deployed("DEALER-001")
    before = room.insert
    room.fake.fails = lambda sql: "no quota" if "DEALER-002" in sql else ""
    room.deployed("DEALER-002")
    record = room.service.get("one")
    assert (record.deployed_version, room.insert) == (1, before)
    assert "no quota" in (record.deployment_error or "")
    assert room.fake.phases()[INSERT] == "RUNNING"


def test_pause_and_rollback(room: Room):
    room.deployed("DEALER-001")
    first = room.insert
    assert room.deployed("DEALER-002") is Status.DEPLOYED
    assert room.insert != first
    room.service.rollback(BOB, "one")
    room.settled()
    assert room.insert == first
    room.service.pause(BOB, "one")
    room.settled()
    assert room.fake.phases()[INSERT] == "STOPPED"


def test_statements_that_somebody_deletes_come_back(room: Room):
    room.deployed("DEALER-001")
    del room.fake.statements[INSERT]
    time.sleep(AGREE_EVERY.total_seconds())
    room.settled()
    assert room.fake.phases()[INSERT] == "RUNNING"


def test_two_filters_cannot_share_the_names_of_one_topic(room: Room):
    room.deployed("DEALER-001")
    before = room.insert
    other = document("two", "DEALER-002", outputTopic="filtered-one")
    room.service.create(ANN, other)
    room.service.approve(BOB, "two", room.service.get("two").revision)
    room.service.deploy(BOB, "two", "confluent")
    room.settled()
    record = room.service.get("two")
    assert record.status is Status.FAILED
    assert "one writes to filtered-one already" in (record.deployment_error or "")
    assert (room.insert, room.fake.phases()[INSERT]) == (before, "RUNNING")


def test_a_statement_of_somebody_else_is_left_alone(room: Room):
    room.target.statements.create(INSERT, "INSERT INTO `x` SELECT 1;")
    room.deployed("DEALER-001")
    record = room.service.get("one")
    assert record.status is Status.FAILED
    assert "is not ours" in (record.deployment_error or "")
    assert room.insert == "INSERT INTO `x` SELECT 1;"
    room.target.remove(Deployment("one", "", "", "", "filtered-one", ""))
    assert room.insert == "INSERT INTO `x` SELECT 1;"
