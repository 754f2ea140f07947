"""Keys planted for as long as a play lasts, and the comparison of each verdict with the role of its key."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import orjson

from bench.faults.reconcile.rig import CLOUD_TABLE, ONPREM_TOPIC, TABLE, PairRig
from bench.faults.scenario import Load
from headgate.config.settings import Settings
from headgate.core.engine.connect import connect
from headgate.core.kafka.producer import TopicWriter
from headgate.core.lake.spark import sql
from headgate.demo.reconcile.planting import prepare
from headgate.errors import HeadgateError, UnavailableError
from headgate.reconcile.cassandra.session import Cassandra, open_session

MATCH, MISMATCH, ZOMBIE = "MATCH", "MISMATCH", "ZOMBIE"
MISSING_CLOUD, MISSING_ONPREM, DELETE_EVENT = "MISSING_CLOUD", "MISSING_ONPREM", "DELETE_EVENT"
# Of so many keys in a row the first have one of these roles each, the others are sound.
ROLES = (MISMATCH, MISSING_CLOUD, MISSING_ONPREM, DELETE_EVENT, ZOMBIE)
ROLE_CYCLE = 20
RETRY_SECONDS = 0.5
DELIVER_SECONDS = 180.0
COLUMNS = ("pk", "col1", "col2", "col3", "col4", "last_updated")
HashOf = Callable[[dict[str, object]], str]


@dataclass(frozen=True)
class PlantedKey:
    """One key: its role, which is the verdict that it must get, and when it was written."""

    number: int
    at: datetime
    polled: bool

    @property
    def pk(self) -> str:
        return f"k{self.number:07d}"

    @property
    def role(self) -> str:
        place = self.number % ROLE_CYCLE
        role = ROLES[place] if place < len(ROLES) else MATCH
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


class KeyLoad(Load):
    """Writes rows to the cloud and events to on-prem's topic, a piece at a time, until told to end.

    One piece goes ahead, so that an engine that has just started is not met by a backlog.
    Nothing is given up: a piece that Cassandra or the broker did not take is sent again.
    """

    def __init__(
        self, home: Settings, hash_of: HashOf, keys: int, every: float, *, polled: bool
    ) -> None:
        super().__init__()
        self.planted: list[PlantedKey] = []
        self.at_full_pace = False
        self._home, self._hash_of, self._polled = home, hash_of, polled
        self._keys, self._every = keys, every
        self._stocked: list[Sequence[PlantedKey]] = []
        self._to_stock = 0
        self._session: Cassandra | None = None
        self._cloud = ExitStack()

    def stock(self, pieces: int) -> None:
        """Have the rows of the next pieces in the cloud before it goes away."""
        self._to_stock = pieces
        while self._to_stock and self.is_alive():
            time.sleep(0.05)

    def send(self) -> None:
        writer = TopicWriter(self._home.need("bootstrap_servers"), DELIVER_SECONDS)
        with self._cloud:
            while not self.ending.is_set() or self._stocked:
                begun = time.monotonic()
                if not self.planted or self.at_full_pace:
                    self._send_events(writer, self._next_piece())
                time.sleep(max(0.0, self._every - (time.monotonic() - begun)))

    def _next_piece(self) -> Sequence[PlantedKey]:
        if self._to_stock:
            self._stocked += [self._write_piece() for _ in range(self._to_stock)]
            self._to_stock = 0
        return self._stocked.pop(0) if self._stocked else self._write_piece()

    def _write_piece(self) -> Sequence[PlantedKey]:
        """A new piece whose rows the cloud has taken.

        Each try has its own time, as a service's has that writes again: polling finds no row whose
        time is long past when it is written.
        """
        while True:
            piece = self._draw_piece()
            rows = [row for key in piece if (row := key.row()) is not None]
            if self._try_to_write(rows):
                self.planted += piece
                return piece
            time.sleep(RETRY_SECONDS)

    def _draw_piece(self) -> Sequence[PlantedKey]:
        now = datetime.now(UTC)
        at = now.replace(microsecond=now.microsecond // 1000 * 1000)
        begin = len(self.planted)
        return [PlantedKey(begin + n, at, self._polled) for n in range(self._keys)]

    def _try_to_write(self, rows: Sequence[tuple[object, ...]]) -> bool:
        marks = ", ".join("?" * len(COLUMNS))
        cql = f"INSERT INTO {CLOUD_TABLE} ({', '.join(COLUMNS)}) VALUES ({marks})"
        try:
            self._session = self._session or self._cloud.enter_context(open_session(self._home))
            self._session.write_many(cql, rows)
        except HeadgateError as error:
            if not error.retryable:
                raise
            self._session = None
            self._cloud.close()
            return False
        return True

    def _send_events(self, writer: TopicWriter, piece: Sequence[PlantedKey]) -> None:
        events = [
            (key.pk.encode(), event)
            for key in piece
            if (event := key.message(self._hash_of)) is not None
        ]
        writer.send(ONPREM_TOPIC, [event for _, event in events], [pk for pk, _ in events])
        writer.flush()
        self.sent += len(events)


def make_table(home: Settings, limit: float = 60.0) -> None:
    """The empty table; a node that has just started may not take it at once."""
    end = time.monotonic() + limit
    while True:
        try:
            with open_session(home) as cassandra:
                prepare(cassandra, CLOUD_TABLE)
                return
        except UnavailableError:
            if time.monotonic() > end:
                raise
            time.sleep(RETRY_SECONDS)


# A side that came after the window makes a late verdict; which side of it an outage put a key on
# depends on the clock, so both count as what was planted.
WITHOUT_LATENESS = {"LATE_MATCH": "MATCH", "LATE_MISMATCH": "MISMATCH"}
# What the merged states say now, beside the last row that was appended for the key.
FINALS = f"""
SELECT now.pk, now.dq_status, now.settled, last.reported
FROM dq_results_{TABLE} AS now
LEFT JOIN (
  SELECT pk, max_by(dq_status, struct(processing_time, settled)) AS reported
  FROM lake.dq.results_{TABLE}
  GROUP BY pk
) AS last ON last.pk = now.pk"""


@dataclass(frozen=True)
class FinalVerdict:
    """The verdict of one key in the end, and the last one that was reported of it."""

    pk: str
    status: str
    settled: bool
    reported: str


@dataclass(frozen=True)
class KeyComparison:
    """Planted against found, as multisets, and what is wrong key by key."""

    planted: Mapping[str, int]
    found: Mapping[str, int]
    late: int
    wrong: tuple[str, ...]
    changes: Mapping[str, int]

    @property
    def holds(self) -> bool:
        return not self.wrong and self.planted == self.found


def read_verdicts(rig: PairRig) -> tuple[FinalVerdict, ...]:
    """Every key as the engine's view has it now."""
    with connect(rig.client_settings()) as session:
        rows = sql(session, FINALS).collect()
    return tuple(
        FinalVerdict(row["pk"], row["dq_status"], bool(row["settled"]), row["reported"] or "")
        for row in rows
    )


