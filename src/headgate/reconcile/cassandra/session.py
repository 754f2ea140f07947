"""Cassandra: the one place that opens a session. Shapes of tables, rows by key, scans, writes.

Nothing here is for jobs or compilers: Spark never waits for a row of Cassandra.
"""

# The driver ships no types, so what comes from it is unknown to the checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from headgate.errors import (
    ForbiddenError,
    HeadgateError,
    OperationError,
    SettingsError,
    UnavailableError,
)
from headgate.reconcile.cassandra.values import converter, plain

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.reconcile.cassandra.rows import RowReader

REQUEST_SECONDS = 5.0
CONNECT_SECONDS = 5
HEARTBEAT_SECONDS = 5
IN_FLIGHT = 100
# Every Cassandra since 2.2 speaks it; what came later would only cost time here.
PROTOCOL = 4
FailureKind = Literal["timeout", "away", "shape", "refused", "row"]
# What comes of the values of one row or one key, and says nothing of Cassandra.
_OF_VALUES = (ValueError, TypeError, ArithmeticError, LookupError)


@dataclass(frozen=True)
class Place:
    """Where a cluster is, and who asks."""

    contact_points: tuple[str, ...]
    port: int = 9042
    local_dc: str = "datacenter1"
    user: str | None = None
    password: str | None = None

    @property
    def words(self) -> str:
        return f"{','.join(self.contact_points)}:{self.port}"


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    cql_type: str
    kind: str
    position: int

    @property
    def has_writetime(self) -> bool:
        """Collections have one for each item, counters and keys have none."""
        multi = self.cql_type.startswith(("list<", "set<", "map<")) or self.cql_type == "counter"
        return self.kind in ("regular", "static") and not multi


@dataclass(frozen=True)
class TableShape:
    """A table's columns as they are now."""

    keyspace: str
    table: str
    columns: dict[str, Column]
    dropped: frozenset[str] = frozenset()
    table_id: str = ""

    @property
    def name(self) -> str:
        return f"{self.keyspace}.{self.table}"

    @property
    def quoted(self) -> str:
        return f"{quoted(self.keyspace)}.{quoted(self.table)}"

    @cached_property
    def primary_key(self) -> tuple[str, ...]:
        """Partition key, then clustering columns, in their order."""
        return (*self._of("partition_key"), *self._of("clustering"))

    def _of(self, kind: str) -> tuple[str, ...]:
        found = [column for column in self.columns.values() if column.kind == kind]
        return tuple(c.name for c in sorted(found, key=lambda column: column.position))


@dataclass(frozen=True)
class Failure:
    """Why a request got no answer: slow, away altogether, another shape, never allowed, or a row
    that cannot be read however often it is asked for.
    """

    kind: FailureKind
    words: str


def place_of(settings: Settings) -> Place:
    """Where Cassandra is by the settings; refused when nothing says so."""
    points = settings.cassandra_contact_points
    if not points:
        raise UnavailableError(
            "no Cassandra is known",
            why="CASSANDRA_CONTACT_POINTS is not set, and no embedded one runs",
            fix="start it with `headgate local up --with cassandra`, or set the variable",
        )
    hosts = tuple(point.strip() for point in points.split(",") if point.strip())
    return Place(
        hosts,
        settings.cassandra_port,
        settings.cassandra_local_dc,
        settings.cassandra_user,
        settings.cassandra_password,
    )


@contextmanager
def open_session(settings: Settings, timeout: float = REQUEST_SECONDS) -> Generator[Cassandra]:
    """A session on the cluster of the settings."""
    with session_at(place_of(settings), timeout) as cassandra:
        yield cassandra


@contextmanager
def session_at(place: Place, timeout: float = REQUEST_SECONDS) -> Generator[Cassandra]:
    """A session on the cluster there; UnavailableError when none answers."""
    cluster = _cluster(place, timeout)
    try:
        yield Cassandra(place, _connected(cluster, place))
    finally:
        with suppress(Exception):  # it may be gone already
            cluster.shutdown()


