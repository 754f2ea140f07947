"""Gathers what the account of a dataset rests on: the ledger, the tables, the broker."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import cast

from headgate.checks.broker import ask_broker, counted_again
from headgate.checks.certified import read_certified
from headgate.checks.facts import AcceptedGap, CertifiedTable, Commit, Evidence, TableEvidence
from headgate.checks.lake import Lake, quoted, scan
from headgate.checks.metadata import Snapshot, TableLocation, read_snapshots
from headgate.checks.origins import repeated_origins
from headgate.compile.fragments import DEAD_LETTERS, DEAD_LETTERS_TABLE, job_name
from headgate.settings import Settings
from headgate.spec.dataset import Dataset
from headgate.spec.loader import available_datasets, find_dataset, load_dataset
from headgate.store.model import ACTIVE, LedgerRow
from headgate.store.ops import OpsStore

BRONZE, SILVER, BACKFILL = "bronze", "silver", "backfill"
# When a batch ran says nothing about what a row holds, so a replay may differ in these.
LEFT_OUT = frozenset({"ingestion_ts", "refused_at"})
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOOKS, SECONDS_BETWEEN_LOOKS = 20, 0.5


@dataclass(frozen=True)
class Books:
    """The ledger as it stood at one moment."""

    rows: tuple[LedgerRow, ...]
    open_batches: int
    busy: bool
    streaming: bool = False
    gaps: tuple[AcceptedGap, ...] = ()
    certified: Mapping[str, CertifiedTable] = field(default_factory=dict[str, CertifiedTable])

    def of(self, job: str) -> tuple[LedgerRow, ...]:
        return tuple(row for row in self.rows if row.job == job)

    @property
    def settled(self) -> frozenset[int]:
        return frozenset(id_ for row in self.rows for id_ in row.snapshots.values())


def subjects_in(store: OpsStore, kind: str) -> tuple[str, ...]:
    """The datasets, tables, pairs or topics whose job of this kind has a ledger."""
    prefix = job_name(kind, "")
    jobs = {row.job for row in store.ledger() if row.job.startswith(prefix)}
    return tuple(sorted(job.removeprefix(prefix) for job in jobs))


@dataclass(frozen=True)
class Subject:
    """What is accounted for: a dataset's topic and tables, by its manifest or by the ledger."""

    name: str
    topic: str
    bronze_table: str
    silver_table: str
    is_declared: bool = True


def declared(settings: Settings, name: str) -> Dataset:
    return load_dataset(find_dataset(settings.root, name), settings.topics_of(name)).value


def subject_of(settings: Settings, store: OpsStore, name: str) -> Subject:
    """The dataset as declared; one that was removed, as its ledger rows name its tables."""
    rows = store.ledger(job_name(BRONZE, name))
    if rows and name not in available_datasets(settings.root):
        silver = _table_named_by(store.ledger(job_name(SILVER, name)))
        topic = topic_of(rows) or ""
        return Subject(name, topic, _table_named_by(rows), silver, is_declared=False)
    dataset = declared(settings, name)
    return Subject(name, dataset.topic, dataset.bronze_table, dataset.silver_table)


def _table_named_by(rows: Sequence[LedgerRow]) -> str:
    """The table that the newest batch has written to, dead letters aside; empty when none has."""
    names = [name for row in rows for name in row.snapshots if name != DEAD_LETTERS]
    return names[-1].partition(".")[2].replace("`", "") if names else ""


def gather(
    settings: Settings, store: OpsStore, lake: Lake, name: str, *, however_many: bool = False
) -> Evidence:
    """All evidence of one dataset; `however_many` records there are, they are counted again."""
    found = _settled(settings, store, lake, subject_of(settings, store, name))
    return counted_again(settings, found, however_many=however_many)


def _settled(settings: Settings, store: OpsStore, lake: Lake, dataset: Subject) -> Evidence:
    """The evidence of one moment: looks again while batches are being settled."""
    name = dataset.name
    books = _books(store, name)
    for _ in range(LOOKS):
        evidence, before = _look(settings, lake, dataset, books), books
        books = _books(store, name)
        if books == before and not (books.busy and books.open_batches):
            return evidence
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return _look(settings, lake, dataset, books)


def _books(store: OpsStore, name: str) -> Books:
    jobs = [job_name(kind, name) for kind in (BRONZE, SILVER, BACKFILL)]
    open_ = sum(len(store.open_intents(job)) for job in jobs)
    under_way = [run for job in jobs for run in store.runs(job, states=ACTIVE)]
    streaming = any(run.mode == "streaming" for run in under_way)
    rows = store.ledger()
    gaps = tuple(
        AcceptedGap(row, _accepted_by(store, row))
        for row in rows
        if row.job == jobs[0] and row.is_accepted_gap
    )
    certified = read_certified(store, name)
    return Books(rows, open_, bool(under_way), streaming, gaps, certified)


def _accepted_by(store: OpsStore, row: LedgerRow) -> str:
    """The run knows who asked for it, unless the ops store was lost since."""
    found = [run for run in store.runs(row.job) if run.number == row.run]
    return found[0].options.get("by", "") if found else "someone unknown"


def _look(settings: Settings, lake: Lake, dataset: Subject, books: Books) -> Evidence:
    job = job_name(BRONZE, dataset.name)
    bronze_ledger = books.of(job)
    topic = topic_of(bronze_ledger) or dataset.topic
    silver_ledger = books.of(job_name(SILVER, dataset.name))
    backfill_ledger = books.of(job_name(BACKFILL, dataset.name))
    until, silver_until = newest(bronze_ledger), newest((*silver_ledger, *backfill_ledger))
    before = books.certified
    bronze = table_evidence(
        lake, dataset.bronze_table, time="ingestion_ts", until=until, certified=before.get("bronze")
    )
    dead = table_evidence(
        lake,
        DEAD_LETTERS_TABLE,
        f"job = {quoted(job)}",
        time="refused_at",
        until=until,
        certified=before.get("dead_letters"),
    )
    silver = table_evidence(
        lake, dataset.silver_table, until=silver_until, certified=before.get("silver")
    )
    on_broker, why = ask_broker(settings, topic)
    return Evidence(
        dataset=dataset.name,
        topic=topic,
        streaming=books.streaming,
        bronze_ledger=bronze_ledger,
        silver_ledger=silver_ledger,
        backfill_ledger=backfill_ledger,
        open_batches=books.open_batches,
        settled=books.settled,
        bronze=bronze,
        silver=silver,
        dead_letters=dead,
        repeated_origins=repeated_origins(lake, bronze, dead, bronze_ledger),
        on_broker=on_broker,
        why_no_broker=why,
        gaps=books.gaps,
        declared_topic=dataset.topic,
        is_declared=dataset.is_declared,
    )


def topic_of(rows: Sequence[LedgerRow]) -> str | None:
    return rows[-1].range.source.removeprefix("kafka:") if rows else None


def newest(rows: Sequence[LedgerRow]) -> datetime | None:
    """The time of the newest batch; times of one job's batches rise."""
    return max((row.batch_time for row in rows), default=None)


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
