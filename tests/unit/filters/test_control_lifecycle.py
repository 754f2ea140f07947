"""The life of a filter in the control plane: written, approved, deployed, paused, failed."""

from __future__ import annotations

import pytest
from tests.support.control_plane import ANN, BOB, CAT, ControlPlaneHarness, filter_document

from headgate.core.identity.roles import Identity
from headgate.errors import (
    ConflictError,
    DeclarationError,
    DuplicateError,
    ForbiddenError,
    IllegalTransitionError,
    StaleError,
)
from headgate.filters.control.lifecycle import LEGAL, allowed
from headgate.filters.store.model import OperationState, Status
from headgate.filters.store.routing import RoutingStore


def test_a_new_filter_waits_for_approval(harness: ControlPlaneHarness) -> None:
    record = harness.service.create(ANN, filter_document())
    assert (record.status, record.version, record.author) == ("pending_approval", 1, "ann")


def test_a_filter_is_there_once(harness: ControlPlaneHarness) -> None:
    harness.service.create(ANN, filter_document())
    with pytest.raises(DuplicateError):
        harness.service.create(BOB, filter_document())


def test_all_faults_of_a_document_come_at_once(harness: ControlPlaneHarness) -> None:
    broken = filter_document(
        conditions=[{"field": "nope", "operator": "equals"}], outputTopic="A B"
    )
    with pytest.raises(DeclarationError) as caught:
        harness.service.create(ANN, broken)
    assert len(caught.value.faults) >= 2


def test_nobody_approves_what_they_wrote_not_even_an_admin(harness: ControlPlaneHarness) -> None:
    record = harness.service.create(ANN, filter_document())
    with pytest.raises(ForbiddenError, match="nobody approves"):
        harness.service.approve(ANN, "one", record.revision)
    assert harness.service.get("one").status is Status.PENDING_APPROVAL


@pytest.mark.parametrize("name", ["Ann", "ANN", "ann ", "\uff41nn"])
def test_another_spelling_of_a_name_is_the_same_person(
    harness: ControlPlaneHarness, name: str
) -> None:
    record = harness.service.create(ANN, filter_document())
    with pytest.raises(ForbiddenError, match="nobody approves"):
        harness.service.approve(Identity(name, frozenset({"admin"})), "one", record.revision)


def test_whoever_touched_the_pending_version_may_not_approve_it(
    harness: ControlPlaneHarness,
) -> None:
    harness.service.create(ANN, filter_document())
    record = harness.update("DEALER-002", by=BOB)
    for author in (ANN, BOB):
        with pytest.raises(ForbiddenError):
            harness.service.approve(author, "one", record.revision)
    assert harness.service.approve(CAT, "one", record.revision).status is Status.APPROVED


def test_after_an_approval_the_next_edit_has_its_own_authors(harness: ControlPlaneHarness) -> None:
    harness.create_deployed()
    record = harness.update("DEALER-002", by=CAT)
    assert harness.service.approve(ANN, "one", record.revision).status is Status.APPROVED


def test_an_approval_is_of_the_revision_that_was_looked_at(harness: ControlPlaneHarness) -> None:
    first = harness.service.create(ANN, filter_document())
    harness.update("DEALER-002")
    with pytest.raises(StaleError):
        harness.service.approve(BOB, "one", first.revision)


def test_only_an_approved_filter_is_deployed(harness: ControlPlaneHarness) -> None:
    harness.service.create(ANN, filter_document())
    with pytest.raises(IllegalTransitionError) as caught:
        harness.service.deploy(ANN, "one")
    assert "approve" in caught.value.allowed
    assert harness.wanted_filter() is None


def test_an_edit_voids_the_approval_and_so_does_the_edit_back(harness: ControlPlaneHarness) -> None:
    record = harness.service.create(ANN, filter_document())
    harness.service.approve(BOB, "one", record.revision)
    harness.update("DEALER-002")
    back = harness.update("DEALER-001")
    assert back.revision == record.revision
    with pytest.raises(IllegalTransitionError):
        harness.service.deploy(ANN, "one")


