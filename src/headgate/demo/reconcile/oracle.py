"""What was planted, in two files: every key with what must come of it, and the sums."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.demo.reconcile.model import BusinessRow, Expected, Planned
from headgate.demo.reconcile.pairs_planting import Order, Planting
from headgate.errors import UsageError

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
