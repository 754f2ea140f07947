from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.control_plane import ANN, BOB, CAT, Room, document
from tests.support.ops_store import create_database

from headgate.control.identity.model import Identity
from headgate.control.lifecycle import LEGAL, allowed
from headgate.errors import (
    ConflictError,
    DeclarationError,
    DuplicateError,
    ForbiddenError,
    IllegalTransitionError,
    NotFoundError,
    StaleError,
)
from headgate.store.control_model import OperationState, Status


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create_database(tmp_path_factory.mktemp("control") / "ops.db")


@pytest.fixture
def room(made: Path, tmp_path: Path) -> Room:
    return Room.copy(made, tmp_path / "ops.db")


def test_a_new_filter_waits_for_approval(room: Room) -> None:
    record = room.service.create(ANN, document())
    assert (record.status, record.version, record.author) == ("pending_approval", 1, "ann")


def test_a_filter_is_there_once(room: Room) -> None:
    room.service.create(ANN, document())
    with pytest.raises(DuplicateError):
        room.service.create(BOB, document())


def test_all_faults_of_a_document_come_at_once(room: Room) -> None:
    broken = document(conditions=[{"field": "nope", "operator": "equals"}], outputTopic="A B")
    with pytest.raises(DeclarationError) as caught:
        room.service.create(ANN, broken)
    assert len(caught.value.faults) >= 2


def test_nobody_approves_what_they_wrote_not_even_an_admin(room: Room) -> None:
    record = room.service.create(ANN, document())
    with pytest.raises(ForbiddenError, match="nobody approves"):
        room.service.approve(ANN, "one", record.revision)
    assert room.service.get("one").status is Status.PENDING_APPROVAL


@pytest.mark.parametrize("name", ["Ann", "ANN", "ann ", "\uff41nn"])
def test_another_spelling_of_a_name_is_the_same_person(room: Room, name: str) -> None:
    record = room.service.create(ANN, document())
    with pytest.raises(ForbiddenError, match="nobody approves"):
        room.service.approve(Identity(name, frozenset({"admin"})), "one", record.revision)


def test_whoever_touched_the_pending_version_may_not_approve_it(room: Room) -> None:
    room.service.create(ANN, document())
    record = room.updated("DEALER-002", by=BOB)
    for author in (ANN, BOB):
        with pytest.raises(ForbiddenError):
            room.service.approve(author, "one", record.revision)
    assert room.service.approve(CAT, "one", record.revision).status is Status.APPROVED


def test_after_an_approval_the_next_edit_has_its_own_authors(room: Room) -> None:
    room.live()
    record = room.updated("DEALER-002", by=CAT)
    assert room.service.approve(ANN, "one", record.revision).status is Status.APPROVED


def test_an_approval_is_of_the_revision_that_was_looked_at(room: Room) -> None:
    first = room.service.create(ANN, document())
    room.updated("DEALER-002")
    with pytest.raises(StaleError):
        room.service.approve(BOB, "one", first.revision)


def test_only_an_approved_filter_is_deployed(room: Room) -> None:
    room.service.create(ANN, document())
    with pytest.raises(IllegalTransitionError) as caught:
        room.service.deploy(ANN, "one")
    assert "approve" in caught.value.allowed
    assert room.wanted() is None


def test_an_edit_voids_the_approval_and_so_does_the_edit_back(room: Room) -> None:
    record = room.service.create(ANN, document())
    room.service.approve(BOB, "one", record.revision)
    room.updated("DEALER-002")
    back = room.updated("DEALER-001")
    assert back.revision == record.revision
    with pytest.raises(IllegalTransitionError):
        room.service.deploy(ANN, "one")


def test_the_same_document_again_changes_nothing(room: Room) -> None:
    record = room.service.create(ANN, document())
    approved = room.service.approve(BOB, "one", record.revision)
    assert room.service.update(ANN, "one", document()) == approved
    assert len(room.service.revisions("one")) == 1


def test_an_approval_ends_after_its_time(room: Room) -> None:
    record = room.service.create(ANN, document())
    room.service.approve(BOB, "one", record.revision)
    room.clock.advance(72 * 3600)
    with pytest.raises(ConflictError, match="no approval that holds"):
        room.service.deploy(ANN, "one")
    room.reconciler.step()
    assert room.service.get("one").status is Status.PENDING_APPROVAL
    room.service.approve(BOB, "one", record.revision)
    room.service.deploy(ANN, "one")
    assert room.service.get("one").status is Status.DEPLOYING


