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
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.support.control_plane import ControlPlaneHarness, filter_document

from headgate.control.faults import ControlFaults, Point
from headgate.control.identity.model import Identity
from headgate.errors import HeadgateError
from headgate.store.audit import breaks
from headgate.store.control_model import OperationKind, OperationState

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


class KilledError(BaseException):
    """The process is gone: nothing may catch this."""


class Killer(ControlFaults):
    """Strikes once at the given point, by ending everything up to the test."""

    def __init__(self) -> None:
        super().__init__()
        self.at_point: Point | None = None

    def at(self, point: Point) -> None:
        if point is self.at_point:
            self.at_point = None
            raise KilledError(point)


@dataclass
class FilterModel:
    """What the judge knows of one filter.

    `writers` wrote since the last approval, `wrote` has everybody who ever wrote a content, and
    `authors` who wrote a version. `lived` has the versions that were live, `left` those of them that
    were rolled back from. `git` is the file at the branch's tip, with who wrote on it since it was
    as the store has it.
    """

    writers: set[str] = field(default_factory=set)
    wrote: dict[str, set[str]] = field(default_factory=dict)
    authors: dict[int, set[str]] = field(default_factory=dict)
    revisions: dict[int, str] = field(default_factory=dict)
    git: tuple[dict[str, Any], set[str]] | None = None
    vetted: bool = False
    revision: str = ""
    asked_by: str | None = None
    ran_at: datetime | None = None
    left: set[int] = field(default_factory=set)
    approved: dict[str, datetime] = field(default_factory=dict)
    may_run: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    lived: list[int] = field(default_factory=list)
    paused: bool = False

    def forget(self) -> None:
        """The filter is gone: nothing of it runs, and there is no way back to it."""
        self.lived, self.left, self.asked_by, self.ran_at = [], set(), None, None
        self.turn_off()

    def go_live(self, version: int) -> None:
        if self.lived[-1:] != [version]:
            self.lived.append(version)

    def way_back(self, live: int | None, failed: bool) -> int | None:
        """Where a rollback has to go that names no version."""
        ways = [one for one in reversed(self.lived) if one not in self.left]
        if failed and live in ways:
            return live
        now = self.revisions.get(live or 0)
        return next((one for one in ways if self.revisions[one] != now), None)

    def leave(self, live: int | None, to: int) -> None:
        """What is rolled back from is no way back, in whatever version had that content till now."""
        content = self.revisions.get(live or 0)
        if live is not None and content != self.revisions[to]:
            self.left |= {n for n, one in self.revisions.items() if n <= live and one == content}

    def turn_off(self) -> None:
        """What ran may stand there until the reconciler has been by, not longer."""
        self.leaving |= self.may_run
        self.may_run = set()


