"""Random walks through the control plane, with a judge of its own who looks at every step.

The judge knows only what succeeded: who wrote which revision, who approved it, what was turned off.
He decides from that alone whether what the engine was told may run.
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
from tests.unit.control.control_room import Room, document

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
ids = st.sampled_from(IDS)
values = st.sampled_from(("A", "B", "C"))
# How often what is tried; the way it should go comes often, since chance would hardly find it.
WEIGHTS = {
    "do_as_intended": 6,
    "turn_off_on_and_back": 2,
    "write": 2,
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
    "write": {"by": anyone, "id": ids, "value": values, "on": st.sampled_from((True, True, False))},
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
class Known:
    """What the judge knows of one filter."""

    writers: set[str] = field(default_factory=set)
    vetted: bool = False
    revision: str = ""
    approved: dict[str, datetime] = field(default_factory=dict)
    may_run: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    lived: set[str] = field(default_factory=set)
    paused: bool = False

    def turn_off(self) -> None:
        """What ran may stand there until the reconciler has been by, not longer."""
        self.leaving |= self.may_run
        self.may_run = set()


class Walk(RuleBasedStateMachine):
    """Anybody tries anything at any time; only what succeeded counts."""

    made: Path
    did: ClassVar[Counter[str]] = Counter()

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.killer = Killer()
        self.room = Room.copy(
            type(self).made, Path(self.folder.name) / "ops.db", faults=self.killer
        )
        self.known = {id: Known() for id in IDS}

    def teardown(self) -> None:
        if not hasattr(self, "room"):
            return
        self.killer.at_point = None
        self.next_process()
        self.room.settle(steps=8)
        control = self.room.store.control
        entries, head = control.audit_chain()
        running = control.operations(states=(OperationState.RUNNING,))
        stuck = [one.id for one in control.filters() if one.status == "deploying"]
        self.room.store.close()
        self.folder.cleanup()
        assert breaks(entries, head) == ()
        assert (running, stuck) == ((), []), "something never ends"

    @property
    def now(self) -> datetime:
        return self.room.clock()

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
        self.room = self.room.again(self.killer)

    # One rule, so that the weights below hold: every walk does a bit of everything.
    @rule(data=st.data(), action=st.sampled_from([n for n, w in WEIGHTS.items() for _ in range(w)]))
    def act(self, data: st.DataObject, action: str) -> None:
        drawn = {name: data.draw(what, label=name) for name, what in ARGUMENTS[action].items()}
        getattr(self, action)(**drawn)

    # What people do

    def write(self, by: Identity, id: str, value: str, on: bool) -> None:
        service, known = self.room.service, self.known[id]
        text = document(id, value, enabled=on)
        before = self.room.store.control.filter(id)
        if before is None or before.status == "deleted":
            record = self.tried(lambda: service.create(by, text))
        else:
            record = self.tried(lambda: service.update(by, id, text))
        if record is None or (before and record.version == before.version):
            return
        # Who wrote before the last approval is no author of what is written after it.
        if known.vetted or before is None or before.status == "deleted":
            known.writers = set()
        known.writers.add(by.name)
        known.vetted = False
        known.revision, known.approved = record.revision, {}
        if not on:
            known.turn_off()

    def approve(self, by: Identity, id: str, stale: bool) -> None:
        record = self.room.store.control.filter(id)
        if record is None:
            return
        revision = (record.deployed_revision or "") if stale else record.revision
        self.killed_or_done(lambda: self.room.service.approve(by, id, revision), id)

    def reject(self, by: Identity, id: str) -> None:
        self.killed_or_done(lambda: self.room.service.reject(by, id, "no"), id)

    def deploy(self, by: Identity, id: str) -> None:
        self.killed_or_done(lambda: self.room.service.deploy(by, id), id)

    def rollback(self, by: Identity, id: str, to: int | None) -> None:
        self.killed_or_done(lambda: self.room.service.rollback(by, id, to), id)

    def pause(self, by: Identity, id: str) -> None:
        self.killed_or_done(lambda: self.room.service.pause(by, id), id)

    def resume(self, by: Identity, id: str) -> None:
        self.killed_or_done(lambda: self.room.service.resume(by, id), id)

    def delete(self, by: Identity, id: str) -> None:
        self.tried(lambda: self.room.service.delete(by, id))

    def do_as_intended(self, id: str, value: str, author: str, last: int) -> None:
        """The way it should go, or its beginning: walks would hardly ever get there by chance."""
        by = Identity(author, frozenset({"admin"}))
        other = next(
            name for name in NAMES if name not in {author, *self.known[id].writers} or name == "dan"
        )
        steps = (
            lambda: self.write(by, id, value, on=True),
            lambda: self.approve(Identity(other, frozenset({"admin"})), id, stale=False),
            lambda: self.deploy(by, id),
            lambda: self.reconcile(),
            lambda: (self.route(""), self.reconcile()),
        )
        for step in steps[:last]:
            step()

    def turn_off_on_and_back(self, by: Identity, id: str, value: str) -> None:
        """A way around approval, if rollback woke what was turned off."""
        self.write(by, id, value, on=False)
        self.write(by, id, value, on=True)
        self.rollback(by, id, None)

    # What happens by itself

    def time_passes(self, seconds: int) -> None:
        self.room.clock.pass_(seconds)

    def days_pass(self) -> None:
        self.room.clock.pass_(HOURS * 3600)

    def reconcile(self) -> None:
        if self.tried(self.room.reconciler.step):
            for known in self.known.values():
                known.leaving = set()

    def route(self, refuse: str) -> None:
        wanted = self.room.store.routing.wanted()
        bad = {row.revision: "no" for row in wanted if f'"value":"{refuse}"' in row.content}
        self.room.router(bad)

    def be_killed_at(self, point: Point) -> None:
        self.killer.at_point = point

    def be_killed(self) -> None:
        self.next_process()

    # The judge

    def killed_or_done(self, what: Callable[[], Any], id: str) -> None:
        """The store says what was done, whether the caller got an answer or was killed over it."""
        before = len(self.room.store.control.audit_of(id))
        self.tried(what)
        for entry in self.room.store.control.audit_of(id)[before:]:
            self.judge(id, entry.actor, entry.action, entry.detail)

    def judge(self, id: str, actor: str, action: str, detail: Any) -> None:
        self.did[action] += 1
        known = self.known[id]
        version = self.room.store.control.version(id, detail.get("version") or 0)
        revision = version.revision if version else ""
        if action == "approve" and not detail.get("resume"):
            assert actor not in known.writers, f"{actor} approved what they wrote"
            assert revision == known.revision
            known.approved[revision], known.vetted = self.now, True
        elif action == "approve":
            assert version is not None
            assert actor not in version.authors
            known.approved[revision] = self.now
            known.vetted |= revision == known.revision
        elif action in ("deploy", "resume"):
            given = known.approved.get(revision)
            assert given is not None, f"{action} of {revision[:6]} without a second person"
            assert self.now - given < timedelta(hours=HOURS), f"{action} after the approval's time"
            known.may_run.add(revision)
            known.lived.add(revision)
            known.paused = False
        elif action == "reject":
            known.approved, known.vetted = {}, False
        elif action == "pause":
            known.approved, known.paused = {}, True
        elif action == "approve_deletion":
            known.turn_off()
            known.lived = set()
        elif action == "rollback":
            assert known.may_run, "a rollback turned a filter on"
            assert revision in known.lived, "a rollback to something that never was approved"
            known.may_run.add(revision)
            known.revision, known.approved = revision, {}
            assert version is not None
            known.writers, known.vetted = set(version.authors), False

    @invariant()
    def nothing_runs_without_a_second_person(self) -> None:
        if not hasattr(self, "room"):
            return
        for row in self.room.store.routing.wanted():
            self.did["looked at something that runs"] += 1
            known = self.known[row.filter]
            assert row.revision in known.may_run | known.leaving

    @invariant()
    def what_is_paused_stays_paused(self) -> None:
        if not hasattr(self, "room"):
            return
        for id, known in self.known.items():
            record = self.room.store.control.filter(id)
            if record and record.runs and known.paused and record.status != "deploying":
                assert record.paused or self._deployed_since(id)

    def _deployed_since(self, id: str) -> bool:
        newest = self.room.store.control.operations(id)
        return any(one.kind is OperationKind.DEPLOY for one in newest[:1])
