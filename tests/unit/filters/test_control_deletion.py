"""Turning a filter off needs one person; deleting what runs, or ran lately, needs two."""

from __future__ import annotations

import pytest
from tests.support.control_plane import ANN, BOB, CAT, ControlPlaneHarness, filter_document

from headgate.core.identity.roles import Identity
from headgate.errors import (
    ConflictError,
    ForbiddenError,
    IllegalTransitionError,
    NotFoundError,
    StaleError,
)
from headgate.filters.store.model import OperationState, Status

AUTHOR = Identity("ann", frozenset({"author"}))
OPERATOR = Identity("olga", frozenset({"operator"}))


def test_a_document_that_turns_its_filter_off_needs_nobody(harness: ControlPlaneHarness) -> None:
    harness.create_deployed()
    record = harness.service.set_enabled(ANN, "one", enabled=False)
    harness.settle()
    assert record.status is Status.DISABLED
    assert harness.wanted_filter() is None
    assert not harness.service.generate("one").valid
    on = harness.service.set_enabled(ANN, "one", enabled=True)
    harness.settle()
    assert on.status is Status.PENDING_APPROVAL
    assert harness.wanted_filter() is None
    with pytest.raises(IllegalTransitionError):
        harness.service.rollback(ANN, "one")


def test_what_runs_is_deleted_by_two_people(harness: ControlPlaneHarness) -> None:
    live = harness.create_deployed()
    assert harness.service.delete(ANN, "one").status is Status.PENDING_DELETION
    assert harness.wanted_filter() is not None
    with pytest.raises(ForbiddenError):
        harness.service.approve(ANN, "one", live.revision)
    harness.service.approve(BOB, "one", live.revision)
    harness.settle()
    with pytest.raises(NotFoundError):
        harness.service.get("one")
    assert harness.wanted_filter() is None
    assert len(harness.service.revisions("one")) == 1


def test_a_refused_deletion_leaves_it_as_it_was(harness: ControlPlaneHarness) -> None:
    live = harness.create_deployed()
    harness.service.delete(ANN, "one")
    after = harness.service.reject(BOB, "one", "still in use")
    assert (after.status, after.deployed_revision) == (Status.DEPLOYED, live.revision)


def test_what_never_ran_is_deleted_by_one_and_may_come_again(harness: ControlPlaneHarness) -> None:
    harness.service.create(ANN, filter_document())
    assert harness.service.delete(ANN, "one").status is Status.DELETED
    assert harness.service.list().filters == ()
    again = harness.service.create(BOB, filter_document())
    assert (again.version, again.status) == (2, "pending_approval")


def test_what_is_being_deployed_can_be_turned_off(harness: ControlPlaneHarness) -> None:
    harness.create_deployed()
    pending = harness.update("DEALER-002")
    harness.service.approve(BOB, "one", pending.revision)
    operation = harness.service.deploy(ANN, "one")
    harness.service.set_enabled(CAT, "one", enabled=False)
    harness.settle()
    assert harness.service.get("one").status is Status.DISABLED
    assert harness.current_operation(operation).state is OperationState.SUPERSEDED
    assert harness.wanted_filter() is None


def test_what_waits_for_deletion_can_be_stopped(harness: ControlPlaneHarness) -> None:
    live = harness.create_deployed()
    harness.service.delete(ANN, "one")
    harness.service.pause(CAT, "one")
    harness.settle()
    wanted = harness.wanted_filter()
    assert wanted is not None
    assert wanted.paused
    assert harness.service.set_enabled(CAT, "one", enabled=False).status is Status.DISABLED
    harness.settle()
    assert harness.wanted_filter() is None
    with pytest.raises(StaleError):
        harness.service.approve(BOB, "one", live.revision)


def test_a_deletion_under_way_cannot_be_turned_into_something_else(
    harness: ControlPlaneHarness,
) -> None:
    live = harness.create_deployed()
    harness.service.delete(ANN, "one")
    harness.service.approve(BOB, "one", live.revision)
    with pytest.raises(IllegalTransitionError, match="pending_deletion"):
        harness.service.set_enabled(CAT, "one", enabled=False)
    harness.settle()
    assert harness.service.list().total == 0


def test_an_author_alone_does_not_turn_off_what_runs(harness: ControlPlaneHarness) -> None:
    harness.create_deployed()
    with pytest.raises(ForbiddenError, match="pauseFilter"):
        harness.service.set_enabled(AUTHOR, "one", enabled=False)
    harness.service.delete(AUTHOR, "one")
    with pytest.raises(ForbiddenError, match="pauseFilter"):
        harness.service.set_enabled(AUTHOR, "one", enabled=False)
    assert harness.wanted_filter() is not None


def test_an_operator_turns_off_what_runs_and_writes_nothing_else(
    harness: ControlPlaneHarness,
) -> None:
    harness.create_deployed()
    changed = filter_document(value="DEALER-002")
    with pytest.raises(ForbiddenError):
        harness.service.update(OPERATOR, "one", changed)
    with pytest.raises(ConflictError, match="`enabled` only"):
        harness.service.update(OPERATOR, "one", {**changed, "enabled": False})
    assert harness.service.set_enabled(OPERATOR, "one", enabled=False).status is Status.DISABLED
    harness.settle()
    assert harness.wanted_filter() is None


def test_what_is_turned_off_is_what_ran_and_not_a_draft(harness: ControlPlaneHarness) -> None:
    live = harness.create_deployed()
    harness.update("DEALER-002")
    draft = harness.service.get("one").document
    with pytest.raises(ConflictError, match="`enabled` only"):
        harness.service.update(OPERATOR, "one", {**draft, "enabled": False})
    off = harness.service.set_enabled(OPERATOR, "one", enabled=False)
    assert {**off.document, "enabled": True} == dict(live.document)


@pytest.mark.parametrize("how", ["turned off", "paused"])
def test_what_ran_lately_is_deleted_by_two_people_though_it_was_stopped(
    harness: ControlPlaneHarness, how: str
) -> None:
    harness.create_deployed()
    if how == "paused":
        harness.service.pause(ANN, "one")
    else:
        harness.service.set_enabled(ANN, "one", enabled=False)
    harness.settle()
    asked = harness.service.delete(ANN, "one")
    assert asked.status is Status.PENDING_DELETION
    with pytest.raises(ForbiddenError):
        harness.service.approve(ANN, "one", asked.revision)
    harness.service.approve(BOB, "one", asked.revision)
    harness.settle()
    assert harness.service.list().total == 0


def test_a_refused_deletion_of_what_is_off_leaves_it_off(harness: ControlPlaneHarness) -> None:
    harness.create_deployed()
    harness.service.set_enabled(ANN, "one", enabled=False)
    harness.settle()
    harness.service.delete(ANN, "one")
    assert harness.service.reject(BOB, "one", "not yet").status is Status.DISABLED


def test_what_has_been_off_for_longer_than_an_approval_holds_is_deleted_by_one(
    harness: ControlPlaneHarness,
) -> None:
    harness.create_deployed()
    harness.service.set_enabled(ANN, "one", enabled=False)
    harness.settle()
    harness.clock.advance(72 * 3600)
    assert harness.service.delete(ANN, "one").status is Status.DELETED
