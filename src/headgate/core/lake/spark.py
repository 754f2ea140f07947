"""Access to a Spark session: SQL statements, Iceberg's table object, files, permanent views.

Every statement goes through `sql`; `create` copes with two jobs that make the same table at once.
`IcebergTable` and `Files` wrap the few calls into the JVM and need no Spark job. `Views` keeps permanent
views in `spark_catalog.default`: they live in the driver's memory, so they are made at engine start
and with every deployment; a view that cannot be made never keeps an engine from running.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


# PySpark's way to the JVM is private to it; py4j's objects have no types, and end in this module.


def java_class(session: SparkSession, name: str) -> Any:
    """A class of the JVM by its full name.

    Written `jvm.org.apache…`, py4j looks in every jar for a class `org`, then `org.apache`, and so on.
    """
    return getattr(session._jvm, name)


@dataclass(frozen=True)
class Snapshot:
    """One snapshot of an Iceberg table, as its metadata tells it."""

    id: int
    parent: int | None
    timestamp_ms: int
    operation: str
    summary: dict[str, str]

    @property
    def at(self) -> datetime:
        """When it was committed."""
        return datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)

    @property
    def added(self) -> int:
        return int(self.summary.get("added-records", "0"))

    @property
    def deleted(self) -> int:
        return int(self.summary.get("deleted-records", "0"))

    @property
    def total(self) -> int:
        return int(self.summary.get("total-records", "0"))

    @property
    def source(self) -> int | None:
        """The staged snapshot that this one was published from, where it is another one."""
        found = self.summary.get("source-snapshot-id")
        return int(found) if found is not None else None


class TableColumn(NamedTuple):
    """A column of an Iceberg table: its name, its type in Iceberg's words, its comment."""

    name: str
    kind: str
    comment: str


def session_id(session: SparkSession) -> str:
    """Which session it is: a stream clones one with its settings and views, not its variables."""
    java: Any = session._jsparkSession
    return str(java.sessionUUID())


def context_runs(session: SparkSession) -> bool:
    """Whether the JVM still runs this session's context; raises when the JVM does not answer."""
    context: Any = session.sparkContext._jsc
    return not context.sc().isStopped()


def observed(query: StreamingQuery, name: str) -> tuple[int, ...] | None:
    """The whole numbers that the query's last execution has observed under a name."""
    java: Any = query._jsq
    execution = java.streamingQuery().lastExecution()
    if execution is None:
        return None
    found = execution.observedMetrics().get(name)
    if found.isEmpty():
        return None
    row = found.get()
    return tuple(int(row.getLong(place)) for place in range(row.length()))


class IcebergTable:
    """A fresh look at one table's metadata; no Spark job is needed for it."""

    def __init__(self, session: SparkSession, name: str) -> None:
        self.name = name
        self._session = session
        self._java: Any = None

    def refresh(self) -> IcebergTable:
        # Spark finds a catalog by the settings of the thread's active session, which may be another's when
        # this is the first thing that a run does.
        sessions = java_class(self._session, "org.apache.spark.sql.classic.SparkSession")
        sessions.setActiveSession(self._session._jsparkSession)
        util = java_class(self._session, "org.apache.iceberg.spark.Spark3Util")
        self._java = util.loadIcebergTable(self._session._jsparkSession, self.name)
        return self

    @property
    def uuid(self) -> str:
        return str(self._table.uuid())

    @property
    def location(self) -> str:
        return str(self._table.location())

    def metadata(self) -> dict[str, Any]:
        """The whole of its metadata file, in one call into the JVM."""
        parser = java_class(self._session, "org.apache.iceberg.TableMetadataParser")
        return json.loads(str(parser.toJson(self._table.operations().current())))

    def columns(self) -> tuple[TableColumn, ...]:
        """The columns that a writer sees now."""
        return tuple(
            TableColumn(str(c.name()), str(c.type().toString()), str(c.doc() or ""))
            for c in self._table.schema().columns()
        )

    def names_by_id(self, snapshot_id: int | None = None) -> dict[int, str]:
        """The columns' names by their ids, as they are now or as a snapshot was written with."""
        schema = self._table.schema()
        if snapshot_id is not None:
            util = java_class(self._session, "org.apache.iceberg.util.SnapshotUtil")
            schema = util.schemaFor(self._table, snapshot_id)
        return {int(c.fieldId()): str(c.name()) for c in schema.columns()}

    def values_added(self, snapshot_id: int, column: str) -> int | None:
        """How many values the snapshot's own files have in a column; None when Iceberg kept no count."""
        field = self._table.schema().findField(column)
        snapshot = self._table.snapshot(snapshot_id)
        if field is None or snapshot is None:
            return None
        values = 0
        for file in snapshot.addedDataFiles(self._table.io()):
            counts, nulls = file.valueCounts(), file.nullValueCounts()
            total = counts.get(field.fieldId()) if counts is not None else None
            empty = nulls.get(field.fieldId()) if nulls is not None else None
            if total is None or empty is None:
                return None
            values += int(total) - int(empty)
        return values

    def manifests(self) -> int:
        """How many manifests the current snapshot has."""
        found = self._table.currentSnapshot()
        return int(found.allManifests(self._table.io()).size()) if found is not None else 0

    def current(self) -> Snapshot | None:
        found = self._table.currentSnapshot()
        return self._told(found) if found is not None else None

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        found = self._table.snapshot(snapshot_id)
        return self._told(found) if found is not None else None

    def snapshots(self) -> Iterator[Snapshot]:
        """All of them, newest first, staged ones and those not in the history included."""
        found = list(self._table.snapshots())
        return (self._told(snapshot) for snapshot in reversed(found))

    def history(self) -> Iterator[Snapshot]:
        """From the current snapshot back to the oldest that is still kept."""
        found = self._table.currentSnapshot()
        while found is not None:
            yield self._told(found)
            parent = found.parentId()
            found = self._table.snapshot(parent) if parent is not None else None

    def advance(self, staged: Snapshot) -> bool:
        """Make a staged snapshot current if its parent is the current one; else nothing is done.

        The catalog takes the new metadata only in the place of what was looked at here.
        """
        operations = self._table.operations()
        base = operations.current()
        current = base.currentSnapshot()
        if (None if current is None else current.snapshotId()) != staged.parent:
            return False
        changed = java_class(self._session, "org.apache.iceberg.TableMetadata").buildFrom(base)
        operations.commit(base, changed.setBranchSnapshot(staged.id, "main").build())
        return True

    def _told(self, found: Any) -> Snapshot:
        # As JSON it is one call into the JVM, instead of one for each property.
        parser = java_class(self._session, "org.apache.iceberg.SnapshotParser")
        told = json.loads(str(parser.toJson(found)))
        summary = {str(key): str(value) for key, value in told["summary"].items()}
        return Snapshot(
            id=told["snapshot-id"],
            parent=told.get("parent-snapshot-id"),
            timestamp_ms=told["timestamp-ms"],
            operation=summary.pop("operation"),
            summary=summary,
        )

    @property
    def _table(self) -> Any:
        if self._java is None:
            self.refresh()
        return self._java