def test_the_same_document_again_changes_nothing(harness: ControlPlaneHarness) -> None:
    record = harness.service.create(ANN, filter_document())
    approved = harness.service.approve(BOB, "one", record.revision)
    assert harness.service.update(ANN, "one", filter_document()) == approved
    assert len(harness.service.revisions("one")) == 1


def test_an_approval_ends_after_its_time(harness: ControlPlaneHarness) -> None:
    record = harness.service.create(ANN, filter_document())
    harness.service.approve(BOB, "one", record.revision)
    harness.clock.advance(72 * 3600)
    with pytest.raises(ConflictError, match="no approval that holds"):
        harness.service.deploy(ANN, "one")
    harness.reconciler.step()
    assert harness.service.get("one").status is Status.PENDING_APPROVAL
    harness.service.approve(BOB, "one", record.revision)
    harness.service.deploy(ANN, "one")
    assert harness.service.get("one").status is Status.DEPLOYING


def test_a_deployed_filter_runs_on_while_its_next_version_waits(
    harness: ControlPlaneHarness,
) -> None:
    live = harness.create_deployed()
    pending = harness.update("DEALER-002")
    harness.settle()
    wanted = harness.wanted_filter()
    assert (pending.status, pending.deployed_revision) == ("pending_approval", live.revision)
    assert wanted is not None
    assert wanted.revision == live.revision


def test_a_first_version_that_fails_leaves_nothing_behind(harness: ControlPlaneHarness) -> None:
    record = harness.service.create(ANN, filter_document())
    harness.service.approve(BOB, "one", record.revision)
    harness.service.deploy(ANN, "one")
    harness.settle(refuses={record.revision: "no"})
    assert harness.service.get("one").status is Status.FAILED
    assert harness.wanted_filter() is None


def test_a_target_that_does_not_answer_fails_the_deployment_at_its_deadline(
    harness: ControlPlaneHarness,
) -> None:
    record = harness.service.create(ANN, filter_document())
    harness.service.approve(BOB, "one", record.revision)
    operation = harness.service.deploy(ANN, "one")
    harness.reconciler.step()
    harness.clock.advance(29)
    harness.reconciler.step()
    assert harness.current_operation(operation).state is OperationState.RUNNING
    harness.clock.advance(2)
    harness.reconciler.step()
    error = harness.current_operation(operation).error or ""
    assert error.startswith("engine did not get there within 30 s")
    assert "headgate job start router-raw-event-headers" in error
    assert harness.service.get("one").status is Status.FAILED


def test_a_pause_holds_at_once_and_goes_on_only_after_an_approval(
    harness: ControlPlaneHarness,
) -> None:
    live = harness.create_deployed()
    harness.service.pause(ANN, "one")
    harness.settle()
    wanted = harness.wanted_filter()
    assert wanted is not None
    assert wanted.paused
    with pytest.raises(ConflictError, match="no approval that holds"):
        harness.service.resume(ANN, "one")
    with pytest.raises(ForbiddenError):
        harness.service.approve(ANN, "one", live.revision)
    harness.service.approve(BOB, "one", live.revision)
    operation = harness.service.resume(ANN, "one")
    harness.settle()
    wanted = harness.wanted_filter()
    assert wanted is not None
    assert not wanted.paused
    assert harness.current_operation(operation).state is OperationState.SUCCEEDED


def test_a_failed_deployment_leaves_a_paused_filter_paused(harness: ControlPlaneHarness) -> None:
    harness.create_deployed()
    harness.service.pause(ANN, "one")
    harness.settle()
    pending = harness.update("DEALER-002")
    harness.service.approve(BOB, "one", pending.revision)
    harness.service.deploy(ANN, "one")
    harness.settle(refuses={pending.revision: "no"})
    wanted = harness.wanted_filter()
    assert wanted is not None
    assert wanted.paused


def test_a_stale_tag_is_refused_and_changes_nothing(harness: ControlPlaneHarness) -> None:
    seen = harness.service.create(ANN, filter_document())
    harness.service.update(BOB, "one", filter_document(value="DEALER-002"), seen.etag)
    with pytest.raises(StaleError):
        harness.service.update(ANN, "one", filter_document(value="DEALER-003"), seen.etag)
    assert harness.service.get("one").author == "bob"