def test_a_deployed_filter_runs_on_while_its_next_version_waits(room: Room) -> None:
    live = room.live()
    pending = room.updated("DEALER-002")
    room.settle()
    wanted = room.wanted()
    assert (pending.status, pending.deployed_revision) == ("pending_approval", live.revision)
    assert wanted is not None
    assert wanted.revision == live.revision


def test_a_failed_version_is_rolled_back_by_itself(room: Room) -> None:
    live = room.live()
    pending = room.updated("DEALER-002")
    room.service.approve(BOB, "one", pending.revision)
    operation = room.service.deploy(ANN, "one")
    room.settle(refuses={pending.revision: "its topic cannot be written"})
    record, wanted = room.service.get("one"), room.wanted()
    assert record.status is Status.FAILED
    assert record.deployment_error == "its topic cannot be written"
    assert room.done(operation).state is OperationState.FAILED
    assert wanted is not None
    assert wanted.revision == live.revision == record.deployed_revision
    assert room.service.operations("one")[0].automatic


def test_a_first_version_that_fails_leaves_nothing_behind(room: Room) -> None:
    record = room.service.create(ANN, document())
    room.service.approve(BOB, "one", record.revision)
    room.service.deploy(ANN, "one")
    room.settle(refuses={record.revision: "no"})
    assert room.service.get("one").status is Status.FAILED
    assert room.wanted() is None


def test_a_target_that_does_not_answer_fails_the_deployment_at_its_deadline(room: Room) -> None:
    record = room.service.create(ANN, document())
    room.service.approve(BOB, "one", record.revision)
    operation = room.service.deploy(ANN, "one")
    room.reconciler.step()
    room.clock.advance(29)
    room.reconciler.step()
    assert room.done(operation).state is OperationState.RUNNING
    room.clock.advance(2)
    room.reconciler.step()
    error = room.done(operation).error or ""
    assert error.startswith("engine did not get there within 30 s")
    assert "headgate job start router-raw-event-headers" in error
    assert room.service.get("one").status is Status.FAILED


def test_a_rollback_is_one_call_and_a_new_version(room: Room) -> None:
    first = room.live()
    room.updated("DEALER-002")
    room.approved_and_deployed()
    operation = room.service.rollback(CAT, "one")
    room.settle()
    record, wanted = room.service.get("one"), room.wanted()
    assert room.done(operation).state is OperationState.SUCCEEDED
    assert (record.version, record.status, record.revision) == (3, "deployed", first.revision)
    assert wanted is not None
    assert wanted.revision == first.revision
    assert room.service.revisions("one")[-1].note == "rollback to version 1"


def test_there_is_no_way_back_to_a_version_that_was_never_live(room: Room) -> None:
    room.live()
    room.updated("DEALER-002")
    room.updated("DEALER-003")
    with pytest.raises(NotFoundError, match="never live"):
        room.service.rollback(ANN, "one", 2)
    with pytest.raises(ConflictError, match="cannot be rolled back"):
        room.service.rollback(ANN, "one")


def test_a_pause_holds_at_once_and_goes_on_only_after_an_approval(room: Room) -> None:
    live = room.live()
    room.service.pause(ANN, "one")
    room.settle()
    wanted = room.wanted()
    assert wanted is not None
    assert wanted.paused
    with pytest.raises(ConflictError, match="no approval that holds"):
        room.service.resume(ANN, "one")
    with pytest.raises(ForbiddenError):
        room.service.approve(ANN, "one", live.revision)
    room.service.approve(BOB, "one", live.revision)
    operation = room.service.resume(ANN, "one")
    room.settle()
    wanted = room.wanted()
    assert wanted is not None
    assert not wanted.paused
    assert room.done(operation).state is OperationState.SUCCEEDED


def test_a_rollback_does_not_wake_a_paused_filter(room: Room) -> None:
    room.live()
    room.updated("DEALER-002")
    room.approved_and_deployed()
    room.service.pause(ANN, "one")
    room.service.rollback(ANN, "one")
    room.settle()
    wanted = room.wanted()
    assert room.service.get("one").status is Status.DEPLOYED
    assert wanted is not None
    assert wanted.paused


