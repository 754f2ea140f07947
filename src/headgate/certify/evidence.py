"""Gathers the evidence for a dataset's account: ledger rows, tables with content hashes, the topic, the last certificate.

While batches are being settled it looks again, up to 20 times, so that all evidence is of one moment.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, cast

from headgate.app import DECLARED_DATASET, load
from headgate.certify.account import Evidence
from headgate.certify.store import CertificateStore
from headgate.config.settings import Settings
from headgate.core.accounting.broker import ask_broker, recount
from headgate.core.accounting.evidence import AcceptedGap, CertifiedTable, TableEvidence
from headgate.core.accounting.table_evidence import table_evidence
from headgate.core.engine.run_options import TopicRunOptions
from headgate.core.lake.duckdb_reader import Lake, quoted
from headgate.core.ledger.model import ACTIVE, LedgerRow
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import DEAD_LETTERS, DEAD_LETTERS_TABLE, job_name
from headgate.declarations.project import available_datasets


def write_certified(
    store: OpsStore, dataset: str, tables: Mapping[str, TableEvidence], made_at: datetime
) -> None:
    """Keep what a certificate that holds has found, for the next one to compare with."""
    certified = {
        role: CertifiedTable(
            made_at, table.snapshot_id, table.rows, table.content_hash, table.columns, table.until
        )
        for role, table in tables.items()
        if table.until is not None
    }
    store.part(CertificateStore).write_certified(dataset, certified)


ORIGIN = "kafka_topic, kafka_partition, kafka_offset"


def repeated_origins(
    lake: Lake,
    bronze: TableEvidence | None,
    dead: TableEvidence | None,
    rows: Sequence[LedgerRow],
) -> int:
    """Origins that stand more than once in bronze and dead letters, or in no batch of `rows`."""
    tables = ((bronze, "ingestion_ts"), (dead, "refused_at"))
    parts = [
        f"SELECT {ORIGIN}, {at} AS read_at FROM {lake.scan_sql(table.name)} WHERE {table.where or True}"
        for table, at in tables
        if table is not None
    ]
    if not parts:
        return 0
    found = lake.query(repeated_sql(" UNION ALL ".join(parts), rows))
    return cast("int", found[0][0])


def repeated_sql(origins: str, rows: Sequence[LedgerRow]) -> str:
    """A row bears its batch's time, and so the id of the topic that the batch has read."""
    topic_ids = {row.batch_time: row.range.source_id for row in rows}
    if len(set(topic_ids.values())) < 2:  # then the topic is known without asking for the time
        named = f"SELECT *, '' AS topic_id FROM ({origins})"
    else:
        values = ", ".join(
            f"(TIMESTAMPTZ {quoted(at.isoformat())}, {quoted(id_)})"
            for at, id_ in topic_ids.items()
        )
        batches = f"(VALUES {values}) AS batch(read_at, topic_id)"
        named = f"SELECT * FROM ({origins}) LEFT JOIN {batches} USING (read_at)"
    repeated = "HAVING count(*) > 1 OR topic_id IS NULL"
    grouped = f"SELECT topic_id, {ORIGIN} FROM ({named}) GROUP BY ALL {repeated}"
    return f"SELECT count(*) FROM ({grouped})"


BRONZE, SILVER, BACKFILL = "bronze", "silver", "backfill"
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


class DeclaredDataset(Protocol):
    """What is taken of a dataset's manifest."""

    @property
    def name(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def dlq_topic(self) -> str: ...
    @property
    def bronze_table(self) -> str: ...
    @property
    def silver_table(self) -> str: ...


def declared(settings: Settings, name: str) -> DeclaredDataset:
    """The dataset as its manifest declares it."""
    return load(DECLARED_DATASET)(settings, name)


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
    certified = store.part(CertificateStore).read_certified(name)
    return Books(rows, open_, bool(under_way), streaming, gaps, certified)


def _accepted_by(store: OpsStore, row: LedgerRow) -> str:
    """The run knows who asked for it, unless the ops store was lost since."""
    runs = [run for run in store.runs(row.job) if run.number == row.run]
    return TopicRunOptions.of(runs[0]).accepted_by if runs else "someone unknown"


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


def counted_again(settings: Settings, evidence: Evidence, *, however_many: bool) -> Evidence:
    """The evidence with the topic's records counted once more, where the broker has them."""
    if evidence.confirmed is None or not evidence.bronze_ledger:
        return evidence
    found = recount(
        settings.need("bootstrap_servers"),
        evidence.topic,
        evidence.bronze_ledger,
        evidence.confirmed,
        however_many=however_many,
    )
    return replace(evidence, recount=found)