class Cassandra:
    """An open session; `session` is the driver's own, for what is not said here."""

    def __init__(self, place: Place, session: Any) -> None:
        self.place, self.session = place, session
        self._prepared: dict[str, Any] = {}

    def prepare(self, cql: str) -> Any:
        """The statement, prepared once for each text."""
        if cql not in self._prepared:
            try:
                self._prepared[cql] = self.session.prepare(cql)
            except Exception as error:
                raise explained(error, self.place, f"Cassandra does not take `{cql}`") from error
        return self._prepared[cql]

    def forget(self, cql: str) -> None:
        """Prepare it anew next time: the table has another shape."""
        self._prepared.pop(cql, None)

    def execute(self, cql: str, values: Sequence[object] = ()) -> list[dict[str, object]]:
        """All rows that answer, with plain values."""
        return list(self.stream(cql, values))

    def stream(self, cql: str, values: Sequence[object] = ()) -> Iterator[dict[str, object]]:
        """The rows that answer, page by page."""
        statement: Any = self.prepare(cql).bind(values) if values else cql
        try:
            answer = self.session.execute(statement)
            names = cast("list[str]", answer.column_names or [])
            for row in answer:
                yield {name: plain(value) for name, value in zip(names, row, strict=True)}
        except Exception as error:
            raise explained(error, self.place, "Cassandra did not answer") from error

    def scan(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, object]]:
        """Every row of a table, in no order that means anything."""
        shape = self.shape(table)
        parts = [(name, converter(shape.columns[name].cql_type)) for name in columns]
        cql = f"SELECT {', '.join(selected(shape.columns[n]) for n in columns)} FROM {shape.quoted}"
        for row in self.stream(cql):
            values = zip(parts, row.values(), strict=True)
            yield {name: make(value) if make else value for (name, make), value in values}

    def shape(self, table: str) -> TableShape:
        """The table's columns as the cluster says them now; it must be there."""
        keyspace, _, name = table.partition(".")
        found = self.execute(
            "SELECT column_name, type, kind, position FROM system_schema.columns"
            " WHERE keyspace_name = ? AND table_name = ?",
            (keyspace, name),
        )
        if not found:
            raise UnavailableError(
                f"there is no table {table} in Cassandra at {self.place.words}",
                why="system_schema.columns has none of its columns",
                fix="create it, or check `rows: {cloud: {cassandra: …}}` of the rule set",
            )
        where = "WHERE keyspace_name = ? AND table_name = ?"
        dropped = self.execute(
            f"SELECT column_name FROM system_schema.dropped_columns {where}", (keyspace, name)
        )
        ids = self.execute(f"SELECT id FROM system_schema.tables {where}", (keyspace, name))
        return TableShape(
            keyspace,
            name,
            {c.name: c for c in map(_column, found)},
            frozenset(str(row["column_name"]) for row in dropped),
            str(ids[0]["id"]) if ids else "",
        )

    def reader(
        self, table: str, key: Sequence[str], columns: Sequence[str], version: str | None = None
    ) -> RowReader:
        """What reads rows of these columns by key."""
        from headgate.reconcile.cassandra.rows import RowReader

        return RowReader(self, self.shape(table), tuple(key), tuple(columns), version)

    def write_many(self, cql: str, rows: Iterable[Sequence[object]]) -> int:
        """Run a statement for each row, some at once; how many, all of them done."""
        from cassandra.concurrent import execute_concurrent_with_args

        statement, done = self.prepare(cql), 0
        try:
            for _ in execute_concurrent_with_args(
                self.session, statement, rows, concurrency=IN_FLIGHT, results_generator=True
            ):
                done += 1
        except Exception as error:
            words = f"Cassandra took {done:,} rows, then no more"
            raise explained(error, self.place, words) from error
        return done

    def answers(self, table: str) -> bool:
        """Whether a row of the table can be read now, whichever it is."""
        keyspace, _, name = table.partition(".")
        try:
            self.session.execute(f"SELECT * FROM {quoted(keyspace)}.{quoted(name)} LIMIT 1")
        except Exception as error:
            return failure_of(error).kind == "shape"
        return True


