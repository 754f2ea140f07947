"""Keys planted for as long as a play lasts, and the comparison of each verdict with the role of its key."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import orjson

from bench.faults.reconcile.rig import JOB, TABLE, PairRig
from headgate.config.settings import Settings
from headgate.core.engine.connect import connect
from headgate.core.kafka.producer import TopicWriter
from headgate.core.lake.spark import sql
from headgate.core.ledger.ops_store import OpsStore
from headgate.demo.reconcile.planting import prepare
from headgate.errors import HeadgateError, UnavailableError
from headgate.reconcile.cassandra.session import Cassandra, open_session

MATCH, MISMATCH, ZOMBIE = "MATCH", "MISMATCH", "ZOMBIE"
MISSING_CLOUD, MISSING_ONPREM, DELETE_EVENT = "MISSING_CLOUD", "MISSING_ONPREM", "DELETE_EVENT"
# The role of a key by its number: the last digits of so many; every other key is sound.
ROLES = (MISMATCH, MISSING_CLOUD, MISSING_ONPREM, DELETE_EVENT, ZOMBIE)
OF = 20
RETRY_SECONDS = 0.5
DELIVER_SECONDS = 180.0
COLUMNS = ("pk", "col1", "col2", "col3", "col4", "last_updated")
HashOf = Callable[[dict[str, object]], str]


@dataclass(frozen=True)
class Pair:
    """One key: what it is meant to become, and when it was written."""

    number: int
    at: datetime
    polled: bool

    @property
    def pk(self) -> str:
        return f"k{self.number:07d}"

    @property
    def role(self) -> str:
        last = self.number % OF
        role = ROLES[last] if last < len(ROLES) else MATCH
        # Of a row that on-prem never spoke of only Connect can tell.
        return MATCH if role == MISSING_ONPREM and not self.polled else role

    def values(self) -> dict[str, object]:
        """The row as it is on-prem."""
        return {
            "col1": f"row {self.number} | é",
            "col2": Decimal(self.number) / 100,
            "col3": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=self.number),
            "col4": self.number / 8,
        }

    def row(self) -> tuple[object, ...] | None:
        """What the cloud holds of it; None where it holds nothing."""
        if self.role in (MISSING_CLOUD, DELETE_EVENT):
            return None
        values = self.values()
        if self.role == MISMATCH:
            values["col1"] = f"another {self.number}"
        # The row that on-prem has deleted is older than the delete.
        version = self.at - timedelta(seconds=1) if self.role == ZOMBIE else self.at
        return (self.pk, *values.values(), version)

    def message(self, hash_of: HashOf) -> bytes | None:
        """What on-prem says of it; None where it says nothing."""
        if self.role == MISSING_ONPREM:
            return None
        action = "DELETE" if self.role in (DELETE_EVENT, ZOMBIE) else "UPSERT"
        return orjson.dumps(
            {
                "event_id": f"e-{self.number}",
                "action": action,
                "hash_onprem": hash_of(self.values()),
                "hash_version": 2,
                "partitionColumns": [{"type": "PK", "value": self.pk}],
                "event_ts": self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            }
        )


@dataclass
class Planter(threading.Thread):
    """Writes rows to the cloud and events to on-prem's topic, a piece at a time, until told to end.

    One piece goes ahead, so that an engine that has just started is not met by a backlog.
    Nothing is given up: a piece that Cassandra or the broker did not take is sent again.
    """

    home: Settings
    table: str
    topic: str
    hash_of: HashOf
    keys: int
    every: float
    polled: bool
    planted: list[Pair] = field(default_factory=list[Pair])
    sent: int = 0
    at_full_pace: bool = False
    error: Exception | None = None
    _stocked: list[Sequence[Pair]] = field(default_factory=list[Sequence[Pair]])
    _wanted: int = 0
    _ending: bool = False
    _session: Cassandra | None = None
    _cloud: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        super().__init__(name="pairs", daemon=True)

    __hash__ = threading.Thread.__hash__

    def stock(self, pieces: int) -> None:
        """Have the rows of the next pieces in the cloud before it goes away."""
        self._wanted = pieces
        while self._wanted and self.is_alive():
            time.sleep(0.05)

    def finish(self, limit: float) -> None:
        self._ending = True
        self.join(limit)

    def run(self) -> None:
        try:
            writer = TopicWriter(self.home.need("bootstrap_servers"), DELIVER_SECONDS)
            while not self._ending or self._stocked:
                begun = time.monotonic()
                if not self.planted or self.at_full_pace:
                    self._tell(writer, self._next())
                time.sleep(max(0.0, self.every - (time.monotonic() - begun)))
        except Exception as error:
            self.error = error
        finally:
            self._cloud.close()

    def _next(self) -> Sequence[Pair]:
        if self._wanted:
            self._stocked += [self._written() for _ in range(self._wanted)]
            self._wanted = 0
        return self._stocked.pop(0) if self._stocked else self._written()

    def _written(self) -> Sequence[Pair]:
        """A new piece whose rows the cloud has taken.

        Each try has its own time, as a service's has that writes again: polling finds no row whose
        time is long past when it is written.
        """
        while True:
            piece = self._drawn()
            rows = [row for pair in piece if (row := pair.row()) is not None]
            if self._took(rows):
                self.planted += piece
                return piece
            time.sleep(RETRY_SECONDS)

    def _drawn(self) -> Sequence[Pair]:
        now = datetime.now(UTC)
        at = now.replace(microsecond=now.microsecond // 1000 * 1000)
        begin = len(self.planted)
        return [Pair(begin + n, at, self.polled) for n in range(self.keys)]

    def _took(self, rows: Sequence[tuple[object, ...]]) -> bool:
        marks = ", ".join("?" * len(COLUMNS))
        cql = f"INSERT INTO {self.table} ({', '.join(COLUMNS)}) VALUES ({marks})"
        try:
            self._session = self._session or self._cloud.enter_context(open_session(self.home))
            self._session.write_many(cql, rows)
        except HeadgateError as error:
            if not error.retryable:
                raise
            self._session = None
            self._cloud.close()
            return False
        return True

    def _tell(self, writer: TopicWriter, piece: Sequence[Pair]) -> None:
        told = [(pair.pk.encode(), pair.message(self.hash_of)) for pair in piece]
        said = [(key, value) for key, value in told if value is not None]
        writer.send(self.topic, [value for _, value in said], [key for key, _ in said])
        writer.flush()
        self.sent += len(said)


def make_table(home: Settings, table: str, limit: float = 60.0) -> None:
    """The empty table; a node that has just started may not take it at once."""
    end = time.monotonic() + limit
    while True:
        try:
            with open_session(home) as cassandra:
                prepare(cassandra, table)
                return
        except UnavailableError:
            if time.monotonic() > end:
                raise
            time.sleep(RETRY_SECONDS)


# A side that came after the window is told as late; which side of it an outage put a key on
# depends on the clock, so both count as what was planted.
PLAIN = {"LATE_MATCH": "MATCH", "LATE_MISMATCH": "MISMATCH"}
# What the merged states say now, beside the last row that was appended for the key.
FINALS = f"""
SELECT now.pk, now.dq_status, now.settled, last.told
FROM dq_results_{TABLE} AS now
LEFT JOIN (
  SELECT pk, max_by(dq_status, struct(processing_time, settled)) AS told
  FROM lake.dq.results_{TABLE}
  GROUP BY pk
) AS last ON last.pk = now.pk"""


@dataclass(frozen=True)
class Final:
    """The verdict of one key in the end, and the last one that was told of it."""

    pk: str
    status: str
    settled: bool
    told: str


@dataclass(frozen=True)
class Compared:
    """Planted against found, as multisets, and what is wrong key by key."""

    planted: Mapping[str, int]
    found: Mapping[str, int]
    late: int
    wrong: tuple[str, ...]
    changes: Mapping[str, int]

    @property
    def holds(self) -> bool:
        return not self.wrong and self.planted == self.found


def finals(rig: PairRig) -> tuple[Final, ...]:
    """Every key as the engine's view has it now."""
    with connect(rig.running_engine()) as session:
        rows = sql(session, FINALS).collect()
    return tuple(
        Final(row["pk"], row["dq_status"], bool(row["settled"]), row["told"] or "") for row in rows
    )