def test_a_failed_deployment_leaves_a_paused_filter_paused(room: Room) -> None:
    room.live()
    room.service.pause(ANN, "one")
    room.settle()
    pending = room.updated("DEALER-002")
    room.service.approve(BOB, "one", pending.revision)
    room.service.deploy(ANN, "one")
    room.settle(refuses={pending.revision: "no"})
    wanted = room.wanted()
    assert wanted is not None
    assert wanted.paused


def test_a_document_that_turns_its_filter_off_needs_nobody(room: Room) -> None:
    room.live()
    record = room.service.set_enabled(ANN, "one", enabled=False)
    room.settle()
    assert record.status is Status.DISABLED
    assert room.wanted() is None
    assert not room.service.generate("one").valid
    on = room.service.set_enabled(ANN, "one", enabled=True)
    room.settle()
    assert on.status is Status.PENDING_APPROVAL
    assert room.wanted() is None
    with pytest.raises(IllegalTransitionError):
        room.service.rollback(ANN, "one")


def test_what_runs_is_deleted_by_two_people(room: Room) -> None:
    live = room.live()
    assert room.service.delete(ANN, "one").status is Status.PENDING_DELETION
    assert room.wanted() is not None
    with pytest.raises(ForbiddenError):
        room.service.approve(ANN, "one", live.revision)
    room.service.approve(BOB, "one", live.revision)
    room.settle()
    with pytest.raises(NotFoundError):
        room.service.get("one")
    assert room.wanted() is None
    assert len(room.service.revisions("one")) == 1


def test_a_refused_deletion_leaves_it_as_it_was(room: Room) -> None:
    live = room.live()
    room.service.delete(ANN, "one")
    after = room.service.reject(BOB, "one", "still in use")
    assert (after.status, after.deployed_revision) == (Status.DEPLOYED, live.revision)


def test_what_never_ran_is_deleted_by_one_and_may_come_again(room: Room) -> None:
    room.service.create(ANN, document())
    assert room.service.delete(ANN, "one").status is Status.DELETED
    assert room.service.list().filters == ()
    again = room.service.create(BOB, document())
    assert (again.version, again.status) == (2, "pending_approval")


def test_a_stale_tag_is_refused_and_changes_nothing(room: Room) -> None:
    seen = room.service.create(ANN, document())
    room.service.update(BOB, "one", document(value="DEALER-002"), seen.etag)
    with pytest.raises(StaleError):
        room.service.update(ANN, "one", document(value="DEALER-003"), seen.etag)
    assert room.service.get("one").author == "bob"


def test_every_role_is_held_to_its_operations(room: Room) -> None:
    record = room.service.create(Identity("a", frozenset({"author"})), document())
    reader = Identity("r", frozenset({"viewer"}))
    refusals = [
        lambda: room.service.create(reader, document("two")),
        lambda: room.service.approve(
            Identity("d", frozenset({"deployer"})), "one", record.revision
        ),
        lambda: room.service.deploy(Identity("p", frozenset({"approver"})), "one"),
        lambda: room.service.pause(Identity("w", frozenset({"author"})), "one"),
    ]
    for refusal in refusals:
        with pytest.raises(ForbiddenError):
            refusal()


def test_filters_are_found_by_status_consumer_and_words(room: Room) -> None:
    for id in ("one", "two", "three"):
        room.service.create(ANN, document(id))
    room.service.approve(BOB, "two", room.service.get("two").revision)
    ids = [record.id for record in room.service.list(limit=2).filters]
    rest = room.service.list(after=room.service.list(limit=2).after, limit=2)
    assert (ids, [record.id for record in rest.filters], rest.after) == (
        ["one", "three"],
        ["two"],
        None,
    )
    assert [record.id for record in room.service.list(status="approved").filters] == ["two"]
    assert [record.id for record in room.service.list(consumer="one-consumer").filters] == ["one"]
    assert [record.id for record in room.service.list(q="FILTER TH").filters] == ["three"]
    assert room.service.list(q="100%_").total == 0
    assert room.service.list(q="conditions").total == 0
    paged = room.service.list(q="filter", after="one", limit=1)
    assert ([record.id for record in paged.filters], paged.total, paged.after) == (
        ["three"],
        3,
        "three",
    )


