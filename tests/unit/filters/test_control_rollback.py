"""Rollback: one call back to the last version that was live, and never to one that was rolled back from."""

from __future__ import annotations

import pytest
from tests.support.control_plane import ANN, BOB, CAT, ControlPlaneHarness

from headgate.errors import (
    ConflictError,
    NotFoundError,
    StaleError,
)
from headgate.filters.store.model import OperationState, Status


def test_a_failed_version_is_rolled_back_by_itself(harness: ControlPlaneHarness) -> None:
    live = harness.create_deployed()
    pending = harness.update("DEALER-002")
    harness.service.approve(BOB, "one", pending.revision)
    operation = harness.service.deploy(ANN, "one")
    harness.settle(refuses={pending.revision: "its topic cannot be written"})
    record, wanted = harness.service.get("one"), harness.wanted_filter()
    assert record.status is Status.FAILED
    assert record.deployment_error == "its topic cannot be written"
    assert harness.current_operation(operation).state is OperationState.FAILED
    assert wanted is not None
    assert wanted.revision == live.revision == record.deployed_revision
    assert harness.service.operations("one")[0].automatic


def test_a_rollback_is_one_call_and_a_new_version(harness: ControlPlaneHarness) -> None:
    first = harness.create_deployed()
    harness.update("DEALER-002")
    harness.approve_and_deploy()
    operation = harness.service.rollback(CAT, "one")
    harness.settle()
    record, wanted = harness.service.get("one"), harness.wanted_filter()
    assert harness.current_operation(operation).state is OperationState.SUCCEEDED
    assert (record.version, record.status, record.revision) == (3, "deployed", first.revision)
    assert wanted is not None
    assert wanted.revision == first.revision
    assert harness.service.revisions("one")[-1].note == "rollback to version 1"


def test_there_is_no_way_back_to_a_version_that_was_never_live(
    harness: ControlPlaneHarness,
) -> None:
    harness.create_deployed()
    harness.update("DEALER-002")
    harness.update("DEALER-003")
    with pytest.raises(NotFoundError, match="never live"):
        harness.service.rollback(ANN, "one", 2)
    with pytest.raises(ConflictError, match="cannot be rolled back"):
        harness.service.rollback(ANN, "one")


def test_a_rollback_does_not_wake_a_paused_filter(harness: ControlPlaneHarness) -> None:
    harness.create_deployed()
    harness.update("DEALER-002")
    harness.approve_and_deploy()
    harness.service.pause(ANN, "one")
    harness.service.rollback(ANN, "one")
    harness.settle()
    wanted = harness.wanted_filter()
    assert harness.service.get("one").status is Status.DEPLOYED
    assert wanted is not None
    assert wanted.paused


def test_a_version_that_came_up_paused_and_was_resumed_is_a_way_back(
    harness: ControlPlaneHarness,
) -> None:
    harness.create_deployed()
    second = harness.update("DEALER-002")
    harness.service.approve(BOB, "one", second.revision)
    harness.service.deploy(ANN, "one")
    harness.service.pause(CAT, "one")
    harness.settle()
    harness.service.approve(BOB, "one", second.revision)
    harness.service.resume(ANN, "one")
    harness.settle()
    harness.update("DEALER-003")
    harness.approve_and_deploy()
    harness.service.rollback(CAT, "one")
    harness.settle()
    record = harness.service.get("one")
    assert (record.deployed_revision, record.status) == (second.revision, Status.DEPLOYED)


def test_rollback_pressed_again_goes_on_and_never_back_to_the_bad_version(
    harness: ControlPlaneHarness,
) -> None:
    first = harness.create_deployed()
    second = harness.update("DEALER-002")
    harness.approve_and_deploy()
    harness.update("DEALER-003")
    harness.approve_and_deploy()
    seen: list[str | None] = []
    for _ in range(2):
        harness.service.rollback(CAT, "one")
        harness.settle()
        seen.append(harness.service.get("one").deployed_revision)
    assert seen == [second.revision, first.revision]
    with pytest.raises(ConflictError, match="cannot be rolled back"):
        harness.service.rollback(CAT, "one")
    with pytest.raises(ConflictError, match="no way back"):
        harness.service.rollback(CAT, "one", 3)


def test_a_version_that_is_approved_anew_is_a_way_back_again(harness: ControlPlaneHarness) -> None:
    harness.create_deployed()
    bad = harness.update("DEALER-002")
    harness.approve_and_deploy()
    harness.service.rollback(CAT, "one")
    harness.settle()
    harness.update("DEALER-002")
    harness.approve_and_deploy()
    harness.update("DEALER-003")
    harness.approve_and_deploy()
    harness.service.rollback(CAT, "one")
    harness.settle()
    assert harness.service.get("one").deployed_revision == bad.revision


def test_a_rollback_of_another_version_than_the_caller_saw_is_refused(
    harness: ControlPlaneHarness,
) -> None:
    harness.create_deployed()
    harness.update("DEALER-002")
    harness.approve_and_deploy()
    harness.service.rollback(CAT, "one", running=2)
    harness.settle()
    with pytest.raises(StaleError, match="version 2 of one is not what runs"):
        harness.service.rollback(BOB, "one", running=2)
    assert harness.service.get("one").deployed_version == 3


def test_a_rollback_that_fails_and_is_asked_for_again_goes_to_the_same_version(
    harness: ControlPlaneHarness,
) -> None:
    first = harness.create_deployed()
    harness.update("DEALER-002")
    harness.approve_and_deploy()
    harness.service.rollback(CAT, "one")
    harness.settle(refuses={first.revision: "no"})
    assert harness.service.get("one").status is Status.FAILED
    harness.service.rollback(CAT, "one")
    harness.settle()
    assert harness.service.get("one").deployed_revision == first.revision


def test_after_a_rollback_the_approver_is_who_approved_that_content(
    harness: ControlPlaneHarness,
) -> None:
    harness.create_deployed()
    second = harness.update("DEALER-002")
    harness.service.approve(CAT, "one", second.revision)
    harness.service.deploy(ANN, "one")
    harness.settle()
    assert harness.service.get("one").approved_by == "cat"
    harness.service.rollback(CAT, "one")
    harness.settle()
    record = harness.service.get("one")
    assert (record.version, record.approved_by) == (3, "bob")
    assert harness.service.revisions("one")[-1].restores == 1