def changes(rig: PairRig) -> dict[str, int]:
    """How often each verdict was told, in all histories."""
    with connect(rig.running_engine()) as session:
        query = f"SELECT dq_status, count(*) AS n FROM dq_audit_{TABLE} GROUP BY dq_status"
        rows = sql(session, query).collect()
    return {row["dq_status"]: int(row["n"]) for row in rows}


def compared(planted: Sequence[Pair], found: Sequence[Final], told: Mapping[str, int]) -> Compared:
    """Hold every key against its role."""
    by_key: dict[str, list[Final]] = {}
    for final in found:
        by_key.setdefault(final.pk, []).append(final)
    wrong = [words for pair in planted if (words := _fault(pair, by_key.pop(pair.pk, [])))]
    wrong += [f"{pk} was never planted" for pk in by_key]
    return Compared(
        planted=dict(sorted(Counter(pair.role for pair in planted).items())),
        found=dict(sorted(Counter(PLAIN.get(f.status, f.status) for f in found).items())),
        late=sum(final.status in PLAIN for final in found),
        wrong=tuple(wrong),
        changes=dict(sorted(told.items())),
    )


def _fault(pair: Pair, found: Sequence[Final]) -> str:
    if len(found) != 1:
        return f"{pair.pk}, planted as {pair.role}, stands there {len(found)} times"
    (final,) = found
    if not final.settled:
        return f"{pair.pk}, planted as {pair.role}, is still {final.status}"
    if PLAIN.get(final.status, final.status) != pair.role:
        return f"{pair.pk}, planted as {pair.role}, is {final.status}"
    if final.told != final.status:
        return f"{pair.pk} is {final.status}, but {final.told or 'nothing'} was told of it last"
    return ""


def unread(rig: PairRig, store: OpsStore) -> int:
    """Offsets of both topics that no batch has settled yet."""
    from headgate.core.kafka.topics import Topics

    settled = store.settled_range(JOB)
    done: Mapping[str, int] = settled.end if settled else {}
    topics = Topics(rig.home.need("bootstrap_servers"))
    sides = {"onprem": "topic1", "cloud": "topic2"}
    return sum(
        end - done.get(f"{side}:{partition}", 0)
        for side, topic in sides.items()
        if (state := topics.describe(topic))
        for partition, end in state.end.items()
    )
