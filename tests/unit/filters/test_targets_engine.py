"""The engine as a target: what is told is one row, what is seen is believed only of that order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.ops_store import create_database

from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.store.model import Seen, Standing
from headgate.filters.store.routing import RoutingStore
from headgate.filters.targets.deployment import Deployment, EngineTarget, Held, State

WANTED = Deployment("f", "raw", "r1", "{}", "filtered-f", "d1")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpsStore]:
    create_database(tmp_path / "ops.db")
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}") as found:
        yield found


@pytest.fixture
def target(store: OpsStore) -> EngineTarget:
    return EngineTarget(store.part(RoutingStore))


def see(store: OpsStore, standing: Standing, wanted: Deployment = WANTED, reason: str = "") -> None:
    seen = Seen(
        *(wanted.filter, wanted.source, wanted.revision, wanted.deployment, standing, "set"),
        {"0": 7},
        reason,
    )
    store.part(RoutingStore).see([seen])


def test_what_was_never_told_is_absent(target: EngineTarget):
    assert target.observe(WANTED).state is State.ABSENT
    assert target.held() == {}


def test_an_order_is_pending_until_the_router_speaks_of_it(store: OpsStore, target: EngineTarget):
    assert target.deploy(WANTED) == ("d1",)
    assert target.observe(WANTED).state is State.PENDING
    see(store, Standing.LIVE)
    seen = target.observe(WANTED)
    assert (seen.state, seen.cutover, seen.revision) == (State.RUNNING, {"0": 7}, "r1")


def test_what_is_said_of_an_older_order_is_no_answer(store: OpsStore, target: EngineTarget):
    target.deploy(WANTED)
    see(store, Standing.LIVE)
    later = replace(WANTED, revision="r2", deployment="d2")
    target.deploy(later)
    assert target.observe(later).state is State.PENDING


@pytest.mark.parametrize("standing", [Standing.SUSPENDED, Standing.FAILED])
def test_a_filter_in_trouble_has_failed_with_its_reason(
    store: OpsStore, target: EngineTarget, standing: Standing
):
    target.deploy(WANTED)
    see(store, standing, reason="it raised")
    assert (target.observe(WANTED).state, target.observe(WANTED).reason) == (
        State.FAILED,
        "it raised",
    )


def test_a_pause_is_the_same_order_in_another_form(store: OpsStore, target: EngineTarget):
    target.deploy(WANTED)
    see(store, Standing.LIVE)
    target.deploy(replace(WANTED, paused=True))
    assert target.held() == {"f": Held("d1", paused=True)}
    assert target.observe(WANTED).state is State.PENDING
    see(store, Standing.PAUSED)
    assert target.observe(WANTED).state is State.PAUSED


def test_what_is_removed_goes_once_the_router_has_let_it_go(store: OpsStore, target: EngineTarget):
    target.deploy(WANTED)
    see(store, Standing.LIVE)
    target.remove(WANTED)
    target.remove(WANTED)
    assert target.observe(WANTED).state is State.PENDING
    see(store, Standing.OFF)
    assert target.observe(WANTED).state is State.ABSENT
