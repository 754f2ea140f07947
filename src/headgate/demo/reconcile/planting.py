"""Plants keys with every kind of defect from a seed, writes down what must come of each, and sends them in waves.

The oracle is written before anything is sent: each key with its expected verdict (`keys.parquet`), the sums
(`planted.json`) and the table on-prem (`onprem.parquet`). A wave writes rows to Cassandra, then messages to both topics.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.core.ledger.ops_store import utc_now
from headgate.demo.reconcile.keys import (
    COLUMNS,
    SPAN,
    BusinessRow,
    Expected,
    HashOf,
    Key,
    Message,
    Phase,
    Plan,
    Planned,
    SoundRows,
)
from headgate.demo.reconcile.roles import ROLES, SOUND, Role, sound
from headgate.errors import UsageError
from headgate.reconcile.cassandra.session import Cassandra

# One of so many sound keys comes early, and so does everything that becomes a dead letter.
EARLY = 40
# Rows and messages of so many keys go together, so that the sides of none come far apart.
AT_ONCE = 1_000
EARLIER = SPAN + timedelta(minutes=2)
_SOUND = Role(SOUND, 0, Expected("MATCH"), sound)


@dataclass(frozen=True)
class Order:
    """How many keys, from which seed, with event times from when on."""

    keys: int
    seed: int
    start: datetime


class Planting:
    """All keys of one order; what is said and stored of each does not depend on the clock."""

    def __init__(self, order: Order, hash_of: HashOf) -> None:
        self.order, self._hash_of = order, hash_of
        self._rows = SoundRows(order.seed, order.keys, order.start)
        self._roles = roles_of(order)

    def keys(self) -> Iterator[Planned]:
        for number, at in enumerate(self._roles):
            role = ROLES[at] if at >= 0 else _SOUND
            early = role.expected.letter is not None or (at < 0 and number % EARLY == 0)
            plan = role.plan(self._key(number, early=early))
            pk = self._rows.pk(number)
            yield Planned(pk, role.name, role.expected, _early(plan) if early else plan)

    def _key(self, number: int, *, early: bool) -> Key:
        """What comes early is older than all the rest: who polls by time never looks back."""
        row, whole = self._rows.drawn(number), self._rows.whole(number)
        if early:
            row = replace(row, last_updated=row.last_updated - EARLIER)
        return Key(number, row, whole, self._hash_of)

    @cached_property
    def planned(self) -> tuple[Planned, ...]:
        return tuple(self.keys())

    def parts(self, phase: Phase) -> Iterator[tuple[Planned, ...]]:
        """The keys of a wave, some at a time; those last of which more comes in a later wave."""
        keys = [key for key in self.planned if key.is_in(phase)]
        keys.sort(key=lambda key: any(w.phase not in ("early", phase) for w in key.plan.writes))
        for begin in range(0, len(keys), AT_ONCE):
            yield tuple(keys[begin : begin + AT_ONCE])

    def messages(self, phase: Phase, keys: Iterable[Planned] | None = None) -> list[Message]:
        wanted = self.planned if keys is None else keys
        return [m for key in wanted for m in key.plan.messages if m.phase == phase]

    def writes(
        self, phase: Phase, at: datetime, keys: Iterable[Planned] | None = None
    ) -> list[BusinessRow]:
        """What the cloud is to hold from now on; what it learns after the first wave is as new as that."""
        wanted = self.planned if keys is None else keys
        rows = [w.row for key in wanted for w in key.plan.writes if w.phase == phase]
        if phase in ("early", "first"):
            return rows
        first = at - timedelta(milliseconds=len(rows))
        return [
            replace(row, last_updated=first + timedelta(milliseconds=number))
            for number, row in enumerate(rows)
        ]

    def onprem(self) -> list[BusinessRow]:
        """The table on-prem, as it is in the end."""
        return [key.plan.onprem for key in self.planned if key.plan.onprem is not None]

    def counts(self) -> Mapping[str, int]:
        """Keys by role, the sound ones first."""
        counted = Counter(key.role for key in self.planned)
        return {name: counted[name] for name in (SOUND, *(role.name for role in ROLES))}


def _early(plan: Plan) -> Plan:
    return replace(
        plan,
        messages=tuple(replace(message, phase="early") for message in plan.messages),
        writes=tuple(replace(write, phase="early") for write in plan.writes),
    )


def roles_of(order: Order) -> list[int]:
    """The role of each key by its number, -1 for sound ones; each role at least once."""
    roles = np.full(order.keys, -1)
    chosen = np.random.default_rng([order.seed, 2]).permutation(order.keys)
    begin = 0
    for at, role in enumerate(ROLES):
        end = begin + max(1, order.keys * role.per_mille // 1000)
        roles[chosen[begin:end]] = at
        begin = end
    return [int(role) for role in roles]


# pyarrow ships no types, so what comes from it is unknown to the checker.


KEYS_FILE, SUMS_FILE, ONPREM_FILE = "keys.parquet", "planted.json", "onprem.parquet"
ONPREM_SCHEMA = pa.schema(
    [
        ("pk", pa.string()),
        ("col1", pa.string()),
        ("col2", pa.decimal128(18, 2)),
        ("col3", pa.timestamp("us", tz="UTC")),
        ("col4", pa.float64()),
        ("last_updated", pa.timestamp("us", tz="UTC")),
    ]
)
_KEY_FIELDS = tuple(Expected.__dataclass_fields__)


@dataclass(frozen=True)
class ExpectedKey:
    """One key of the plant, as the file says it."""

    pk: str
    role: str
    expected: Expected


@dataclass(frozen=True)
class Sums:
    """What must be counted in the end."""

    keys: int
    seed: int
    start: datetime
    roles: Mapping[str, int]
    statuses: Mapping[str, int]
    kinds: Mapping[str, int]
    letters: Mapping[str, int]
    messages: Mapping[str, int]
    tombstones: int
    again: int
    deletes: int
    stale: int
    conflicts: int

    @property
    def order(self) -> Order:
        return Order(self.keys, self.seed, self.start)


def sums_of(planting: Planting) -> Sums:
    """Counted before anything is sent."""
    planned, order = planting.planned, planting.order
    ends = [key.expected for key in planned]
    return Sums(
        keys=order.keys,
        seed=order.seed,
        start=order.start,
        roles=planting.counts(),
        statuses=_counted(end.status for end in ends),
        kinds=_counted(end.kind for end in ends),
        letters=_counted(end.letter for end in ends),
        messages=_counted(message.side for key in planned for message in key.plan.messages),
        tombstones=sum(m.value is None for key in planned for m in key.plan.messages),
        again=sum(end.again for end in ends),
        deletes=sum(end.deletes for end in ends),
        stale=sum(bool(end.stale) for end in ends),
        conflicts=sum(end.conflict for end in ends),
    )


def write_oracle(folder: Path, planting: Planting) -> Sums:
    """All three files: keys, sums, and the table on-prem."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(keys_table(planting.planned), folder / KEYS_FILE)
    pq.write_table(onprem_table(planting.onprem()), folder / ONPREM_FILE)
    sums = sums_of(planting)
    (folder / SUMS_FILE).write_bytes(orjson.dumps(sums, option=orjson.OPT_INDENT_2))
    return sums


