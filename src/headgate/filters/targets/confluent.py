"""Confluent Cloud's Flink as a target: two statements a filter, created, observed, replaced and undone by name.

A statement that no version of the filter was compiled to is somebody else's and is left alone.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.errors import (
    ConflictError,
    DeclarationError,
    HeadgateError,
    OperationError,
    UnavailableError,
    UsageError,
)
from headgate.filters.compile.flink import flink_statements
from headgate.filters.loader import parse_filter
from headgate.filters.store.control import ControlStore
from headgate.filters.targets.confluent_api import Phase, Statement, Statements
from headgate.filters.targets.deployment import Deployment, Observed, State


class Ownership(Protocol):
    """What the ops store knows about names that filters share."""

    def texts(self, filter_id: str) -> Collection[str]:
        """Every statement that some version of the filter was compiled to."""
        ...

    def others(self, filter_id: str, topic: str) -> Collection[str]:
        """Other filters that run at this target and write to this topic."""
        ...


class StoredOwnership:
    """By the versions and records of the ops store."""

    def __init__(self, control: ControlStore, target: str) -> None:
        self._control, self._target = control, target

    def texts(self, filter_id: str) -> frozenset[str]:
        found: set[str] = set()
        for version in self._control.versions(filter_id):
            try:
                found |= set(flink_statements(parse_filter(dict(version.document))))
            except DeclarationError:  # written before the language became stricter
                continue
        return frozenset(found)

    def others(self, filter_id: str, topic: str) -> frozenset[str]:
        return frozenset(
            record.id
            for record in self._control.filters()
            if record.id != filter_id and record.target == self._target and record.runs
            if topic in self._topics(record.id, record.wanted_version, record.deployed_version)
        )

    def _topics(self, filter_id: str, *numbers: int | None) -> frozenset[str]:
        versions = (self._control.version(filter_id, n) for n in numbers if n is not None)
        return frozenset(str(one.document["outputTopic"]) for one in versions if one)


LONGEST_NAME = 100
DEADLINE_SECONDS, POLL_SECONDS = 15.0, 0.5
STATES = {
    Phase.RUNNING: State.RUNNING,
    Phase.COMPLETED: State.FAILED,  # an insert into a topic never ends by itself
    Phase.STOPPED: State.PAUSED,
    Phase.STOPPING: State.PENDING,
    Phase.DEGRADED: State.RUNNING,
    Phase.FAILING: State.FAILED,
    Phase.FAILED: State.FAILED,
    Phase.DELETING: State.PENDING,
    Phase.PENDING: State.PENDING,
}
ALIVE = frozenset({Phase.PENDING, Phase.RUNNING, Phase.DEGRADED})


def statement_names(topic: str) -> tuple[str, str]:
    """`<topic>-sink` and `<topic>-insert`, made valid: lower case, no edge hyphens, not too long."""
    stem = re.sub(r"[^a-z0-9-]+", "-", topic.lower()).strip("-")
    room = LONGEST_NAME - len("-insert")
    if stem != topic or len(stem) > room:
        # Two topics must not meet in one name.
        mark = hashlib.sha256(topic.encode()).hexdigest()[:8]
        stem = f"{stem[: room - 9].rstrip('-')}-{mark}".lstrip("-")
    return f"{stem}-sink", f"{stem}-insert"


@dataclass
class ConfluentTarget:
    """Creates the sink's table, then the insert. What it had begun is undone when it cannot go on.

    A deployment that replaces another keeps the table; the older insert is put back when the new
    one is refused. Removing a filter deletes both statements; the topic and its data stay.

    Names are made of the topic, so a topic has one filter here; a statement that no version of the
    filter was compiled to is somebody else's, and is left alone.
    """

    statements: Statements
    owned: Ownership
    deadline: float = DEADLINE_SECONDS
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    name = "confluent"

    def close(self) -> None:
        self.statements.close()

    def deploy(self, wanted: Deployment) -> tuple[str, ...]:
        if len(wanted.statements) != 2:
            raise UsageError(f"{wanted.filter} has no Flink statements: a sink and an insert")
        names, (sink_sql, insert_sql) = statement_names(wanted.topic), wanted.statements
        before = [self.statements.get(name) for name in names]
        self._refuse_foreign(wanted, before)
        try:
            self._sink(names[0], sink_sql, before[0])
            self._insert(names[1], insert_sql, before[1])
        except HeadgateError:
            self._undo(names, before)
            raise
        standing = self.statements.get(names[1])
        if standing is not None and standing.stopped != wanted.paused:
            self.statements.stop(names[1], stopped=wanted.paused)
        return names

    def observe(self, wanted: Deployment) -> Observed:
        names = statement_names(wanted.topic)
        insert = self.statements.get(names[1])
        if insert is None:
            return Observed(wanted.filter, State.ABSENT, reason="its insert is not there")
        other = bool(wanted.statements) and insert.sql != wanted.statements[-1]
        return Observed(
            filter=wanted.filter,
            state=State.PENDING if other else STATES[insert.phase],
            revision="" if other else wanted.revision,
            deployment="" if other else wanted.deployment,
            reason=insert.detail,
            statement_ids=names,
        )

    def remove(self, wanted: Deployment) -> None:
        """The insert first: nothing may write while its table's statement goes."""
        if self.owned.others(wanted.filter, wanted.topic):
            return
        ours = self.owned.texts(wanted.filter)
        for name in reversed(statement_names(wanted.topic)):
            standing = self.statements.get(name)
            if standing is not None and standing.sql in ours:
                self._gone(name)

    def held(self) -> None:
        """A statement cannot carry which deployment it is."""

    def _refuse_foreign(self, wanted: Deployment, standing: Sequence[Statement | None]) -> None:
        if others := self.owned.others(wanted.filter, wanted.topic):
            raise OperationError(
                f"{', '.join(sorted(others))} writes to {wanted.topic} already",
                why="its statements have the names that these would have",
                fix="give this filter a topic of its own, or join the two",
            )
        ours = {*self.owned.texts(wanted.filter), *wanted.statements}
        for statement in standing:
            if statement is not None and statement.sql not in ours:
                raise OperationError(
                    f"a statement {statement.name} that is not ours stands there",
                    why="no version of this filter was compiled to its text",
                    fix="delete it in Confluent Cloud if nobody needs it, then deploy again",
                )

    def _sink(self, name: str, sql: str, standing: Statement | None) -> None:
        """The table is there: by this statement, or since earlier ones, whose record Confluent drops."""
        if standing is not None and standing.phase is Phase.COMPLETED and standing.sql == sql:
            return
        if standing is not None:
            self._gone(name)
        self._create(name, sql)
        made = self._settled(name, frozenset({Phase.COMPLETED, Phase.FAILED}))
        if made.phase is Phase.FAILED and "already exist" not in made.detail.lower():
            raise _failed(made)

    def _insert(self, name: str, sql: str, standing: Statement | None) -> None:
        """The same text that runs, or is on its way, stays as it is."""
        if standing is not None:
            if standing.sql == sql and (standing.phase in ALIVE or standing.stopped):
                return
            self._gone(name)
        self._create(name, sql)
        taken = self.statements.get(name)
        if taken is not None and taken.phase is Phase.FAILED:
            raise _failed(taken)

    def _create(self, name: str, sql: str) -> None:
        if self.statements.create(name, sql) is None:
            raise ConflictError(
                f"another statement has the name {name}",
                why="somebody created it in the meantime",
                fix="look at it in Confluent Cloud, then deploy again",
            )

    def _undo(self, names: tuple[str, str], before: list[Statement | None]) -> None:
        """As it was before this deployment; what cannot be undone now does not hide the first error."""
        for name, earlier in reversed(list(zip(names, before, strict=True))):
            try:
                self._put_back(name, earlier)
            except HeadgateError:
                continue

    def _put_back(self, name: str, earlier: Statement | None) -> None:
        now = self.statements.get(name)
        if earlier is None:
            if now is not None:
                self._gone(name)
        elif now is None or now.sql != earlier.sql:
            if now is not None:
                self._gone(name)
            self._create(name, earlier.sql)
            if earlier.stopped:
                self.statements.stop(name, stopped=True)

    def _gone(self, name: str) -> None:
        """A deletion takes a while, and the name is free only then."""
        self.statements.delete(name)
        end = self.clock() + self.deadline
        while self.statements.get(name) is not None:
            self._wait(end, f"the statement {name} is not deleted after {self.deadline:g} s")

    def _settled(self, name: str, phases: frozenset[Phase]) -> Statement:
        end = self.clock() + self.deadline
        while True:
            found = self.statements.get(name)
            if found is None:
                raise OperationError(f"the statement {name} is gone: somebody deleted it")
            if found.phase in phases:
                return found
            self._wait(end, f"the statement {name} is {found.phase} after {self.deadline:g} s")

    def _wait(self, end: float, words: str) -> None:
        if self.clock() >= end:
            raise UnavailableError(words, fix="look at it in Confluent Cloud, then deploy again")
        self.sleep(POLL_SECONDS)


def _failed(statement: Statement) -> OperationError:
    return OperationError(
        f"the statement {statement.name} failed",
        why=statement.detail or "Confluent gives no reason",
        fix="see the SQL with `headgate filters compile --flink`",
    )
