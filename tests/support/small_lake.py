"""A small lake whose jobs are played by hand, without Spark: tables, ledger and certificate."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from tests.support.recheck import recheck_certificate

from headgate.checks.certificate import Certificate, run_certification, write
from headgate.settings import Settings
from headgate.store.model import Intent, LedgerRow, Range
from headgate.store.ops import OpsStore

NOW = datetime(2024, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
MANIFEST = """
manifest_version: 1
name: orders
topic: ${TOPIC}
dlq_topic: orders-dlq
bronze_table: bronze.orders
silver_table: silver.orders
event_ts_col: at
ts_format: "yyyy-MM-dd HH:mm:ss"
partition_date_col: day
partition_date_expr: "CAST(at AS DATE)"
columns:
  - {name: id, kafka_type: BIGINT, bronze_type: BIGINT, silver_name: id, silver_type: BIGINT}
  - {name: at, kafka_type: STRING, bronze_type: TIMESTAMP(3), silver_name: at,
     silver_type: TIMESTAMP(3), is_event_ts: true}
dedup_key: [id]
quality_filters: ["id > 0"]
surrogate_key_fields: [id]
"""


class SmallLake:
    """Bronze, silver and dead letters of one dataset; what the folder already has is opened."""

    def __init__(self, root: Path, topic: str = "orders", bootstrap: str | None = None) -> None:
        folder = root / "datasets" / "orders"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "dataset.yml").write_text(MANIFEST)
        self.settings = Settings(root=root, topic=topic, bootstrap_servers=bootstrap)
        home = self.settings.home
        home.mkdir(exist_ok=True)
        self.catalog_file = home / "catalog.db"
        self._catalog = SqlCatalog(
            "lake", uri=f"sqlite:///{self.catalog_file}", warehouse=self.settings.warehouse
        )
        for namespace in ("bronze", "silver", "headgate"):
            self._catalog.create_namespace_if_not_exists(namespace)
        self.bronze = self._table("bronze.orders", rows_at([0]))
        self.silver = self._table("silver.orders", rows_at([0]))
        self.dead_letters = self._table("headgate.dead_letters", letters_at([0]))

    def _table(self, name: str, like: pa.Table) -> Table:
        return self._catalog.create_table_if_not_exists(name, schema=like.schema)

    def drop(self, name: str) -> None:
        self._catalog.drop_table(name)

    def close(self) -> None:
        self._catalog.close()

    def settle(
        self,
        job: str,
        range_: Range,
        table: Table,
        gaps: int = 0,
        at: datetime = NOW,
        **outcomes: int,
    ) -> None:
        read = sum(outcomes.values())
        written = {table.name(): table.current_snapshot()}
        if outcomes.get("refused"):
            written["headgate", "dead_letters"] = self.dead_letters.current_snapshot()
        named = {".".join(("lake", *t)): s.snapshot_id for t, s in written.items() if s}
        with OpsStore.open(self.settings.ops_store_url) as store:
            intent = store.begin(Intent(None, job, 1, range_, ("r",), at, 0))
            row = LedgerRow(
                None, job, 1, range_, ("r",), at, 0, read, read + gaps, gaps, outcomes, named,
                datetime.now(UTC),
            )  # fmt: skip
            store.settle(intent, row)

    def certify(self) -> tuple[Certificate, subprocess.CompletedProcess[str]]:
        certificate = run_certification(self.settings)
        write(certificate, self.proof)
        return certificate, self.recheck("--catalog", str(self.catalog_file))

    @property
    def proof(self) -> Path:
        return self.settings.home / "certificates" / "proof.json"

    def recheck(self, *options: str) -> subprocess.CompletedProcess[str]:
        if self.settings.bootstrap_servers:
            options += ("--bootstrap", self.settings.bootstrap_servers)
        return recheck_certificate(self.proof, *options)


def rows_at(offsets: Sequence[int], at: datetime = NOW) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([None if n % 7 == 0 else n for n in offsets], pa.int64()),
            "kafka_topic": ["orders"] * len(offsets),
            "kafka_partition": pa.array([0] * len(offsets), pa.int32()),
            "kafka_offset": pa.array(offsets, pa.int64()),
            "ingestion_ts": pa.array([at] * len(offsets), pa.timestamp("us", tz="UTC")),
        }
    )


def letters_at(offsets: Sequence[int], at: datetime = NOW) -> pa.Table:
    names = [{"ingestion_ts": "refused_at"}.get(name, name) for name in rows_at([]).column_names]
    letters = rows_at(offsets, at).rename_columns(names)
    return letters.append_column("job", pa.array(["bronze-orders"] * len(offsets)))


def job_marker(job: str) -> Mapping[str, str]:
    return {"headgate.job": job}


def fill(pipe: SmallLake, topic_id: str = "t1", first: int = 0) -> SmallLake:
    """Twelve offsets: nine rows, one dead letter, one tombstone, one gap; silver keeps seven."""
    rows = [first + n for n in range(9)]
    pipe.bronze.append(rows_at(rows), snapshot_properties=dict(job_marker("bronze-orders")))
    letters = letters_at([first + 9])
    pipe.dead_letters.append(letters, snapshot_properties=dict(job_marker("bronze-orders")))
    pipe.silver.append(rows_at(rows[:7]), snapshot_properties=dict(job_marker("silver-orders")))
    source = f"kafka:{pipe.settings.topic}"
    range_ = Range(source, topic_id, {"0": first}, {"0": first + 12})
    pipe.settle("bronze-orders", range_, pipe.bronze, gaps=1, accepted=9, refused=1, tombstone=1)
    snapshot = pipe.bronze.current_snapshot()
    assert snapshot is not None
    table = Range("table:bronze.orders", "u1", {}, {"snapshot": snapshot.snapshot_id})
    pipe.settle("silver-orders", table, pipe.silver, kept=7, duplicate=1, filtered=1)
    return pipe


def fill_again(pipe: SmallLake) -> None:
    """Twelve more offsets: four rows, seven dead letters, a gap; silver keeps all four."""
    rows = [12, 13, 14, 15]
    pipe.bronze.append(rows_at(rows, LATER), snapshot_properties=dict(job_marker("bronze-orders")))
    letters = letters_at(range(16, 23), LATER)
    pipe.dead_letters.append(letters, snapshot_properties=dict(job_marker("bronze-orders")))
    pipe.silver.append(rows_at(rows, LATER), snapshot_properties=dict(job_marker("silver-orders")))
    before, now = (snapshot.snapshot_id for snapshot in pipe.bronze.snapshots()[-2:])
    range_ = Range("kafka:orders", "t1", {"0": 12}, {"0": 24})
    pipe.settle("bronze-orders", range_, pipe.bronze, gaps=1, at=LATER, accepted=4, refused=7)
    table = Range("table:bronze.orders", "u1", {"snapshot": before}, {"snapshot": now})
    pipe.settle("silver-orders", table, pipe.silver, at=LATER, kept=4)