def read_sums(folder: Path) -> Sums:
    """What an earlier wave planted; it must have been sent from here."""
    file = folder / SUMS_FILE
    if not file.is_file():
        raise UsageError(
            "there is no first wave yet",
            why=f"{file} is not there",
            fix="headgate feed pairs --phase first",
        )
    data = cast("dict[str, Any]", orjson.loads(file.read_bytes()))
    start = datetime.fromisoformat(str(data.pop("start")))
    return Sums(start=start, **data)


def read_keys(folder: Path) -> tuple[ExpectedKey, ...]:
    """Every planted key and what must come of it."""
    rows = cast("list[dict[str, Any]]", pq.read_table(folder / KEYS_FILE).to_pylist())
    return tuple(_key(row) for row in rows)


def keys_table(planned: Iterable[Planned]) -> pa.Table:
    rows = [{"pk": key.pk, "role": key.role, **asdict(key.expected)} for key in planned]
    texts = [(name, pa.string()) for name in ("pk", "role", "status", "kind", "column", "letter")]
    flags = [(name, pa.bool_()) for name in ("stale", "conflict")]
    counts = [(name, pa.int32()) for name in ("again", "deletes")]
    schema = pa.schema([*texts, *flags, *counts, ("path", pa.list_(pa.string()))])
    return pa.Table.from_pylist(rows, schema=schema)


def onprem_table(rows: Iterable[BusinessRow]) -> pa.Table:
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=ONPREM_SCHEMA)


def _key(row: dict[str, Any]) -> ExpectedKey:
    fields = {name: row[name] for name in _KEY_FIELDS}
    fields["path"] = tuple(cast("list[str]", row["path"]))
    expected = Expected(**fields)
    return ExpectedKey(str(row["pk"]), str(row["role"]), expected)


def _counted(names: Iterable[str | None]) -> dict[str, int]:
    counts = Counter(name for name in names if name is not None)
    return dict(sorted(counts.items()))


Side = Literal["onprem", "cloud"]
KEYSPACE = (
    "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication ="
    " {{'class': 'NetworkTopologyStrategy', '{dc}': 1}}"
)
TABLE = (
    "CREATE TABLE IF NOT EXISTS {table} (pk text PRIMARY KEY, col1 text, col2 decimal,"
    " col3 timestamp, col4 double, last_updated timestamp)"
)


@dataclass(frozen=True)
class Places:
    """The table in Cassandra, and the topic of each side."""

    table: str
    topics: Mapping[Side, str]


class Writer(Protocol):
    """Where records go."""

    def send(self, topic: str, values: list[bytes | None], keys: list[bytes | None]) -> None: ...

    def flush(self) -> None: ...


def prepare(cassandra: Cassandra, table: str) -> None:
    """Keyspace and table, where they are not there yet."""
    keyspace = table.partition(".")[0]
    dc = cassandra.place.local_dc
    cassandra.execute(KEYSPACE.format(keyspace=keyspace, dc=dc))
    cassandra.execute(TABLE.format(table=table))


def send_wave(
    cassandra: Cassandra, writer: Writer, places: Places, planting: Planting, phase: Phase
) -> tuple[int, Counter[str]]:
    """Rows, and messages by topic; the rows of some keys, then their messages, then the next."""
    rows, messages = 0, Counter[str]()
    for keys in planting.parts(phase):
        written = planting.writes(phase, utc_now(), keys)
        rows += cassandra.write_many(_insert(places.table), [astuple(row) for row in written])
        for side, topic in places.topics.items():
            said = [m for m in planting.messages(phase, keys) if m.side == side]
            writer.send(topic, [m.value for m in said], [m.key for m in said])
            messages[topic] += len(said)
        writer.flush()
    return rows, messages


def _insert(table: str) -> str:
    names = ("pk", *COLUMNS, "last_updated")
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"
