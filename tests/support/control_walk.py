"""Random walks through the control plane, with a judge of its own who looks at every step.

The judge keeps a model that shares no code with the product: who wrote each content, here or in git;
who approved it; what was live, rolled back from, turned off, asked to be deleted. It is fed with what
succeeded, and decides from that alone whether what the engine was told may run, whether a deletion
was two people's, and where a rollback has to go.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.support.control_model import FaultInjector, FilterModel, KilledError
from tests.support.control_plane import ControlPlaneHarness, filter_document

from headgate.core.identity.audit import breaks
from headgate.core.identity.roles import Identity
from headgate.errors import HeadgateError
from headgate.filters.control.operations import Point
from headgate.filters.store.control import ControlStore
from headgate.filters.store.model import OperationKind, OperationState
from headgate.filters.store.routing import RoutingStore

NAMES = ("ann", "bob", "cat", "dan")
ROLES = ("author", "approver", "deployer", "operator", "admin")
IDS = ("one", "two")
HOURS = 72

people = st.builds(
    Identity, st.sampled_from(NAMES), st.frozensets(st.sampled_from(ROLES), min_size=1)
)
admins = st.builds(Identity, st.sampled_from(NAMES), st.just(frozenset({"admin"})))
anyone = st.one_of(admins, people)
authors = st.builds(Identity, st.sampled_from(NAMES), st.just(frozenset({"author"})))
ids = st.sampled_from(IDS)
# Enough of them that somebody is left who has never written one.
VALUES = ("A", "B", "C", "D", "E", "F", "G", "H")
values = st.sampled_from(VALUES)
# How often what is tried; the way it should go comes often, since chance would hardly find it.
WEIGHTS = {
    "do_as_intended": 6,
    "turn_off_on_and_back": 2,
    "deploy_pause_and_resume": 2,
    "edit_away_and_back": 2,
    "delete_alone": 3,
    "roll_back_again": 3,
    "deploy_too_late": 1,
    "commit": 3,
    "mend_store": 3,
    "approve_own_commit": 2,
    "write": 3,
    "approve": 5,
    "reject": 1,
    "deploy": 2,
    "rollback": 3,
    "pause": 3,
    "resume": 5,
    "delete": 2,
    "time_passes": 2,
    "days_pass": 1,
    "reconcile": 4,
    "route": 4,
    "be_killed_at": 2,
    "be_killed": 1,
}
ARGUMENTS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "do_as_intended": {
        "id": ids,
        "value": values,
        "author": st.sampled_from(NAMES),
        "last": st.sampled_from((1, 2, 3, 5, 5, 5)),
    },
    "turn_off_on_and_back": {"by": admins, "id": ids, "value": values},
    "deploy_pause_and_resume": {"id": ids, "value": values, "author": st.sampled_from(NAMES)},
    "edit_away_and_back": {"id": ids, "value": values, "by": admins, "approver": admins},
    "delete_alone": {
        "by": st.one_of(anyone, authors),
        "id": ids,
        "value": values,
        "hours": st.sampled_from((0, 0, 80)),
    },
    "roll_back_again": {"by": admins, "id": ids, "times": st.integers(1, 3)},
    "deploy_too_late": {"id": ids, "value": values, "author": st.sampled_from(NAMES)},
    "commit": {
        "id": ids,
        "value": values,
        "author": st.sampled_from(NAMES),
        "on": st.sampled_from((True, True, False)),
    },
    "mend_store": {"by": admins, "id": ids},
    "approve_own_commit": {
        "by": admins,
        "id": ids,
        "value": values,
        "author": st.sampled_from(NAMES),
    },
    "write": {
        "by": anyone,
        "id": ids,
        "value": values,
        "on": st.sampled_from((True, True, False)),
        "as_it_runs": st.booleans(),
    },
    "approve": {"by": anyone, "id": ids, "stale": st.booleans()},
    "reject": {"by": anyone, "id": ids},
    "deploy": {"by": anyone, "id": ids},
    "rollback": {"by": anyone, "id": ids, "to": st.one_of(st.none(), st.integers(1, 6))},
    "pause": {"by": anyone, "id": ids},
    "resume": {"by": anyone, "id": ids},
    "delete": {"by": anyone, "id": ids},
    "time_passes": {"seconds": st.sampled_from((1, 5, 40))},
    "days_pass": {},
    "reconcile": {},
    "route": {"refuse": st.sampled_from(("", "", "", "A", "B"))},
    "be_killed_at": {"point": st.sampled_from(tuple(Point))},
    "be_killed": {},
}


class ControlPlaneWalk(RuleBasedStateMachine):
    """Random people try random operations at random times; each that succeeds is held against the model."""

    database: Path
    counts: ClassVar[Counter[str]] = Counter()

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.faults = FaultInjector()
        self.harness = ControlPlaneHarness.copy(
            type(self).database, Path(self.folder.name) / "ops.db", faults=self.faults
        )
        self.models = {id: FilterModel() for id in IDS}
        self.rollback_names_no_version, self.rollback_after_failure = False, False

    def teardown(self) -> None:
        if not hasattr(self, "harness"):
            return
        self.faults.at_point = None
        self.restart()
        self.harness.settle(steps=8)
        control = self.harness.store.part(ControlStore)
        entries, head = control.audit_chain()
        running = control.operations(states=(OperationState.RUNNING,))
        stuck = [one.id for one in control.filters() if one.status == "deploying"]
        self.harness.store.close()
        self.folder.cleanup()
        assert breaks(entries, head) == ()
        assert (running, stuck) == ((), []), "something never ends"

    @property
    def now(self) -> datetime:
        return self.harness.clock()

    def attempt(self, what: Callable[[], Any]) -> Any:
        """The result of an operation; None when it was refused or the process was killed within it."""
        self.counts["tried"] += 1
        try:
            return what()
        except HeadgateError as error:
            self.counts[type(error).__name__] += 1
            return None
        except KilledError:
            self.counts["killed"] += 1
            self.restart()
            return None

    def restart(self) -> None:
        """Continue with the next process over the same database."""
        self.harness = self.harness.restart(self.faults)

    # One rule, so that the weights below hold: every walk does a bit of everything.
    @rule(data=st.data(), action=st.sampled_from([n for n, w in WEIGHTS.items() for _ in range(w)]))
    def act(self, data: st.DataObject, action: str) -> None:
        drawn = {name: data.draw(what, label=name) for name, what in ARGUMENTS[action].items()}
        getattr(self, action)(**drawn)

    # What people do

    def write(self, by: Identity, id: str, value: str, on: bool, as_it_runs: bool = True) -> None:
        text = filter_document(id, value, enabled=on)
        running = self.running(id)
        if not on and as_it_runs and running is not None:
            text = {**running, "enabled": False}
        self.submit(by, id, text, {by.name})

    def submit(self, by: Identity, id: str, text: dict[str, Any], wrote: set[str]) -> None:
        """Create or update; `wrote` are all who had a hand in the text."""
        service, model = self.harness.service, self.models[id]
        before, running = self.harness.store.part(ControlStore).filter(id), self.running(id)
        also = frozenset(wrote - {by.name})
        if before is None or before.status == "deleted":
            record = self.attempt(lambda: service.create(by, text, also))
        else:
            record = self.attempt(lambda: service.update(by, id, text, None, also))
        if record is None or (before and record.version == before.version):
            return
        self.counts["written"] += 1
        # Who wrote before the last approval is no author of what is written after it.
        if model.is_approved or before is None or before.status == "deleted":
            model.writers = set()
        model.writers |= wrote | {by.name}
        model.is_approved = False
        model.revision, model.approved_at = record.revision, {}
        model.authors_by_version[record.version] = set(model.writers)
        model.revision_by_version[record.version] = record.revision
        model.writers_by_revision.setdefault(record.revision, set()).update(model.writers)
        if not text["enabled"]:
            if running is not None:
                self.counts["turned off"] += 1
                assert by.roles & {"deployer", "operator", "admin"}, f"{by} stopped what ran"
                assert {**running, "enabled": False} == dict(record.document), "and changed it"
            model.turn_off()
            model.deletion_requested_by = None

    def running(self, id: str) -> dict[str, Any] | None:
        """The document that shall run now."""
        record = self.harness.store.part(ControlStore).filter(id)
        if record is None or record.wanted_version is None:
            return None
        version = self.harness.store.part(ControlStore).version(id, record.wanted_version)
        return dict(version.document) if version else None

    def approve(self, by: Identity, id: str, stale: bool) -> None:
        record = self.harness.store.part(ControlStore).filter(id)
        if record is None:
            return
        revision = (record.deployed_revision or "") if stale else record.revision
        self.attempt_and_judge(lambda: self.harness.service.approve(by, id, revision), id)

    def reject(self, by: Identity, id: str) -> None:
        self.attempt_and_judge(lambda: self.harness.service.reject(by, id, "no"), id)

    def deploy(self, by: Identity, id: str) -> None:
        self.attempt_and_judge(lambda: self.harness.service.deploy(by, id), id)

    def rollback(self, by: Identity, id: str, to: int | None) -> None:
        record = self.harness.store.part(ControlStore).filter(id)
        self.rollback_names_no_version, self.rollback_after_failure = (
            to is None,
            bool(record and record.status == "failed"),
        )
        self.attempt_and_judge(lambda: self.harness.service.rollback(by, id, to), id)

    def pause(self, by: Identity, id: str) -> None:
        self.attempt_and_judge(lambda: self.harness.service.pause(by, id), id)

    def resume(self, by: Identity, id: str) -> None:
        self.attempt_and_judge(lambda: self.harness.service.resume(by, id), id)

    def delete(self, by: Identity, id: str) -> None:
        self.attempt_and_judge(lambda: self.harness.service.delete(by, id), id)

    # Ways that chance would hardly find, each of which led around the second person once

    def deploy_pause_and_resume(self, id: str, value: str, author: str) -> None:
        """A deployment that a pause supersedes is live all the same, once it is resumed."""
        self.do_as_intended(id, value, author, last=3)
        self.pause(Identity(author, frozenset({"admin"})), id)
        self.reconcile()
        self.route("")
        self.reconcile()
        self.approve(self.somebody_else(id), id, stale=True)
        self.resume(Identity(author, frozenset({"admin"})), id)
        self.reconcile()
        self.route("")
        self.reconcile()
        following = VALUES[(VALUES.index(value) + 1) % len(VALUES)]
        self.do_as_intended(id, following, author, last=5)
        self.rollback(Identity(author, frozenset({"admin"})), id, None)

    def deploy_too_late(self, id: str, value: str, author: str) -> None:
        self.do_as_intended(id, value, author, last=2)
        self.days_pass()
        self.deploy(Identity(author, frozenset({"admin"})), id)

    def edit_away_and_back(self, id: str, value: str, by: Identity, approver: Identity) -> None:
        """Whoever wrote a content once may not approve it when somebody else brings it back."""
        other = next(one for one in VALUES if one != value)
        self.write(approver, id, value, on=True)
        for name in NAMES:
            self.approve(Identity(name, frozenset({"admin"})), id, stale=False)
        self.write(by, id, other, on=True)
        for name in NAMES:
            self.approve(Identity(name, frozenset({"admin"})), id, stale=False)
        self.write(by, id, value, on=True)
        self.approve(approver, id, stale=False)

    def delete_alone(self, by: Identity, id: str, value: str, hours: int) -> None:
        """One person turns it off, waits perhaps, and deletes it."""
        self.delete(by, id)
        self.write(by, id, value, on=False)
        self.reconcile()
        self.route("")
        self.reconcile()
        self.harness.clock.advance(hours * 3600)
        self.delete(by, id)

    def roll_back_again(self, by: Identity, id: str, times: int) -> None:
        """Pressed again, it goes on and not round."""
        for _ in range(times):
            self.rollback(by, id, None)
            self.reconcile()
            self.route("")
            self.reconcile()

    def commit(self, id: str, value: str, author: str, on: bool) -> None:
        """Somebody changes the filter's file in git, which nobody here has seen yet."""
        model = self.models[id]
        record = self.harness.store.part(ControlStore).filter(id)
        accepted = record and self.harness.store.part(ControlStore).version(
            id, record.accepted_version or 0
        )
        text = filter_document(id, value, enabled=on)
        same = model.git_file is None or (accepted and dict(accepted.document) == model.git_file[0])
        model.git_file = (
            text,
            {author} | (set() if same or model.git_file is None else model.git_file[1]),
        )

    def mend_store(self, by: Identity, id: str) -> None:
        """What stands in git is submitted, with everybody who wrote it there as its author."""
        model = self.models[id]
        if model.git_file is not None:
            text, wrote = model.git_file
            self.counts["mended"] += 1
            self.submit(by, id, text, wrote)

    def approve_own_commit(self, by: Identity, id: str, value: str, author: str) -> None:
        """Somebody submits what another wrote in git, and that other approves it."""
        self.commit(id, value, author, on=True)
        self.mend_store(by, id)
        self.approve(Identity(author, frozenset({"admin"})), id, stale=False)

    def do_as_intended(self, id: str, value: str, author: str, last: int) -> None:
        """The way it should go, or its beginning: walks would hardly ever get there by chance."""
        by = Identity(author, frozenset({"admin"}))
        steps = (
            lambda: self.write(by, id, value, on=True),
            lambda: self.approve(self.somebody_else(id), id, stale=False),
            lambda: self.deploy(by, id),
            lambda: self.reconcile(),
            lambda: (self.route(""), self.reconcile()),
        )
        for step in steps[:last]:
            step()

    def somebody_else(self, id: str) -> Identity:
        """An admin who had no hand in the newest version, if there is one."""
        model = self.models[id]
        wrote = model.writers | model.writers_by_revision.get(model.revision, set())
        free = [name for name in NAMES if name not in wrote]
        return Identity(free[0] if free else NAMES[-1], frozenset({"admin"}))

    def turn_off_on_and_back(self, by: Identity, id: str, value: str) -> None:
        """A way around approval, if rollback woke what was turned off."""
        self.write(by, id, value, on=False)
        self.write(by, id, value, on=True)
        self.rollback(by, id, None)

    # What happens by itself

    def time_passes(self, seconds: int) -> None:
        self.harness.clock.advance(seconds)

    def days_pass(self) -> None:
        self.harness.clock.advance(HOURS * 3600)

    def reconcile(self) -> None:
        if self.attempt(self.harness.reconciler.step):
            for model in self.models.values():
                model.stopping_revisions = set()
        self.observe()

    def observe(self) -> None:
        """Note in the models which versions are live and which filters are deleted."""
        for id, model in self.models.items():
            record = self.harness.store.part(ControlStore).filter(id)
            if record is None:
                continue
            if record.status == "deleted":
                model.forget()
            if record.runs:
                model.last_ran_at = self.now
            if record.deployed_version is not None:
                model.note_live(record.deployed_version)

    def route(self, refuse: str) -> None:
        wanted = self.harness.store.part(RoutingStore).wanted()
        bad = {row.revision: "no" for row in wanted if f'"value":"{refuse}"' in row.content}
        self.harness.run_router_batch(bad)

    def be_killed_at(self, point: Point) -> None:
        self.faults.at_point = point

    def be_killed(self) -> None:
        self.restart()

    # The judge

    def attempt_and_judge(self, what: Callable[[], Any], id: str) -> None:
        """Attempt an operation, and judge it by the audit entries it left: a killed one may have been done."""
        before = len(self.harness.store.part(ControlStore).audit_of(id))
        self.attempt(what)
        for entry in self.harness.store.part(ControlStore).audit_of(id)[before:]:
            self.judge(id, entry.actor, entry.action, entry.detail)

    def judge(self, id: str, actor: str, action: str, detail: Any) -> None:
        self.counts[action] += 1
        model = self.models[id]
        number = detail.get("version") or 0
        revision = model.revision_by_version.get(number, "")
        if action == "approve":
            assert actor not in model.writers_by_revision[revision], (
                f"{actor} approved what they wrote"
            )
            model.approved_at[revision] = self.now
            if detail.get("resume"):
                model.is_approved |= revision == model.revision
            else:
                assert actor not in model.writers, f"{actor} approved what they wrote on"
                assert revision == model.revision
                model.is_approved = True
        elif action in ("deploy", "resume"):
            given = model.approved_at.get(revision)
            assert given is not None, f"{action} of {revision[:6]} without a second person"
            assert self.now - given < timedelta(hours=HOURS), f"{action} after the approval's time"
            model.allowed_revisions.add(revision)
            model.paused = False
        elif action == "reject":
            model.approved_at, model.is_approved = {}, False
        elif action == "pause":
            model.approved_at, model.paused = {}, True
        elif action == "ask_deletion":
            model.deletion_requested_by = actor
        elif action == "reject_deletion":
            model.deletion_requested_by = None
        elif action == "approve_deletion":
            assert model.deletion_requested_by not in (None, actor), f"{actor} alone deleted it"
            model.deletion_requested_by = None
            model.turn_off()
        elif action == "delete":
            lately = model.last_ran_at and self.now - model.last_ran_at < timedelta(hours=HOURS)
            assert not lately, f"{actor} alone deleted what ran"
            model.forget()
        elif action == "rollback":
            self.judge_rollback(id, number, detail["to"])

    def judge_rollback(self, id: str, number: int, to: int) -> None:
        model = self.models[id]
        record = self.harness.store.part(ControlStore).filter(id)
        assert record is not None
        assert model.allowed_revisions, "a rollback turned a filter on"
        assert to in model.live_versions, "a rollback to something that was never live"
        assert to not in model.rolled_back_versions, "a rollback to what was rolled back from"
        if self.rollback_names_no_version:
            expected = model.rollback_target(record.deployed_version, self.rollback_after_failure)
            assert to == expected, f"a rollback to version {to}, not to {expected}"
        model.note_rollback(record.deployed_version, to)
        model.revision_by_version[number] = model.revision_by_version[to]
        model.authors_by_version[number] = set(model.authors_by_version[to])
        revision = model.revision_by_version[to]
        model.allowed_revisions.add(revision)
        model.revision, model.approved_at = revision, {}
        model.writers, model.is_approved = set(model.authors_by_version[to]), False

    @invariant()
    def nothing_runs_without_a_second_person(self) -> None:
        if not hasattr(self, "harness"):
            return
        for row in self.harness.store.part(RoutingStore).wanted():
            self.counts["looked at something that runs"] += 1
            model = self.models[row.filter]
            assert row.revision in model.allowed_revisions | model.stopping_revisions

    @invariant()
    def what_is_paused_stays_paused(self) -> None:
        if not hasattr(self, "harness"):
            return
        for id, model in self.models.items():
            record = self.harness.store.part(ControlStore).filter(id)
            if record and record.runs and model.paused and record.status != "deploying":
                assert record.paused or self._deployed_since(id)

    def _deployed_since(self, id: str) -> bool:
        newest = self.harness.store.part(ControlStore).operations(id)
        return any(one.kind is OperationKind.DEPLOY for one in newest[:1])