def test_the_table_knows_every_status_and_says_what_it_allows() -> None:
    assert {status for moves in LEGAL.values() for status in moves} == set(Status)
    every = {name for moves in LEGAL for name in (moves.value,)}
    assert "force" not in every


def test_what_is_allowed_is_what_can_be_done_to_the_filter_now(room: Room) -> None:
    record = room.service.create(ANN, document())
    never_ran = allowed(record)
    assert {"rollback", "pause", "resume"}.isdisjoint(never_ran)
    assert {"update", "approve", "reject", "delete"} <= set(never_ran)
    assert "deploy" in allowed(room.service.approve(BOB, "one", record.revision))
    room.service.deploy(ANN, "one")
    assert allowed(room.service.get("one")) == ("disable", "pause")
    room.settle()
    assert {"rollback", "pause"} <= set(allowed(room.service.get("one")))
    room.service.pause(ANN, "one")
    assert "pause" not in allowed(room.service.get("one"))


def test_something_that_was_slipped_to_the_engine_is_taken_away(room: Room) -> None:
    record = room.live()
    wanted = room.wanted()
    assert wanted is not None
    room.store.routing.want(type(wanted)(**{**vars(wanted), "filter": "slipped"}))
    room.store.routing.want(
        type(wanted)(**{**vars(wanted), "revision": "other", "deployment": "x"})
    )
    room.settle()
    assert room.wanted("slipped") is None
    back = room.wanted()
    assert back is not None
    assert back.revision == record.revision


def test_a_difference_names_the_fields_and_shows_the_lines(room: Room) -> None:
    room.service.create(ANN, document())
    room.updated("DEALER-002")
    found = room.service.diff("one", 1, 2)
    assert found.fields == ("conditions",)
    assert '+      "value": "DEALER-002"' in found.text


def test_a_removal_that_is_late_is_done_when_the_engine_is_back(room: Room) -> None:
    live = room.live()
    room.service.delete(ANN, "one")
    room.service.approve(BOB, "one", live.revision)
    for _ in range(5):
        room.clock.advance(20)
        room.reconciler.step()
    record = room.service.get("one")
    assert record.status is Status.PENDING_DELETION
    assert "is its router running" in (record.deployment_error or "")
    assert room.service.operations("one")[0].state is OperationState.RUNNING
    room.settle()
    assert room.service.operations("one")[0].state is OperationState.SUCCEEDED
    assert room.service.create(ANN, document()).status is Status.PENDING_APPROVAL


def test_what_is_being_deployed_can_be_turned_off(room: Room) -> None:
    room.live()
    pending = room.updated("DEALER-002")
    room.service.approve(BOB, "one", pending.revision)
    operation = room.service.deploy(ANN, "one")
    room.service.set_enabled(CAT, "one", enabled=False)
    room.settle()
    assert room.service.get("one").status is Status.DISABLED
    assert room.done(operation).state is OperationState.SUPERSEDED
    assert room.wanted() is None


def test_what_is_being_deployed_can_be_paused(room: Room) -> None:
    room.live()
    pending = room.updated("DEALER-002")
    room.service.approve(BOB, "one", pending.revision)
    room.service.deploy(ANN, "one")
    room.service.pause(CAT, "one")
    room.settle()
    record, wanted = room.service.get("one"), room.wanted()
    assert (record.status, record.paused, record.deployed_version) == (Status.DEPLOYED, True, 2)
    assert wanted is not None
    assert wanted.paused


def test_a_pause_during_a_deployment_that_fails_holds_for_what_ran_before(room: Room) -> None:
    room.live()
    pending = room.updated("DEALER-002")
    room.service.approve(BOB, "one", pending.revision)
    room.service.deploy(ANN, "one")
    room.service.pause(CAT, "one")
    room.settle(refuses={pending.revision: "no"})
    record, wanted = room.service.get("one"), room.wanted()
    assert (record.status, record.deployed_version) == (Status.FAILED, 1)
    assert wanted is not None
    assert wanted.paused


def test_what_waits_for_deletion_can_be_stopped(room: Room) -> None:
    live = room.live()
    room.service.delete(ANN, "one")
    room.service.pause(CAT, "one")
    room.settle()
    wanted = room.wanted()
    assert wanted is not None
    assert wanted.paused
    assert room.service.set_enabled(CAT, "one", enabled=False).status is Status.DISABLED
    room.settle()
    assert room.wanted() is None
    with pytest.raises(StaleError):
        room.service.approve(BOB, "one", live.revision)


