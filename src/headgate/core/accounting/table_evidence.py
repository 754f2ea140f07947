"""Gather what a table holds now: rows, content hash, history, rows by batch, and what was certified of it before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from headgate.core.accounting.evidence import CertifiedTable, Commit, TableEvidence
from headgate.core.lake.catalog import Snapshot, TableLocation, read_snapshots
from headgate.core.lake.duckdb_reader import Lake, quoted, scan
from headgate.core.sql.fragments import DEAD_LETTERS_TABLE

if TYPE_CHECKING:
    from headgate.core.lake.duckdb_reader import Lake
    from headgate.core.ledger.ops_store import OpsStore

# When a batch ran says nothing about what a row holds, so a replay may differ in these.
LEFT_OUT = frozenset({"ingestion_ts", "refused_at"})


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def table_evidence(
    lake: Lake,
    table: str,
    where: str = "",
    *,
    time: str = "",
    until: datetime | None = None,
    certified: CertifiedTable | None = None,
) -> TableEvidence | None:
    """What the table holds now; None when there is no such table.

    `time` is the column with a row's batch time, in a table whose rows never change.
    """
    if not table or not lake.exists(table):
        return None
    location = lake.location(table)
    columns = content_columns(lake, scan(location))
    content = _content(lake, content_sql(scan(location), columns, where))
    evidence = TableEvidence(
        name=table,
        rows=content[0],
        content_hash=content[1],
        columns=columns,
        metadata_file=metadata_file(location),
        snapshot_id=location.snapshot_id,
        committed_at=location.committed_at,
        commits=commits(read_snapshots(location.metadata)),
        where=where,
        batches=_count_by_batch(lake, scan(location), time, where) if time else None,
        until=until,
        certified=certified,
    )
    return replace(evidence, certified_now=_certified_now(lake, scan(location), evidence, time))


def _content(lake: Lake, sql: str) -> tuple[int, str]:
    rows, content_hash = lake.query(sql)[0]
    return cast("int", rows), f"{int(str(content_hash)):x}"


def _count_by_batch(lake: Lake, scanned: str, time: str, where: str) -> dict[datetime, int]:
    sql = f"SELECT epoch_us({time}), count(*) FROM {scanned} WHERE {where or True} GROUP BY 1"
    rows = cast("list[tuple[int | None, int]]", lake.query(sql))
    return {EPOCH + timedelta(microseconds=at or 0): count for at, count in rows}


def _certified_now(
    lake: Lake, scanned: str, table: TableEvidence, time: str
) -> tuple[int, str] | None:
    """Count and content hash of the rows that were certified; None where they cannot be told apart."""
    before = table.certified
    if before is None or not set(before.columns) <= set(table.columns):
        return None
    is_whole = table.until == before.until
    if is_whole and before.columns == table.columns:
        return table.rows, table.content_hash
    if not is_whole and not time:
        return None
    tests = [table.where] if table.where else []
    if time:
        tests.append(f"{time} <= TIMESTAMPTZ {quoted(before.until.isoformat())}")
    return _content(lake, content_sql(scanned, before.columns, " AND ".join(tests)))


def metadata_file(location: TableLocation) -> str:
    prefix = "v" if location.version.isdigit() else ""
    return f"{location.folder}/metadata/{prefix}{location.version}.metadata.json"


def content_columns(lake: Lake, scanned: str) -> tuple[str, ...]:
    found = lake.query(f"SELECT column_name FROM (DESCRIBE SELECT * FROM {scanned})")
    return tuple(
        sorted(name for (name,) in cast("list[tuple[str]]", found) if name not in LEFT_OUT)
    )


def content_sql(scanned: str, columns: Sequence[str], where: str = "") -> str:
    """Count and content hash: a sum over rows of 60 bits of MD5, so the order does not matter."""
    names = ('"' + column.replace('"', '""') + '"' for column in columns)
    texts = ", ".join(f"coalesce(CAST({name} AS VARCHAR), chr(30))" for name in names)
    digest = f"substr(md5(concat_ws(chr(31), {texts})), 1, 15)"
    total = f"coalesce(sum(CAST('0x' || {digest} AS BIGINT)), 0)"
    return f"SELECT count(*), {total} FROM {scanned}" + (f" WHERE {where}" if where else "")


def commits(snapshots: Sequence[Snapshot]) -> tuple[Commit, ...]:
    """The table's history, each snapshot with the staged one it was published from."""
    by_id = {str(snapshot.id): snapshot for snapshot in snapshots}

    def commit(snapshot: Snapshot) -> Commit:
        source = by_id.get(snapshot.summary.get("source-snapshot-id", ""))
        return Commit(
            snapshot.id,
            snapshot.operation,
            snapshot.summary,
            source.summary if source else None,
            snapshot.parent_id,
        )

    return tuple(commit(snapshot) for snapshot in snapshots if snapshot.in_history)


def named_snapshots(store: OpsStore) -> frozenset[int]:
    """The snapshots that ledger rows name.

    To be asked after the tables and then the unsettled intents were read: a batch that is settled
    in between is then either still open or named.
    """
    return frozenset(id_ for row in store.ledger() for id_ in row.snapshots.values())


def dead_letters_of(lake: Lake, job: str) -> int:
    """The dead letters of a job in their table."""
    return sum(letters_by_batch(lake, job).values())


def letters_by_batch(lake: Lake, job: str) -> Mapping[datetime, int]:
    from headgate.core.lake.duckdb_reader import quoted

    if not lake.exists(DEAD_LETTERS_TABLE):
        return {}
    letters = f"{lake.scan_sql(DEAD_LETTERS_TABLE)} WHERE job = {quoted(job)}"
    rows = lake.query(f"SELECT epoch_us(refused_at), count(*) FROM {letters} GROUP BY 1")
    return {EPOCH + timedelta(microseconds=int(str(at))): int(str(n)) for at, n in rows}
