"""Managed tables: stage a batch under its commit metadata, publish it once, find how far a job has come.

A snapshot is published by its id, and the table refuses a second one of the same job and start. How
far a job has come is its newest commit, or the ledger where such commits are expired; a table that is
behind its ledger has lost rows and is refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.lake.commits import (
    AlreadyPublishedError,
    Marker,
    fence_properties,
    lost_race,
    marker,
    moved,
    persistently,
    properties,
    wap_id,
)
from headgate.core.lake.spark import IcebergTable, Snapshot, sql
from headgate.core.ledger.model import Intent
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import OffsetRange, Range, is_rebuild
from headgate.errors import BatchRefusedError, OperationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


WAP = "spark.wap.id"
SUMMARY = "spark.sql.iceberg.snapshot-property."


@dataclass(frozen=True)
class Committed:
    """A commit of ours in a table's history."""

    marker: Marker
    snapshot: Snapshot


class ManagedTable:
    """One Iceberg table that only jobs write to."""

    def __init__(self, session: SparkSession, name: str) -> None:
        self.name = name
        self.session = session

    def exists(self) -> bool:
        return self.session.catalog.tableExists(self.name)

    def look(self) -> IcebergTable:
        return IcebergTable(self.session, self.name).refresh()

    def commits(self, job: str) -> Iterator[Committed]:
        """This job's commits, newest first."""
        table = self.look()
        for snapshot in table.history():
            found = own_marker(table, snapshot)
            if found and found.job == job:
                yield Committed(found, snapshot)

    def committed(self, job: str) -> Committed | None:
        """This job's newest commit."""
        return next(self.commits(job), None)

    def commit_of(self, intent: Intent) -> Committed | None:
        """The commit made for this intent; the look back ends where older commits begin."""
        for commit in self.commits(intent.job):
            if is_of(commit.marker, intent):
                return commit
            if is_older(commit.marker, intent):
                return None
        return None

    def appended(self, snapshot: Snapshot) -> DataFrame:
        """The rows that one append brought, whether it is published or only staged."""
        reader = self.session.read.format("iceberg")
        if snapshot.parent is None:
            return reader.option("versionAsOf", str(snapshot.id)).load(self.name)
        options = {"start-snapshot-id": snapshot.parent, "end-snapshot-id": snapshot.id}
        return reader.options(**{k: str(v) for k, v in options.items()}).load(self.name)

    def write_begun(self) -> Callable[[], bool]:
        """A look at the table's folder: true once a data file is there that was not before."""
        folder = Path(self.look().location.removeprefix("file:")) / "data"
        known = {file.name for file in folder.rglob("*.parquet")}
        return lambda: any(file.name not in known for file in folder.rglob("*.parquet"))

    def publish(self, staged: Snapshot) -> Snapshot:
        """Make a staged append current, after whatever was committed meanwhile.

        The table refuses it when its history has a commit of the same job and start.
        """
        catalog = self.name.partition(".")[0]
        # The full name: of a shorter one Spark asks first whether it begins with a catalog.
        call = f"CALL {catalog}.system.cherrypick_snapshot('{self.name}', {staged.id})"
        return self._commit(staged, lambda: sql(self.session, call).collect())

    def fast_forward(self, staged: Snapshot) -> Snapshot:
        """Make a staged snapshot current only if nothing was committed since it was staged."""
        return self._commit(staged, lambda: self._advance(staged))

    def _advance(self, staged: Snapshot) -> None:
        if not self.look().advance(staged):
            raise moved(self.name)

    def _commit(self, staged: Snapshot, attempt: Callable[[], object]) -> Snapshot:
        """The published snapshot. A commit may be in the table although its answer was lost."""
        try:
            persistently(attempt, lambda error: lost_race(error) and not self.published(staged))
        except Exception as error:
            found = self.published(staged)
            if found is not None:
                return found
            self._explain(error)
            raise
        found = self.published(staged)
        if found is None:
            raise OperationError(f"{self.name} lost the snapshot that was just published")
        return found

    def published(self, staged: Snapshot) -> Snapshot | None:
        """The snapshot in the table's history that the staged one has become."""
        for snapshot in self.look().history():
            if snapshot.id == staged.id or snapshot.source == staged.id:
                return snapshot
            if snapshot.id == staged.parent:
                return None
        return None

    def _explain(self, error: Exception) -> None:
        words = str(error)
        if "DuplicateWAPCommit" in words or "already been published" in words:
            raise AlreadyPublishedError(
                f"{self.name} already holds this batch", why="another run published it first"
            ) from error
        if "fast-forward" in words or "Cannot cherry-pick" in words:
            raise moved(self.name) from error


