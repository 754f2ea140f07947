"""Reads the verdicts, status counts and on-time share of a pair from its tables, with DuckDB and without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake, Row, quoted
from headgate.errors import UnavailableError
from headgate.quality.spec.reconcile_section import OVER
from headgate.reconcile.compile.states import SIDES
from headgate.reconcile.decision_table import ROLLUPS, Rollup, statuses

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The newest versions decide which row speaks of a key now; of the same versions the last to be told.
NEWEST = (
    "row_number() OVER (PARTITION BY pk ORDER BY onprem_version DESC NULLS LAST,"
    " cloud_version DESC NULLS LAST, processing_time DESC, settled DESC)"
)
_VERDICT = (
    "pk, dq_status, epoch_us(onprem_version), epoch_us(cloud_version), hash_onprem, hash_cloud,"
    " settled, epoch_us(processing_time), verdict, provisional, dq_reason, epoch_us(deadline), rollup,"
    " action"
)


@dataclass(frozen=True)
class CurrentVerdict:
    """What was last said of a key."""

    pk: str
    status: str
    onprem_version: datetime | None
    cloud_version: datetime | None
    hash_onprem: str | None
    hash_cloud: str | None
    settled: bool
    batch_time: datetime
    verdict: str
    provisional: str | None
    reason: str
    deadline: datetime
    rollup: str
    # On-prem's newest; None where it has said nothing.
    action: str | None = None


@dataclass(frozen=True)
class StatusCount:
    dq_status: str
    rollup: str
    cnt: int


@dataclass(frozen=True)
class Standing:
    """A pair at one moment: keys by status and roll-up, what waits, and who was in time."""

    table: str
    keys: int
    statuses: tuple[StatusCount, ...]
    rollup: dict[Rollup, int]
    overdue: int
    oldest_pending: datetime | None
    settled: int
    within_grace: int
    settled_lately: int = 0
    within_lately: int = 0

    @property
    def share_within(self) -> float | None:
        """The share of settled keys whose sides met within window and grace; None without any."""
        return self.within_grace / self.settled if self.settled else None

    @property
    def share_lately(self) -> float | None:
        """The same of those settled lately; of all, where none was."""
        return (
            self.within_lately / self.settled_lately if self.settled_lately else self.share_within
        )


def results_table(table: str) -> str:
    return f"dq.results_{table}"


def states_table(table: str) -> str:
    return f"dq.states_{table}"


def current_verdicts(
    settings: Settings,
    table: str,
    verdicts: Sequence[str] = (),
    keys: Sequence[str] = (),
    limit: int | None = None,
) -> list[CurrentVerdict]:
    """The keys with one of these verdicts, or these keys whatever theirs; the oldest versions first.

    By verdict, not by the status that a rule may have given: what is missing stays missing under it.
    """
    with Lake.open(settings) as lake:
        return read_verdicts(lake, table, verdicts, keys, limit)


def read_verdicts(
    lake: Lake,
    table: str,
    verdicts: Sequence[str] = (),
    keys: Sequence[str] = (),
    limit: int | None = None,
) -> list[CurrentVerdict]:
    wanted = [f"pk IN ({_listed(keys)})"] if keys else []
    wanted += [f"verdict IN ({_listed(verdicts)})"] if verdicts else []
    where = f"WHERE {' AND '.join(wanted)}" if wanted else ""
    most = "" if limit is None else f"LIMIT {int(limit)}"
    rows = lake.query(
        f"SELECT {_VERDICT} FROM ({_current(lake, table)}) {where}"
        f" ORDER BY onprem_version NULLS FIRST, pk {most}"
    )
    return [_verdict(row) for row in rows]


def standing(settings: Settings, table: str, now: datetime, lately: timedelta = OVER) -> Standing:
    """How the pair stands, by what was last told of each key."""
    with Lake.open(settings) as lake:
        return read_standing(lake, table, now, lately)


def read_standing(lake: Lake, table: str, now: datetime, lately: timedelta = OVER) -> Standing:
    micros = (now - _EPOCH) // timedelta(microseconds=1)
    recent = f"epoch_us(event_time) >= {micros - lately // timedelta(microseconds=1)}"
    rows = lake.query(
        "SELECT dq_status, rollup, count(*),"
        f" count(*) FILTER (WHERE NOT settled AND epoch_us(deadline) <= {micros}),"
        " epoch_us(min(deadline) FILTER (WHERE NOT settled)),"
        " count(*) FILTER (WHERE settled), count(*) FILTER (WHERE within_grace),"
        f" count(*) FILTER (WHERE settled AND {recent}),"
        f" count(*) FILTER (WHERE within_grace AND {recent})"
        f" FROM ({_current(lake, table)}) GROUP BY dq_status, rollup"
    )
    counts = sorted(
        (StatusCount(str(r[0]), str(r[1]), cast("int", r[2])) for r in rows), key=_in_order
    )
    oldest = [cast("int", row[4]) for row in rows if row[4] is not None]
    totals = [sum(cast("int", row[at]) for row in rows) for at in (2, 3, 5, 6, 7, 8)]
    return Standing(
        table=table,
        keys=totals[0],
        statuses=tuple(counts),
        rollup={name: sum(c.cnt for c in counts if c.rollup == name) for name in ROLLUPS},
        overdue=totals[1],
        oldest_pending=moment(min(oldest)) if oldest else None,
        settled=totals[2],
        within_grace=totals[3],
        settled_lately=totals[4],
        within_lately=totals[5],
    )


def _in_order(count: StatusCount) -> tuple[int, str]:
    known = list(statuses())
    return (
        known.index(count.dq_status) if count.dq_status in known else len(known)
    ), count.dq_status


def _current(lake: Lake, table: str) -> str:
    refuse_unless_reconciled(lake, table)
    scan = lake.scan_sql(results_table(table))
    return f"SELECT * FROM (SELECT *, {NEWEST} AS _nth FROM {scan}) WHERE _nth = 1"


def reconciled_tables(settings: Settings, tables: Sequence[str]) -> tuple[str, ...]:
    """Those of the pairs that have verdicts."""
    with Lake.open(settings) as lake:
        return tuple(table for table in tables if _is_reconciled(lake, table))


def refuse_unless_reconciled(lake: Lake, table: str) -> None:
    """Raise where the pair has no verdicts yet."""
    if not _is_reconciled(lake, table):
        raise UnavailableError(
            f"nothing of {table} is reconciled yet",
            why=f"the table {results_table(table)} does not exist",
            fix=f"headgate job run reconcile-{table}",
        )


def _is_reconciled(lake: Lake, table: str) -> bool:
    return lake.exists(results_table(table)) and lake.exists(states_table(table))


def flags_sql(states: str, window: timedelta) -> str:
    """Each key of a scan of states with `stale`, `conflict` and `late`, as the view judges them."""
    grouped = ", ".join(part for side in SIDES for part in _merged_side(side))
    stale = " OR ".join(f"coalesce({s}_end <> {s}_newest.place, FALSE)" for s in SIDES)
    conflict = " OR ".join(f"coalesce({s}_greatest.said <> ~{s}_lowest.said, FALSE)" for s in SIDES)
    micros = window // timedelta(microseconds=1)
    late = f"coalesce(abs(onprem_first.arrival - cloud_first.arrival) > {micros}, FALSE)"
    return (
        f"SELECT pk, {stale} AS stale, {conflict} AS conflict, {late} AS late"
        f" FROM (SELECT pk, {grouped} FROM {states} GROUP BY pk)"
    )


def _merged_side(side: str) -> tuple[str, ...]:
    """One side of the merge, in DuckDB: the greatest of structures, version first."""

    def greatest(name: str, **fields: str) -> str:
        listed = ", ".join(f"{field} := {sql}" for field, sql in fields.items())
        packed = f"struct_pack(version := {side}.version, {listed})"
        return f"max({packed}) FILTER (WHERE {side} IS NOT NULL) AS {side}_{name}"

    place = 'struct_pack(partition := {0}.partition, "offset" := {0}.offset)'
    return (
        greatest("newest", place=place.format(side)),
        greatest("first", arrival=f"-epoch_us({side}_first.read_at)"),
        f"max({place.format(f'{side}_end')}) FILTER (WHERE {side} IS NOT NULL) AS {side}_end",
        greatest("greatest", said=f"{side}_greatest.content"),
        greatest("lowest", said=f"~{side}_least.content"),
    )


def _listed(values: Sequence[str]) -> str:
    return ", ".join(quoted(value) for value in values)


def _verdict(row: Row) -> CurrentVerdict:
    return CurrentVerdict(
        pk=str(row[0]),
        status=str(row[1]),
        onprem_version=moment(row[2]),
        cloud_version=moment(row[3]),
        hash_onprem=cast("str | None", row[4]),
        hash_cloud=cast("str | None", row[5]),
        settled=bool(row[6]),
        batch_time=sure(row[7]),
        verdict=str(row[8]),
        provisional=cast("str | None", row[9]),
        reason=str(row[10]),
        deadline=sure(row[11]),
        rollup=str(row[12]),
        action=cast("str | None", row[13]),
    )


def moment(micros: object) -> datetime | None:
    """A time from microseconds since 1970."""
    return None if micros is None else sure(micros)


def sure(micros: object) -> datetime:
    return _EPOCH + timedelta(microseconds=cast("int", micros))