def test_a_deletion_under_way_cannot_be_turned_into_something_else(room: Room) -> None:
    live = room.live()
    room.service.delete(ANN, "one")
    room.service.approve(BOB, "one", live.revision)
    with pytest.raises(IllegalTransitionError, match="pending_deletion"):
        room.service.set_enabled(CAT, "one", enabled=False)
    room.settle()
    assert room.service.list().total == 0


def test_every_deployment_says_whether_history_is_wanted(room: Room) -> None:
    def backfilled() -> str:
        room.service.create(ANN, document(backfill="earliest"))
        room.approved_and_deployed()
        wanted = room.wanted()
        assert wanted is not None
        return wanted.backfill

    assert backfilled() == "earliest"
    room.service.delete(ANN, "one")
    room.service.approve(BOB, "one", room.service.get("one").revision)
    room.settle()
    assert backfilled() == "earliest"
    room.service.update(ANN, "one", document(value="DEALER-002"))
    room.approved_and_deployed()
    wanted = room.wanted()
    assert wanted is not None
    assert wanted.backfill == "none"


def test_a_target_that_was_told_late_has_its_time_all_the_same(room: Room) -> None:
    record = room.service.create(ANN, document())
    room.service.approve(BOB, "one", record.revision)
    operation = room.service.deploy(ANN, "one")
    room.clock.advance(60)
    room.reconciler.step()
    assert room.done(operation).state is OperationState.RUNNING
    room.router()
    room.reconciler.step()
    assert room.done(operation).state is OperationState.SUCCEEDED


# Two people, also through deletion and rollback

AUTHOR = Identity("ann", frozenset({"author"}))
OPERATOR = Identity("olga", frozenset({"operator"}))


def test_an_author_alone_does_not_turn_off_what_runs(room: Room) -> None:
    room.live()
    with pytest.raises(ForbiddenError, match="pauseFilter"):
        room.service.set_enabled(AUTHOR, "one", enabled=False)
    room.service.delete(AUTHOR, "one")
    with pytest.raises(ForbiddenError, match="pauseFilter"):
        room.service.set_enabled(AUTHOR, "one", enabled=False)
    assert room.wanted() is not None


def test_an_operator_turns_off_what_runs_and_writes_nothing_else(room: Room) -> None:
    room.live()
    changed = document(value="DEALER-002")
    with pytest.raises(ForbiddenError):
        room.service.update(OPERATOR, "one", changed)
    with pytest.raises(ConflictError, match="`enabled` only"):
        room.service.update(OPERATOR, "one", {**changed, "enabled": False})
    assert room.service.set_enabled(OPERATOR, "one", enabled=False).status is Status.DISABLED
    room.settle()
    assert room.wanted() is None


def test_what_is_turned_off_is_what_ran_and_not_a_draft(room: Room) -> None:
    live = room.live()
    room.updated("DEALER-002")
    draft = room.service.get("one").document
    with pytest.raises(ConflictError, match="`enabled` only"):
        room.service.update(OPERATOR, "one", {**draft, "enabled": False})
    off = room.service.set_enabled(OPERATOR, "one", enabled=False)
    assert {**off.document, "enabled": True} == dict(live.document)


@pytest.mark.parametrize("how", ["turned off", "paused"])
def test_what_ran_lately_is_deleted_by_two_people_though_it_was_stopped(
    room: Room, how: str
) -> None:
    room.live()
    if how == "paused":
        room.service.pause(ANN, "one")
    else:
        room.service.set_enabled(ANN, "one", enabled=False)
    room.settle()
    asked = room.service.delete(ANN, "one")
    assert asked.status is Status.PENDING_DELETION
    with pytest.raises(ForbiddenError):
        room.service.approve(ANN, "one", asked.revision)
    room.service.approve(BOB, "one", asked.revision)
    room.settle()
    assert room.service.list().total == 0


def test_a_refused_deletion_of_what_is_off_leaves_it_off(room: Room) -> None:
    room.live()
    room.service.set_enabled(ANN, "one", enabled=False)
    room.settle()
    room.service.delete(ANN, "one")
    assert room.service.reject(BOB, "one", "not yet").status is Status.DISABLED