def test_every_role_is_held_to_its_operations(harness: ControlPlaneHarness) -> None:
    record = harness.service.create(Identity("a", frozenset({"author"})), filter_document())
    reader = Identity("r", frozenset({"viewer"}))
    refusals = [
        lambda: harness.service.create(reader, filter_document("two")),
        lambda: harness.service.approve(
            Identity("d", frozenset({"deployer"})), "one", record.revision
        ),
        lambda: harness.service.deploy(Identity("p", frozenset({"approver"})), "one"),
        lambda: harness.service.pause(Identity("w", frozenset({"author"})), "one"),
    ]
    for refusal in refusals:
        with pytest.raises(ForbiddenError):
            refusal()


def test_filters_are_found_by_status_consumer_and_words(harness: ControlPlaneHarness) -> None:
    for id in ("one", "two", "three"):
        harness.service.create(ANN, filter_document(id))
    harness.service.approve(BOB, "two", harness.service.get("two").revision)
    ids = [record.id for record in harness.service.list(limit=2).filters]
    rest = harness.service.list(after=harness.service.list(limit=2).after, limit=2)
    assert (ids, [record.id for record in rest.filters], rest.after) == (
        ["one", "three"],
        ["two"],
        None,
    )
    assert [record.id for record in harness.service.list(status="approved").filters] == ["two"]
    assert [record.id for record in harness.service.list(consumer="one-consumer").filters] == [
        "one"
    ]
    assert [record.id for record in harness.service.list(q="FILTER TH").filters] == ["three"]
    assert harness.service.list(q="100%_").total == 0
    assert harness.service.list(q="conditions").total == 0
    paged = harness.service.list(q="filter", after="one", limit=1)
    assert ([record.id for record in paged.filters], paged.total, paged.after) == (
        ["three"],
        3,
        "three",
    )


def test_the_table_knows_every_status_and_says_what_it_allows() -> None:
    assert {status for moves in LEGAL.values() for status in moves} == set(Status)
    every = {name for moves in LEGAL for name in (moves.value,)}
    assert "force" not in every


def test_what_is_allowed_is_what_can_be_done_to_the_filter_now(
    harness: ControlPlaneHarness,
) -> None:
    record = harness.service.create(ANN, filter_document())
    never_ran = allowed(record)
    assert {"rollback", "pause", "resume"}.isdisjoint(never_ran)
    assert {"update", "approve", "reject", "delete"} <= set(never_ran)
    assert "deploy" in allowed(harness.service.approve(BOB, "one", record.revision))
    harness.service.deploy(ANN, "one")
    assert allowed(harness.service.get("one")) == ("disable", "pause")
    harness.settle()
    assert {"rollback", "pause"} <= set(allowed(harness.service.get("one")))
    harness.service.pause(ANN, "one")
    assert "pause" not in allowed(harness.service.get("one"))


def test_something_that_was_slipped_to_the_engine_is_taken_away(
    harness: ControlPlaneHarness,
) -> None:
    record = harness.create_deployed()
    wanted = harness.wanted_filter()
    assert wanted is not None
    harness.store.part(RoutingStore).want(type(wanted)(**{**vars(wanted), "filter": "slipped"}))
    harness.store.part(RoutingStore).want(
        type(wanted)(**{**vars(wanted), "revision": "other", "deployment": "x"})
    )
    harness.settle()
    assert harness.wanted_filter("slipped") is None
    back = harness.wanted_filter()
    assert back is not None
    assert back.revision == record.revision


def test_a_difference_names_the_fields_and_shows_the_lines(harness: ControlPlaneHarness) -> None:
    harness.service.create(ANN, filter_document())
    harness.update("DEALER-002")
    found = harness.service.diff("one", 1, 2)
    assert found.fields == ("conditions",)
    assert '+      "value": "DEALER-002"' in found.text