class ControlPlaneWalk(RuleBasedStateMachine):
    """Anybody tries anything at any time; only what succeeded counts."""

    made: Path
    did: ClassVar[Counter[str]] = Counter()

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.killer = Killer()
        self.harness = ControlPlaneHarness.copy(
            type(self).made, Path(self.folder.name) / "ops.db", faults=self.killer
        )
        self.known = {id: FilterModel() for id in IDS}
        self.unnamed, self.failed = False, False

    def teardown(self) -> None:
        if not hasattr(self, "harness"):
            return
        self.killer.at_point = None
        self.next_process()
        self.harness.settle(steps=8)
        control = self.harness.store.control
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

    def tried(self, what: Callable[[], Any]) -> Any:
        """What came of it; None when it was refused, or the process was killed before it was done."""
        self.did["tried"] += 1
        try:
            return what()
        except HeadgateError as error:
            self.did[type(error).__name__] += 1
            return None
        except KilledError:
            self.did["killed"] += 1
            self.next_process()
            return None

    def next_process(self) -> None:
        self.harness = self.harness.restart(self.killer)

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
        service, known = self.harness.service, self.known[id]
        before, running = self.harness.store.control.filter(id), self.running(id)
        also = frozenset(wrote - {by.name})
        if before is None or before.status == "deleted":
            record = self.tried(lambda: service.create(by, text, also))
        else:
            record = self.tried(lambda: service.update(by, id, text, None, also))
        if record is None or (before and record.version == before.version):
            return
        self.did["written"] += 1
        # Who wrote before the last approval is no author of what is written after it.
        if known.vetted or before is None or before.status == "deleted":
            known.writers = set()
        known.writers |= wrote | {by.name}
        known.vetted = False
        known.revision, known.approved = record.revision, {}
        known.authors[record.version] = set(known.writers)
        known.revisions[record.version] = record.revision
        known.wrote.setdefault(record.revision, set()).update(known.writers)
        if not text["enabled"]:
            if running is not None:
                self.did["turned off"] += 1
                assert by.roles & {"deployer", "operator", "admin"}, f"{by} stopped what ran"
                assert {**running, "enabled": False} == dict(record.document), "and changed it"
            known.turn_off()
            known.asked_by = None

    def running(self, id: str) -> dict[str, Any] | None:
        """The document that shall run now."""
        record = self.harness.store.control.filter(id)
        if record is None or record.wanted_version is None:
            return None
        version = self.harness.store.control.version(id, record.wanted_version)
        return dict(version.document) if version else None

    def approve(self, by: Identity, id: str, stale: bool) -> None:
        record = self.harness.store.control.filter(id)
        if record is None:
            return
        revision = (record.deployed_revision or "") if stale else record.revision
        self.killed_or_done(lambda: self.harness.service.approve(by, id, revision), id)

    def reject(self, by: Identity, id: str) -> None:
        self.killed_or_done(lambda: self.harness.service.reject(by, id, "no"), id)

    def deploy(self, by: Identity, id: str) -> None:
        self.killed_or_done(lambda: self.harness.service.deploy(by, id), id)

    def rollback(self, by: Identity, id: str, to: int | None) -> None:
        record = self.harness.store.control.filter(id)
        self.unnamed, self.failed = to is None, bool(record and record.status == "failed")
        self.killed_or_done(lambda: self.harness.service.rollback(by, id, to), id)

    def pause(self, by: Identity, id: str) -> None:
        self.killed_or_done(lambda: self.harness.service.pause(by, id), id)

    def resume(self, by: Identity, id: str) -> None:
        self.killed_or_done(lambda: self.harness.service.resume(by, id), id)

    def delete(self, by: Identity, id: str) -> None:
        self.killed_or_done(lambda: self.harness.service.delete(by, id), id)

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
        known = self.known[id]
        record = self.harness.store.control.filter(id)
        accepted = record and self.harness.store.control.version(id, record.accepted_version or 0)
        text = filter_document(id, value, enabled=on)
        same = known.git is None or (accepted and dict(accepted.document) == known.git[0])
        known.git = (text, {author} | (set() if same or known.git is None else known.git[1]))

    def mend_store(self, by: Identity, id: str) -> None:
        """What stands in git is submitted, with everybody who wrote it there as its author."""
        known = self.known[id]
        if known.git is not None:
            text, wrote = known.git
            self.did["mended"] += 1
            self.submit(by, id, text, wrote)

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
        known = self.known[id]
        wrote = known.writers | known.wrote.get(known.revision, set())
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
        if self.tried(self.harness.reconciler.step):
            for known in self.known.values():
                known.leaving = set()
        self.look()

    def look(self) -> None:
        """What is live by now, and what is gone."""
        for id, known in self.known.items():
            record = self.harness.store.control.filter(id)
            if record is None:
                continue
            if record.status == "deleted":
                known.forget()
            if record.runs:
                known.ran_at = self.now
            if record.deployed_version is not None:
                known.go_live(record.deployed_version)

    def route(self, refuse: str) -> None:
        wanted = self.harness.store.routing.wanted()
        bad = {row.revision: "no" for row in wanted if f'"value":"{refuse}"' in row.content}
        self.harness.run_router_batch(bad)

    def be_killed_at(self, point: Point) -> None:
        self.killer.at_point = point

    def be_killed(self) -> None:
        self.next_process()

    # The judge

    def killed_or_done(self, what: Callable[[], Any], id: str) -> None:
        """The store says what was done, whether the caller got an answer or was killed over it."""
        before = len(self.harness.store.control.audit_of(id))
        self.tried(what)
        for entry in self.harness.store.control.audit_of(id)[before:]:
            self.judge(id, entry.actor, entry.action, entry.detail)

    def judge(self, id: str, actor: str, action: str, detail: Any) -> None:
        self.did[action] += 1
        known = self.known[id]
        number = detail.get("version") or 0
        revision = known.revisions.get(number, "")
        if action == "approve":
            assert actor not in known.wrote[revision], f"{actor} approved what they wrote"
            known.approved[revision] = self.now
            if detail.get("resume"):
                known.vetted |= revision == known.revision
            else:
                assert actor not in known.writers, f"{actor} approved what they wrote on"
                assert revision == known.revision
                known.vetted = True
        elif action in ("deploy", "resume"):
            given = known.approved.get(revision)
            assert given is not None, f"{action} of {revision[:6]} without a second person"
            assert self.now - given < timedelta(hours=HOURS), f"{action} after the approval's time"
            known.may_run.add(revision)
            known.paused = False
        elif action == "reject":
            known.approved, known.vetted = {}, False
        elif action == "pause":
            known.approved, known.paused = {}, True
        elif action == "ask_deletion":
            known.asked_by = actor
        elif action == "reject_deletion":
            known.asked_by = None
        elif action == "approve_deletion":
            assert known.asked_by not in (None, actor), f"{actor} alone deleted it"
            known.asked_by = None
            known.turn_off()
        elif action == "delete":
            lately = known.ran_at and self.now - known.ran_at < timedelta(hours=HOURS)
            assert not lately, f"{actor} alone deleted what ran"
            known.forget()
        elif action == "rollback":
            self.judge_rollback(id, number, detail["to"])

    def judge_rollback(self, id: str, number: int, to: int) -> None:
        known = self.known[id]
        record = self.harness.store.control.filter(id)
        assert record is not None
        assert known.may_run, "a rollback turned a filter on"
        assert to in known.lived, "a rollback to something that was never live"
        assert to not in known.left, "a rollback to what was rolled back from"
        if self.unnamed:
            expected = known.way_back(record.deployed_version, self.failed)
            assert to == expected, f"a rollback to version {to}, not to {expected}"
        known.leave(record.deployed_version, to)
        known.revisions[number] = known.revisions[to]
        known.authors[number] = set(known.authors[to])
        revision = known.revisions[to]
        known.may_run.add(revision)
        known.revision, known.approved = revision, {}
        known.writers, known.vetted = set(known.authors[to]), False

    @invariant()
    def nothing_runs_without_a_second_person(self) -> None:
        if not hasattr(self, "harness"):
            return
        for row in self.harness.store.routing.wanted():
            self.did["looked at something that runs"] += 1
            known = self.known[row.filter]
            assert row.revision in known.may_run | known.leaving

    @invariant()
    def what_is_paused_stays_paused(self) -> None:
        if not hasattr(self, "harness"):
            return
        for id, known in self.known.items():
            record = self.harness.store.control.filter(id)
            if record and record.runs and known.paused and record.status != "deploying":
                assert record.paused or self._deployed_since(id)

    def _deployed_since(self, id: str) -> bool:
        newest = self.harness.store.control.operations(id)
        return any(one.kind is OperationKind.DEPLOY for one in newest[:1])
