"""Targets that know filters by their topics, as Confluent's Flink does: nothing is left there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.clock import ManualClock
from tests.support.control_plane import ANN, BOB, TOPIC_TARGET, TopicTarget, filter_document
from tests.support.ops_store import create_database

from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import ConflictError
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.control.service import FilterService
from headgate.filters.store.model import FilterRecord, OperationState, Status


@dataclass
class Site:
    store: OpsStore
    clock: ManualClock
    target: TopicTarget
    service: FilterService
    reconciler: Reconciler

    def deployed(self, topic: str, *, new: bool = False) -> FilterRecord:
        text = filter_document(outputTopic=topic)
        record = self.service.create(ANN, text) if new else self.service.update(ANN, "one", text)
        self.service.approve(BOB, "one", record.revision)
        self.service.deploy(ANN, "one", TOPIC_TARGET)
        self.steps(2)
        return self.service.get("one")

    def steps(self, n: int) -> None:
        for _ in range(n):
            self.clock.advance(16)
            self.reconciler.step()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    clock, target = ManualClock(), TopicTarget()
    store = OpsStore.open(f"sqlite:///{create_database(tmp_path / 'ops.db')}", clock)
    targets = {TOPIC_TARGET: target}
    service, reconciler = (
        FilterService(store, None, targets),
        Reconciler(store, None, targets, patience=60),
    )
    yield Site(store, clock, target, service, reconciler)
    store.close()


def test_a_new_version_on_another_topic_takes_the_old_one_away(site: Site) -> None:
    site.deployed("first", new=True)
    record = site.deployed("second")
    assert record.status is Status.DEPLOYED
    assert set(site.target.running) == {"second"}


def test_a_version_that_failed_does_not_come_up_later(site: Site) -> None:
    site.deployed("first", new=True)
    site.target.slow = {"second"}
    site.deployed("second")
    site.steps(4)
    assert site.service.get("one").status is Status.FAILED
    assert set(site.target.running) == {"first"}


def test_what_was_turned_off_while_the_target_was_away_is_removed_when_it_is_back(
    site: Site,
) -> None:
    site.deployed("first", new=True)
    site.target.away = True
    off = site.service.set_enabled(ANN, "one", enabled=False)
    site.steps(5)
    assert off.status is Status.DISABLED
    assert set(site.target.running) == {"first"}
    on = site.service.update(ANN, "one", filter_document(outputTopic="second"))
    site.service.approve(BOB, "one", on.revision)
    with pytest.raises(ConflictError, match="still being taken away"):
        site.service.deploy(ANN, "one", TOPIC_TARGET)
    site.target.away = False
    site.steps(1)
    assert site.target.running == {}
    assert site.service.operations("one")[0].state is OperationState.SUCCEEDED
    site.service.deploy(ANN, "one", TOPIC_TARGET)
    site.steps(2)
    assert set(site.target.running) == {"second"}


def test_what_is_turned_off_in_the_middle_of_a_move_leaves_neither_topic(site: Site) -> None:
    site.deployed("first", new=True)
    site.target.slow = {"second"}
    record = site.service.update(ANN, "one", filter_document(outputTopic="second"))
    site.service.approve(BOB, "one", record.revision)
    site.service.deploy(ANN, "one", TOPIC_TARGET)
    site.reconciler.step()
    assert set(site.target.running) == {"first", "second"}
    site.service.set_enabled(ANN, "one", enabled=False)
    site.steps(1)
    assert site.target.running == {}


def test_something_that_went_missing_at_the_target_is_put_back(site: Site) -> None:
    site.deployed("first", new=True)
    site.target.running.clear()
    site.steps(1)
    assert set(site.target.running) == {"first"}
