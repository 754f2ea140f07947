"""N4: nothing runs, and nothing that ran is deleted, by the decision of one person alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.support.control_walk import ControlPlaneWalk
from tests.support.ops_store import create_database

from headgate.filters.control import approvals, revisions, service
from headgate.filters.control import commands as ordering
from headgate.filters.control import edit as submitting
from headgate.filters.store.control import Change
from headgate.filters.store.model import (
    Approval,
    FilterRecord,
    OperationKind,
    OperationState,
)

GENERATE = (Phase.generate,)


def walked(
    folder: Path,
    steps: int,
    walks: int,
    length: int,
    phases: tuple[Phase, ...] = tuple(Phase),
) -> Counter[str]:
    """How often what was done in so many steps or more."""
    ControlPlaneWalk.database = create_database(folder / "made.db")
    ControlPlaneWalk.counts.clear()
    while ControlPlaneWalk.counts["tried"] < steps:
        run_state_machine_as_test(
            ControlPlaneWalk,
            settings=settings(
                max_examples=walks,
                stateful_step_count=length,
                deadline=None,
                database=None,
                phases=phases,
                suppress_health_check=[
                    HealthCheck.too_slow,
                    HealthCheck.data_too_large,
                    HealthCheck.filter_too_much,
                ],
            ),
        )
    return ControlPlaneWalk.counts


def test_no_random_walk_gets_around_the_second_person(tmp_path: Path) -> None:
    did = walked(tmp_path, steps=500, walks=12, length=30)
    assert did["tried"] >= 500


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_no_long_random_walk_does_either(tmp_path: Path) -> None:
    did = walked(tmp_path, steps=25_000, walks=50, length=100)
    assert did["tried"] >= 25_000
    often = ("deploy", "rollback", "resume", "killed", "mended", "turned off", "approve_deletion")
    assert min(did[name] for name in often) > 10, did


# Each guard taken out, one at a time: the walk has to notice.
Patch = Callable[[pytest.MonkeyPatch], None]


def _let_authors_approve(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(approvals, "_refuse_authors", lambda *_: None)
    patch.setattr(approvals, "is_among", lambda *_: False)


def _forget_earlier_writers_of_a_content(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(approvals, "writers_of", lambda change, version: version.authors)


def _forget_who_wrote_in_git(patch: pytest.MonkeyPatch) -> None:
    plain = service.drafted
    patch.setattr(service, "drafted", lambda document, also=(): plain(document))


def _forget_who_wrote_before_the_last_edit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(revisions, "_was_approved", lambda *_: True)


def _keep_approvals_over_a_pause(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Change, "void_approvals", lambda *_: 0)


def _keep_approvals_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Approval, "holds", lambda self, now: not self.void)


def _deploy_without_an_approval(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ordering, "refuse_unless_approved", lambda *_: None)


def _roll_back_to_anything(patch: pytest.MonkeyPatch) -> None:
    def ways(change: Change, record: FilterRecord) -> tuple[int, ...]:
        return tuple(one.version for one in reversed(change.versions(record.id)))

    patch.setattr(ordering, "ways_back", ways)
    patch.setattr(ordering, "was_approved_for", lambda *_: True)


def _roll_back_by_how_operations_ended(patch: pytest.MonkeyPatch) -> None:
    def ways(change: Change, record: FilterRecord) -> tuple[int, ...]:
        done = change.operations(record.id, (OperationState.SUCCEEDED,))
        kinds = (OperationKind.DEPLOY, OperationKind.ROLLBACK)
        left = {one.version for one in change.live_versions(record.id) if one.withdrawn}
        mine = {one.version for one in done if one.kind in kinds and one.version not in left}
        # By version: two operations of the same instant come back in any order.
        return tuple(sorted(mine, reverse=True))

    patch.setattr(ordering, "ways_back", ways)


def _roll_back_to_what_was_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ordering, "_withdraw", lambda *_: None)


def _roll_back_what_is_off(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ordering, "_refuse_unless_running", lambda *_: None)


def _let_authors_turn_off_what_runs(patch: pytest.MonkeyPatch) -> None:
    plain = service.require

    def require(by: object, operation: str) -> None:
        if operation != "pauseFilter":
            plain(by, operation)  # pyright: ignore[reportArgumentType]

    patch.setattr(service, "require", require)


def _turn_off_with_other_content(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(submitting, "_refuse_other_changes", lambda *_: None)


def _delete_alone_what_ran(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(submitting, "_ran_within", lambda *_: False)


GUARDS: list[Patch] = [
    _let_authors_approve,
    _forget_earlier_writers_of_a_content,
    _forget_who_wrote_in_git,
    _forget_who_wrote_before_the_last_edit,
    _keep_approvals_over_a_pause,
    _keep_approvals_for_ever,
    _deploy_without_an_approval,
    _roll_back_to_anything,
    _roll_back_by_how_operations_ended,
    _roll_back_to_what_was_left,
    _roll_back_what_is_off,
    _let_authors_turn_off_what_runs,
    _turn_off_with_other_content,
    _delete_alone_what_ran,
]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.__name__.strip("_"))
def test_a_guard_that_is_taken_out_is_missed(
    guard: Patch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard(monkeypatch)
    with pytest.raises(AssertionError):
        walked(tmp_path, steps=5_000, walks=50, length=60, phases=GENERATE)