def is_of(found: Marker, intent: Intent) -> bool:
    """Whether the commit was made for this intent. A table may be rebuilt from one range twice."""
    same_time = found.batch_time == intent.batch_time
    return found.range == intent.range and (same_time or not is_rebuild(intent.range))


def is_older(found: Marker, intent: Intent) -> bool:
    if is_rebuild(intent.range):
        return found.batch_time < intent.batch_time
    return precedes(found.range, intent.range)


def precedes(older: Range, newer: Range) -> bool:
    """Whether everything of `older` comes before `newer`."""
    if older.source_id != newer.source_id:
        return True
    if not isinstance(newer, OffsetRange):
        return older.end == newer.start
    return all(end <= newer.start.get(key, 0) for key, end in older.end.items())


def own_marker(table: IcebergTable, snapshot: Snapshot) -> Marker | None:
    """The snapshot's marker, or that of the staged snapshot it was published from."""
    found = marker(snapshot.summary)
    if found is None and snapshot.source is not None:
        origin = table.snapshot(snapshot.source)
        found = marker(origin.summary) if origin else None
    return found


class Staging:
    """One attempt to write a batch: every commit made inside is staged under the batch's marker."""

    def __init__(
        self,
        session: SparkSession,
        intent: Intent,
        outcomes: Mapping[str, int] | None = None,
        counters: Mapping[str, int] | None = None,
        *,
        as_fence: bool = False,
    ) -> None:
        self._session = session
        self._attempt = uuid.uuid4().hex
        told = properties(intent, self._attempt, outcomes, counters)
        told = fence_properties(told) if as_fence else told
        summary = {SUMMARY + name: value for name, value in told.items()}
        self._options = {WAP: wap_id(intent), **summary}

    @contextmanager
    def open(self) -> Generator[None]:
        for name, value in self._options.items():
            self._session.conf.set(name, value)
        try:
            yield
        finally:
            for name in self._options:
                self._session.conf.unset(name)

    def staged(self, table: ManagedTable) -> Snapshot:
        """The snapshot that this attempt staged in the table."""
        for snapshot in table.look().snapshots():
            found = marker(snapshot.summary)
            if found and found.attempt == self._attempt:
                return snapshot
        raise OperationError(f"nothing was staged in {table.name}")


def fence(table: ManagedTable, intent: Intent) -> None:
    """An empty commit in the intent's place: a run that still means to publish for it is refused."""
    staging = Staging(table.session, intent, as_fence=True)
    with staging.open():
        sql(table.session, nothing(table.name))
    with suppress(AlreadyPublishedError):
        table.publish(staging.staged(table))


def nothing(table: str) -> str:
    """A statement whose commit changes no row and carries its marker."""
    return f"INSERT INTO {table} SELECT * FROM {table} WHERE FALSE"


@dataclass(frozen=True)
class Reached:
    """Where the next batch must start, in the source with this id."""

    source_id: str
    end: Mapping[str, int]


def topic_reached(table: ManagedTable, store: OpsStore, job: str) -> Reached | None:
    """How far the topic was read into the table; None before the first batch.

    The ledger must not be ahead: a table that was dropped or rolled back has lost rows.
    """
    settled = store.settled_range(job)
    commit = table.committed(job) if table.exists() else None
    if commit is None:
        if settled is None:
            return None
        if not table.exists() or table.look().current() is None:
            raise _behind(table, job, {}, settled)
        return Reached(settled.source_id, settled.end)
    end = commit.marker.range.end
    if (
        settled is not None
        and settled.source_id == commit.marker.range.source_id
        and any(end.get(key, 0) < offset for key, offset in settled.end.items())
    ):
        raise _behind(table, job, end, settled)
    return Reached(commit.marker.range.source_id, end)


def _behind(
    table: ManagedTable, job: str, end: Mapping[str, int], settled: Range
) -> BatchRefusedError:
    return BatchRefusedError(
        f"{table.name} has lost rows that {job} had written",
        why=f"the ledger says up to {dict(settled.end)}, the table {dict(end) or 'is empty'}",
        fix="restore the table, or begin anew with an empty HEADGATE_HOME",
    )