def test_a_removal_that_is_late_is_done_when_the_engine_is_back(
    harness: ControlPlaneHarness,
) -> None:
    live = harness.create_deployed()
    harness.service.delete(ANN, "one")
    harness.service.approve(BOB, "one", live.revision)
    for _ in range(5):
        harness.clock.advance(20)
        harness.reconciler.step()
    record = harness.service.get("one")
    assert record.status is Status.PENDING_DELETION
    assert "is its router running" in (record.deployment_error or "")
    assert harness.service.operations("one")[0].state is OperationState.RUNNING
    harness.settle()
    assert harness.service.operations("one")[0].state is OperationState.SUCCEEDED
    assert harness.service.create(ANN, filter_document()).status is Status.PENDING_APPROVAL


def test_what_is_being_deployed_can_be_paused(harness: ControlPlaneHarness) -> None:
    harness.create_deployed()
    pending = harness.update("DEALER-002")
    harness.service.approve(BOB, "one", pending.revision)
    harness.service.deploy(ANN, "one")
    harness.service.pause(CAT, "one")
    harness.settle()
    record, wanted = harness.service.get("one"), harness.wanted_filter()
    assert (record.status, record.paused, record.deployed_version) == (Status.DEPLOYED, True, 2)
    assert wanted is not None
    assert wanted.paused


def test_a_pause_during_a_deployment_that_fails_holds_for_what_ran_before(
    harness: ControlPlaneHarness,
) -> None:
    harness.create_deployed()
    pending = harness.update("DEALER-002")
    harness.service.approve(BOB, "one", pending.revision)
    harness.service.deploy(ANN, "one")
    harness.service.pause(CAT, "one")
    harness.settle(refuses={pending.revision: "no"})
    record, wanted = harness.service.get("one"), harness.wanted_filter()
    assert (record.status, record.deployed_version) == (Status.FAILED, 1)
    assert wanted is not None
    assert wanted.paused


def test_every_deployment_says_whether_history_is_wanted(harness: ControlPlaneHarness) -> None:
    def backfilled() -> str:
        harness.service.create(ANN, filter_document(backfill="earliest"))
        harness.approve_and_deploy()
        wanted = harness.wanted_filter()
        assert wanted is not None
        return wanted.backfill

    assert backfilled() == "earliest"
    harness.service.delete(ANN, "one")
    harness.service.approve(BOB, "one", harness.service.get("one").revision)
    harness.settle()
    assert backfilled() == "earliest"
    harness.service.update(ANN, "one", filter_document(value="DEALER-002"))
    harness.approve_and_deploy()
    wanted = harness.wanted_filter()
    assert wanted is not None
    assert wanted.backfill == "none"


def test_a_target_that_was_told_late_has_its_time_all_the_same(
    harness: ControlPlaneHarness,
) -> None:
    record = harness.service.create(ANN, filter_document())
    harness.service.approve(BOB, "one", record.revision)
    operation = harness.service.deploy(ANN, "one")
    harness.clock.advance(60)
    harness.reconciler.step()
    assert harness.current_operation(operation).state is OperationState.RUNNING
    harness.run_router_batch()
    harness.reconciler.step()
    assert harness.current_operation(operation).state is OperationState.SUCCEEDED


# Two people, also through deletion and rollback


def test_whoever_wrote_a_content_once_may_not_approve_it_when_it_comes_back(
    harness: ControlPlaneHarness,
) -> None:
    harness.create_deployed()
    harness.update("DEALER-002", by=BOB)
    harness.service.approve(CAT, "one", harness.service.get("one").revision)
    harness.update("DEALER-003", by=ANN)
    back = harness.update("DEALER-002", by=ANN)
    with pytest.raises(ForbiddenError, match="bob may not approve"):
        harness.service.approve(BOB, "one", back.revision)
    harness.service.approve(CAT, "one", back.revision)


def test_the_time_of_the_author_is_that_of_the_writing(harness: ControlPlaneHarness) -> None:
    record = harness.service.create(ANN, filter_document())
    harness.clock.advance(60)
    approved = harness.service.approve(BOB, "one", record.revision)
    assert approved.written_at == record.created_at < approved.updated_at