def test_what_has_been_off_for_longer_than_an_approval_holds_is_deleted_by_one(room: Room) -> None:
    room.live()
    room.service.set_enabled(ANN, "one", enabled=False)
    room.settle()
    room.clock.advance(72 * 3600)
    assert room.service.delete(ANN, "one").status is Status.DELETED


def test_a_version_that_came_up_paused_and_was_resumed_is_a_way_back(room: Room) -> None:
    room.live()
    second = room.updated("DEALER-002")
    room.service.approve(BOB, "one", second.revision)
    room.service.deploy(ANN, "one")
    room.service.pause(CAT, "one")
    room.settle()
    room.service.approve(BOB, "one", second.revision)
    room.service.resume(ANN, "one")
    room.settle()
    room.updated("DEALER-003")
    room.approved_and_deployed()
    room.service.rollback(CAT, "one")
    room.settle()
    record = room.service.get("one")
    assert (record.deployed_revision, record.status) == (second.revision, Status.DEPLOYED)


def test_rollback_pressed_again_goes_on_and_never_back_to_the_bad_version(room: Room) -> None:
    first = room.live()
    second = room.updated("DEALER-002")
    room.approved_and_deployed()
    room.updated("DEALER-003")
    room.approved_and_deployed()
    seen: list[str | None] = []
    for _ in range(2):
        room.service.rollback(CAT, "one")
        room.settle()
        seen.append(room.service.get("one").deployed_revision)
    assert seen == [second.revision, first.revision]
    with pytest.raises(ConflictError, match="cannot be rolled back"):
        room.service.rollback(CAT, "one")
    with pytest.raises(ConflictError, match="no way back"):
        room.service.rollback(CAT, "one", 3)


def test_a_version_that_is_approved_anew_is_a_way_back_again(room: Room) -> None:
    room.live()
    bad = room.updated("DEALER-002")
    room.approved_and_deployed()
    room.service.rollback(CAT, "one")
    room.settle()
    room.updated("DEALER-002")
    room.approved_and_deployed()
    room.updated("DEALER-003")
    room.approved_and_deployed()
    room.service.rollback(CAT, "one")
    room.settle()
    assert room.service.get("one").deployed_revision == bad.revision


def test_a_rollback_of_another_version_than_the_caller_saw_is_refused(room: Room) -> None:
    room.live()
    room.updated("DEALER-002")
    room.approved_and_deployed()
    room.service.rollback(CAT, "one", running=2)
    room.settle()
    with pytest.raises(StaleError, match="version 2 of one is not what runs"):
        room.service.rollback(BOB, "one", running=2)
    assert room.service.get("one").deployed_version == 3


def test_a_rollback_that_fails_and_is_asked_for_again_goes_to_the_same_version(room: Room) -> None:
    first = room.live()
    room.updated("DEALER-002")
    room.approved_and_deployed()
    room.service.rollback(CAT, "one")
    room.settle(refuses={first.revision: "no"})
    assert room.service.get("one").status is Status.FAILED
    room.service.rollback(CAT, "one")
    room.settle()
    assert room.service.get("one").deployed_revision == first.revision


def test_after_a_rollback_the_approver_is_who_approved_that_content(room: Room) -> None:
    room.live()
    second = room.updated("DEALER-002")
    room.service.approve(CAT, "one", second.revision)
    room.service.deploy(ANN, "one")
    room.settle()
    assert room.service.get("one").approved_by == "cat"
    room.service.rollback(CAT, "one")
    room.settle()
    record = room.service.get("one")
    assert (record.version, record.approved_by) == (3, "bob")
    assert room.service.revisions("one")[-1].restores == 1


def test_whoever_wrote_a_content_once_may_not_approve_it_when_it_comes_back(room: Room) -> None:
    room.live()
    room.updated("DEALER-002", by=BOB)
    room.service.approve(CAT, "one", room.service.get("one").revision)
    room.updated("DEALER-003", by=ANN)
    back = room.updated("DEALER-002", by=ANN)
    with pytest.raises(ForbiddenError, match="bob may not approve"):
        room.service.approve(BOB, "one", back.revision)
    room.service.approve(CAT, "one", back.revision)


def test_the_time_of_the_author_is_that_of_the_writing(room: Room) -> None:
    record = room.service.create(ANN, document())
    room.clock.advance(60)
    approved = room.service.approve(BOB, "one", record.revision)
    assert approved.written_at == record.created_at < approved.updated_at
