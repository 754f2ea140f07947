"""A small lake of Iceberg tables and ledger rows, filled without Spark, for tests of the certificate."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from tests.support.recheck import recheck_certificate

from headgate.certify.certificate import Certificate, run_certification, write
from headgate.config.settings import Settings
from headgate.core.ledger.model import Intent, LedgerRow
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import Range, TableRange, TopicRange

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


class LakeHarness:
    """A lake with bronze, silver and dead letters of one dataset, its ops store and its certificate.

    Tests append rows and settle ledger rows themselves, in place of the jobs. What the folder
    already has is opened.
    """

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
        self.bronze = self._table("bronze.orders", lake_rows([0]))
        self.silver = self._table("silver.orders", lake_rows([0]))
        self.dead_letters = self._table("headgate.dead_letters", dead_letter_rows([0]))

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


def lake_rows(offsets: Sequence[int], at: datetime = NOW) -> pa.Table:
    """Rows with these Kafka offsets."""
    return pa.table(
        {
            "id": pa.array([None if n % 7 == 0 else n for n in offsets], pa.int64()),
            "kafka_topic": ["orders"] * len(offsets),
            "kafka_partition": pa.array([0] * len(offsets), pa.int32()),
            "kafka_offset": pa.array(offsets, pa.int64()),
            "ingestion_ts": pa.array([at] * len(offsets), pa.timestamp("us", tz="UTC")),
        }
    )


def dead_letter_rows(offsets: Sequence[int], at: datetime = NOW) -> pa.Table:
    """Dead letters of these Kafka offsets."""
    names = [{"ingestion_ts": "refused_at"}.get(name, name) for name in lake_rows([]).column_names]
    letters = lake_rows(offsets, at).rename_columns(names)
    return letters.append_column("job", pa.array(["bronze-orders"] * len(offsets)))


def commit_metadata(job: str) -> Mapping[str, str]:
    """The snapshot properties by which a commit names its job."""
    return {"headgate.job": job}


def fill_lake(lake: LakeHarness, topic_id: str = "t1", first: int = 0) -> LakeHarness:
    """Twelve offsets: nine rows, one dead letter, one tombstone, one gap; silver keeps seven."""
    rows = [first + n for n in range(9)]
    lake.bronze.append(lake_rows(rows), snapshot_properties=dict(commit_metadata("bronze-orders")))
    letters = dead_letter_rows([first + 9])
    lake.dead_letters.append(letters, snapshot_properties=dict(commit_metadata("bronze-orders")))
    lake.silver.append(
        lake_rows(rows[:7]), snapshot_properties=dict(commit_metadata("silver-orders"))
    )
    topic = str(lake.settings.topic)
    range_ = TopicRange(topic, topic_id, {"0": first}, {"0": first + 12})
    lake.settle("bronze-orders", range_, lake.bronze, gaps=1, accepted=9, refused=1, tombstone=1)
    snapshot = lake.bronze.current_snapshot()
    assert snapshot is not None
    table = TableRange("bronze.orders", "u1", None, snapshot.snapshot_id)
    lake.settle("silver-orders", table, lake.silver, kept=7, duplicate=1, filtered=1)
    return lake


def fill_second_batch(lake: LakeHarness) -> None:
    """Twelve more offsets: four rows, seven dead letters, a gap; silver keeps all four."""
    rows = [12, 13, 14, 15]
    lake.bronze.append(
        lake_rows(rows, LATER), snapshot_properties=dict(commit_metadata("bronze-orders"))
    )
    letters = dead_letter_rows(range(16, 23), LATER)
    lake.dead_letters.append(letters, snapshot_properties=dict(commit_metadata("bronze-orders")))
    lake.silver.append(
        lake_rows(rows, LATER), snapshot_properties=dict(commit_metadata("silver-orders"))
    )
    before, now = (snapshot.snapshot_id for snapshot in lake.bronze.snapshots()[-2:])
    range_ = TopicRange("orders", "t1", {"0": 12}, {"0": 24})
    lake.settle("bronze-orders", range_, lake.bronze, gaps=1, at=LATER, accepted=4, refused=7)
    table = TableRange("bronze.orders", "u1", before, now)
    lake.settle("silver-orders", table, lake.silver, at=LATER, kept=4)