def quoted(name: str) -> str:
    """An identifier that keeps its case."""
    return '"' + name.replace('"', '""') + '"'


def selected(column: Column) -> str:
    """The column as it is asked for: a timestamp as its milliseconds."""
    name = quoted(column.name)
    return f"toUnixTimestamp({name})" if column.cql_type == "timestamp" else name


def failure_of(error: Exception) -> Failure:
    """What an exception of the driver says about trying again."""
    import cassandra
    from cassandra.cluster import NoHostAvailable
    from cassandra.connection import ConnectionException

    words = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:300]
    if isinstance(error, (NoHostAvailable, ConnectionException)):
        denied = "AuthenticationFailed" in words or "Bad credentials" in words
        return Failure("refused" if denied else "away", words)
    if isinstance(error, (cassandra.Unauthorized, cassandra.AuthenticationFailed)):
        return Failure("refused", words)
    if isinstance(error, cassandra.InvalidRequest):
        return Failure("shape", words)
    if isinstance(error, _OF_VALUES):
        return Failure("row", words)
    return Failure("timeout", words)


def explained(error: Exception, place: Place, what: str) -> HeadgateError:
    """The driver's exception as ours."""
    if isinstance(error, HeadgateError):
        return error
    failure = failure_of(error)
    if failure.kind == "refused":
        fix = "check CASSANDRA_USER and CASSANDRA_PASSWORD, and what that user may read"
        return ForbiddenError(f"Cassandra at {place.words} refuses", why=failure.words, fix=fix)
    if failure.kind == "shape":
        return OperationError(what, why=failure.words, fix="check the table's columns")
    if failure.kind == "row":
        return OperationError(what, why=failure.words, fix="look at that row's values")
    return UnavailableError(
        f"Cassandra at {place.words} is away",
        why=failure.words,
        fix="start it with `headgate local up --with cassandra`,"
        " or check CASSANDRA_CONTACT_POINTS and CASSANDRA_PORT",
    )


def _column(row: dict[str, object]) -> Column:
    position = cast("int", row["position"])
    return Column(str(row["column_name"]), str(row["type"]), str(row["kind"]), position)


def _cluster(place: Place, timeout: float) -> Any:
    from cassandra import ConsistencyLevel
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import (
        DCAwareRoundRobinPolicy,
        ExponentialReconnectionPolicy,
        FallthroughRetryPolicy,
        TokenAwarePolicy,
    )
    from cassandra.query import tuple_factory

    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(place.local_dc)),
        retry_policy=FallthroughRetryPolicy(),  # whoever asks counts its own tries
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        request_timeout=timeout,
        row_factory=tuple_factory,
    )
    login = PlainTextAuthProvider(place.user, place.password or "") if place.user else None
    return Cluster(
        contact_points=list(place.contact_points),
        port=place.port,
        auth_provider=login,
        protocol_version=PROTOCOL,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        # None tries again for ever; the driver says so in words, not in its types.
        reconnection_policy=ExponentialReconnectionPolicy(0.5, 5.0, cast("int", None)),
        connect_timeout=CONNECT_SECONDS,
        control_connection_timeout=CONNECT_SECONDS,
        idle_heartbeat_interval=HEARTBEAT_SECONDS,
        idle_heartbeat_timeout=HEARTBEAT_SECONDS,
        monitor_reporting_enabled=False,
    )


def _connected(cluster: Any, place: Place) -> Any:
    try:
        return cluster.connect()
    except Exception as error:
        if "UnresolvableContactPoints" in type(error).__name__:
            raise SettingsError(
                f"no address of Cassandra can be found: {place.words}",
                why=str(error),
                fix="check CASSANDRA_CONTACT_POINTS: host names or addresses, with commas",
            ) from error
        raise explained(error, place, "Cassandra did not answer") from error
