"""Brings targets and git to the state in the ops store, and records what they answer.

Every step reads the stored state alone, so a process that was killed at any point is followed by the next one.
One reconciler acts at a time, under a lease. Targets over the network get a thread each, so that the engine's
filters do not wait for them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

from headgate.core.ledger.model import Lease
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import HeadgateError, UnavailableError
from headgate.filters.control import approvals
from headgate.filters.control import commands as outcomes
from headgate.filters.control.operations import REMOVALS, ControlFaults, Point
from headgate.filters.git.store import GitStore
from headgate.filters.git.sync import Commits
from headgate.filters.store.control import ControlStore
from headgate.filters.store.model import (
    FilterRecord,
    Operation,
    OperationState,
    Status,
)
from headgate.filters.targets.deployment import (
    ENGINE,
    Deployment,
    DeploymentTarget,
    Held,
    Observed,
    State,
    deployment_of,
    leftovers,
    removals_of,
)

_LOG = logging.getLogger("headgate")
LEASE = "control-plane"
LEASE_SECONDS = 3.0
AGREE_EVERY = timedelta(seconds=2)
MOST_ORDERS = 5000


class Reconciler:
    """Call `step` again and again; it never waits long for a target."""

    def __init__(
        self,
        store: OpsStore,
        git: GitStore | None,
        targets: Mapping[str, DeploymentTarget],
        faults: ControlFaults | None = None,
        patience: float = 1.0,
    ) -> None:
        """`patience`: so many seconds a step waits for targets over the network."""
        self._patience = patience
        self._pool = ThreadPoolExecutor(max(1, len(targets)), "reconciler")
        self._beside: dict[str, Future[None]] = {}
        self._store, self._control = store, store.part(ControlStore)
        self._targets = targets
        self._faults = faults or ControlFaults.from_environment()
        self._commits = Commits(git, self._control, self._faults) if git else None
        self._holder = f"{os.getpid()}-{uuid4().hex[:8]}"
        self._lease: Lease | None = None
        self._agreed_at: dict[str, datetime] = {}
        self._orders: dict[str, Deployment] = {}
        self._told_at: dict[str, datetime] = {}

    def step(self) -> bool:
        """Bring everything one step nearer to what is wanted; False while another one does."""
        self._lease = self._store.acquire(LEASE, self._holder, LEASE_SECONDS)
        if self._lease is None:
            return False
        running = self._control.operations(states=(OperationState.RUNNING,))
        self._told_at = {
            one.id: self._told_at[one.id] for one in running if one.id in self._told_at
        }
        for name, target in self._targets.items():
            mine = [one for one in reversed(running) if one.target == name]
            if name == ENGINE:
                self._tend(target, mine)
            else:
                self._tend_beside(target, mine)
        self._refuse_unknown(running)
        if self._commits is not None:
            self._commits.step()
        self._expire(self._control.filters())
        return True

    def git_trouble(self) -> str:
        """Why accepted versions are not committed; empty while git works."""
        return self._commits.trouble if self._commits else ""

    def close(self) -> None:
        """Let the next reconciler begin at once."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._lease is not None:
            self._store.release(self._lease)

    def _tend(self, target: DeploymentTarget, mine: Sequence[Operation]) -> None:
        for operation in mine:
            self._carry(operation)
        now, last = self._control.now(), self._agreed_at.get(target.name)
        if last is None or not timedelta() <= now - last < AGREE_EVERY:
            self._agree(target.name, target)
            self._agreed_at[target.name] = now

    def _tend_beside(self, target: DeploymentTarget, mine: Sequence[Operation]) -> None:
        """A target over the network takes its time; our engine's filters do not wait for it."""
        busy = self._beside.get(target.name)
        if busy is None or busy.done():
            busy = self._beside[target.name] = self._pool.submit(self._tend, target, mine)
        wait([busy], self._patience)

    def _refuse_unknown(self, running: Sequence[Operation]) -> None:
        for operation in running:
            if operation.target not in self._targets:
                self._carry(operation)

    # Operations

    def _carry(self, operation: Operation) -> None:
        record = self._control.filter(operation.filter_id)
        if record is None:
            return
        try:
            seen, ids = self._told(record, operation)
        except HeadgateError as error:
            self._note_failure(operation, error.one_line, late_only=error.retryable)
            return
        except Exception as error:  # a target's fault must not keep the others waiting
            words = f"{type(error).__name__}: {error}"
            self._note_failure(operation, words, late_only=True)
            return
        self._judge(record, operation, seen, ids)

    def _told(self, record: FilterRecord, operation: Operation) -> tuple[Observed, tuple[str, ...]]:
        """Tell the target what it does not know yet, and ask how it stands."""
        target = self._target(operation.target)
        if operation.kind in REMOVALS:
            named = removals_of(self._control, operation)
            for one in named:
                target.remove(one)
            return _last_there([target.observe(one) for one in named]), ()
        if operation.automatic:
            self._remove_leftovers(record, operation)
        wanted = self._deployment(record)
        seen, ids = tell(target, wanted)
        self._told_at.setdefault(operation.id, self._control.now())
        self._faults.at(Point.AFTER_TOLD)
        return seen, ids

    def _judge(
        self, record: FilterRecord, operation: Operation, seen: Observed, ids: tuple[str, ...]
    ) -> None:
        if reached(record, seen):
            self._faults.at(Point.BEFORE_OUTCOME)
            self._remove_leftovers(record, operation)
            with self._control.change() as change:
                outcomes.succeeded(change, operation, ids or seen.statement_ids)
            self._faults.at(Point.AFTER_OUTCOME)
        elif seen.state is State.FAILED and seen.deployment == record.wanted_deployment:
            self._note_failure(operation, seen.reason or "the target says that it failed")
        else:
            self._note_failure(operation, self._late_words(operation), late_only=True)

    def _remove_leftovers(self, record: FilterRecord, operation: Operation) -> None:
        """A target that knows filters by their topics keeps the old one's, unless it is told."""
        for left in leftovers(self._control, record, operation):
            self._target(operation.target).remove(left)

    def _note_failure(self, operation: Operation, why: str, *, late_only: bool = False) -> None:
        """Late ones only: it may still come, as long as the deadline has not passed."""
        if late_only and not self._is_late(operation):
            return
        with self._control.change() as change:
            if operation.kind in REMOVALS:
                outcomes.delayed(change, operation, why)
            else:
                outcomes.failed(change, operation, why)

    def _late_words(self, operation: Operation) -> str:
        seconds = (operation.deadline - operation.at).total_seconds()
        words = f"{operation.target} did not get there within {seconds:g} s"
        if operation.target != ENGINE:
            return words
        source = removals_of(self._control, operation)[0].source
        return f"{words}: is its router running? (headgate job start router-{source})"

    def _is_late(self, operation: Operation) -> bool:
        """By its deadline, and the target had as much time since it was told."""
        now, time = self._control.now(), operation.deadline - operation.at
        return now >= max(operation.deadline, self._told_at.get(operation.id, operation.at) + time)

    def _deployment(self, record: FilterRecord) -> Deployment:
        """What this deployment says never changes, but for the pause: it is made once."""
        known = self._orders.get(record.wanted_deployment or "")
        wanted = known or deployment_of(self._control, record)
        if wanted is None:
            raise UnavailableError(f"nothing of {record.id} is wanted any more")
        if len(self._orders) >= MOST_ORDERS:
            self._orders.clear()
        self._orders[wanted.deployment] = wanted
        return replace(wanted, paused=record.paused)

    def _target(self, name: str) -> DeploymentTarget:
        try:
            return self._targets[name]
        except KeyError:
            raise UnavailableError(
                f"there is no target {name} here",
                why=f"this control plane has {', '.join(sorted(self._targets)) or 'none'}",
            ) from None

    # What nobody asked for just now

    def _expire(self, records: Sequence[FilterRecord]) -> None:
        for record in records:
            if record.status is Status.APPROVED and not self._is_in_time(record):
                self._expire_one(record)

    def _is_in_time(self, record: FilterRecord) -> bool:
        now, given = self._control.now(), self._control.approvals(record.id)
        return any(one.version == record.version and one.holds(now) for one in given)

    def _expire_one(self, record: FilterRecord) -> None:
        with self._control.change() as change:
            now = change.filter(record.id)
            if now is None or now.status is not Status.APPROVED:
                return
            version = change.version(now.id, now.version)
            if version is not None and not approvals.is_approved(change, version):
                approvals.expire(change, now)

    def _agree(self, name: str, target: DeploymentTarget) -> None:
        """Nothing runs at a target that the store does not want, and everything that it wants."""
        try:
            held = target.held()
        except HeadgateError as error:
            _LOG.info("target %s: %s", name, error.one_line)
            return
        records = {record.id: record for record in self._control.filters()}
        mine = {id for id, record in records.items() if record.target == name and record.runs}
        for id in mine if held is None else mine | held.keys():
            try:
                self._put_right(target, id, records[id] if id in mine else None, held)
            except HeadgateError as error:
                _LOG.info("target %s, filter %s: %s", name, id, error.one_line)

    def _put_right(
        self,
        target: DeploymentTarget,
        id: str,
        record: FilterRecord | None,
        held: Mapping[str, Held] | None,
    ) -> None:
        if record is None:
            target.remove(Deployment(id, "", "", "", "", ""))
        elif held is None:
            if target.observe(self._deployment(record)).state is State.ABSENT:
                target.deploy(self._deployment(record))
        elif held.get(id) != Held(record.wanted_deployment or "", record.paused):
            target.deploy(self._deployment(record))


def tell(target: DeploymentTarget, wanted: Deployment) -> tuple[Observed, tuple[str, ...]]:
    """Make the target know this order and ask how it stands; told once, it is not told again."""
    seen = target.observe(wanted)
    troubled = seen.state is State.FAILED
    same = troubled or (seen.state is State.PAUSED) == wanted.paused
    if seen.deployment == wanted.deployment and same:
        return seen, seen.statement_ids
    ids = target.deploy(wanted)
    return target.observe(wanted), ids


def _last_there(seen: Sequence[Observed]) -> Observed:
    """The first that is still there; when none is, that."""
    return next((one for one in seen if one.state is not State.ABSENT), seen[0])


def reached(record: FilterRecord, seen: Observed) -> bool:
    if record.wanted_deployment is None:
        return seen.state is State.ABSENT
    goal = State.PAUSED if record.paused else State.RUNNING
    return seen.deployment == record.wanted_deployment and seen.state is goal