class Files:
    """The file system of a checkpoint or a warehouse, whatever its scheme."""

    def __init__(self, session: SparkSession, root: str) -> None:
        self._session = session
        self._new_path = java_class(session, "org.apache.hadoop.fs.Path")
        self.root = root.rstrip("/")
        context: Any = session.sparkContext._jsc
        self._system = self._path("").getFileSystem(context.hadoopConfiguration())

    def exists(self, name: str) -> bool:
        return bool(self._system.exists(self._path(name)))

    def names(self, folder: str) -> list[str]:
        """The files in a folder; none when it is not there."""
        if not self.exists(folder):
            return []
        return [
            str(status.getPath().getName())
            for status in self._system.listStatus(self._path(folder))
        ]

    @property
    def qualified(self) -> str:
        """The root with its scheme, as listings of it begin."""
        return str(self._system.makeQualified(self._path("")).toString())

    def size(self, path: str) -> int:
        """Bytes of a file, given by its whole path; 0 when it is gone."""
        file = self._new_path(path)
        return int(self._system.getFileStatus(file).getLen()) if self._system.exists(file) else 0

    def read(self, name: str) -> bytes:
        stream = self._system.open(self._path(name))
        try:
            util = java_class(self._session, "org.apache.commons.io.IOUtils")
            return bytes(util.toByteArray(stream))
        finally:
            stream.close()

    def write(self, name: str, content: bytes) -> None:
        stream = self._system.create(self._path(name), True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def move(self, target: str) -> None:
        """Move the whole root aside."""
        self._system.rename(self._path(""), self._new_path(target))

    def _path(self, name: str) -> Any:
        return self._new_path(f"{self.root}/{name}" if name else self.root)


# What a catalog says when another job makes the same thing, or its first entry at all, just then.
AT_ONCE = (
    "already exists",
    "unique constraint",
    "duplicate key",
    "duplicate column",
    "sqlite_busy",
    "database is locked",
    "commitfailedexception",
)
TRIES, PAUSE_SECONDS = 8, 0.25


def sql(session: SparkSession, statement: str) -> DataFrame:
    """Run one statement; a query is not carried out before its rows are asked for."""
    return session.sql(statement)  # pyright: ignore[reportUnknownMemberType]  # see above


def create(session: SparkSession, statements: Iterable[str]) -> None:
    """Run `CREATE … IF NOT EXISTS`: it looks first and makes then, and others may be between."""
    for statement in statements:
        for tried in range(1, TRIES + 1):
            try:
                sql(session, statement)
                break
            except Exception as error:
                if tried == TRIES or not made_at_once(error):
                    raise
                time.sleep(PAUSE_SECONDS)


def made_at_once(error: Exception) -> bool:
    text = str(error).lower()
    return any(sign in text for sign in AT_ONCE)


LOOK_SECONDS = 1.0
# A name of what is deployed, and the state of it: another state makes the views anew.
Deployed = Callable[[], Mapping[str, str]]
Statements = Callable[[str], Sequence[str]]


class Views:
    """Keeps the views of all that is deployed up to date, in a thread of its own."""

    def __init__(self, session: SparkSession, deployed: Deployed, statements: Statements) -> None:
        self._session = session.newSession()
        self._deployed, self._statements = deployed, statements
        self._made: dict[str, str] = {}
        self._told: dict[str, str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="views", daemon=True)

    def start(self) -> None:
        self.look()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(LOOK_SECONDS * 30)

    def look(self) -> None:
        """Make the views of what was deployed since the last look."""
        try:
            found = self._deployed()
        except Exception as error:  # the store may be away for a while
            logging.getLogger("headgate").warning("views: %s", error)
            return
        for name, state in found.items():
            if self._made.get(name) != state and self._is_made(name, state):
                self._made[name] = state

    def _is_made(self, name: str, state: str) -> bool:
        """Whether its views are there now; what fails is tried again at the next look."""
        try:
            create(self._session, self._statements(name))
        except Exception as error:  # the others are made all the same
            if self._told.get(name) != state:
                logging.getLogger("headgate").warning("views of %s: %s", name, error)
            self._told[name] = state
            return False
        return True

    def _keep(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            self.look()