def count_changes(rig: PairRig) -> dict[str, int]:
    """How often each verdict was reported, in all histories."""
    with connect(rig.client_settings()) as session:
        query = f"SELECT dq_status, count(*) AS n FROM dq_audit_{TABLE} GROUP BY dq_status"
        rows = sql(session, query).collect()
    return {row["dq_status"]: int(row["n"]) for row in rows}


def compare_keys(
    planted: Sequence[PlantedKey], verdicts: Sequence[FinalVerdict], changes: Mapping[str, int]
) -> KeyComparison:
    """Hold every key against its role."""
    by_key: dict[str, list[FinalVerdict]] = {}
    for verdict in verdicts:
        by_key.setdefault(verdict.pk, []).append(verdict)
    wrong = [fault for key in planted if (fault := _find_fault(key, by_key.pop(key.pk, [])))]
    wrong += [f"{pk} was never planted" for pk in by_key]
    statuses = [WITHOUT_LATENESS.get(verdict.status, verdict.status) for verdict in verdicts]
    return KeyComparison(
        planted=dict(sorted(Counter(key.role for key in planted).items())),
        found=dict(sorted(Counter(statuses).items())),
        late=sum(verdict.status in WITHOUT_LATENESS for verdict in verdicts),
        wrong=tuple(wrong),
        changes=dict(sorted(changes.items())),
    )


def _find_fault(key: PlantedKey, verdicts: Sequence[FinalVerdict]) -> str:
    planted = f"{key.pk}, planted as {key.role},"
    if len(verdicts) != 1:
        return f"{planted} stands there {len(verdicts)} times"
    (final,) = verdicts
    if not final.settled:
        return f"{planted} is still {final.status}"
    if WITHOUT_LATENESS.get(final.status, final.status) != key.role:
        return f"{planted} is {final.status}"
    if final.reported != final.status:
        return f"{key.pk} is {final.status}, but {final.reported or 'nothing'} was told of it last"
    return ""
