"""The certificate and its independent re-check over real Iceberg tables; no Spark is needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from headgate.checks.certificate import Certificate, broken, run_certification, write
from headgate.settings import Settings
from headgate.store.model import Intent, LedgerRow, Range
from headgate.store.ops import OpsStore

ROOT = Path(__file__).parents[2]
NOW = datetime(2024, 1, 1, tzinfo=UTC)
MANIFEST = """
manifest_version: 1
name: orders
topic: orders
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


class Pipe:
    """A small lake whose jobs are played by hand."""

    def __init__(self, root: Path) -> None:
        folder = root / "datasets" / "orders"
        folder.mkdir(parents=True)
        (folder / "dataset.yml").write_text(MANIFEST)
        self.settings = Settings(root=root)
        home = self.settings.home
        home.mkdir()
        self.catalog_file = home / "catalog.db"
        self._catalog = SqlCatalog(
            "lake", uri=f"sqlite:///{self.catalog_file}", warehouse=self.settings.warehouse
        )
        for namespace in ("bronze", "silver", "headgate"):
            self._catalog.create_namespace(namespace)
        self.bronze = self._table("bronze.orders", _rows([0]))
        self.silver = self._table("silver.orders", _rows([0]))
        self.dead_letters = self._table("headgate.dead_letters", _letters([0]))

    def _table(self, name: str, like: pa.Table) -> Table:
        return self._catalog.create_table(name, schema=like.schema)

    def close(self) -> None:
        self._catalog.close()

    def settle(self, job: str, range_: Range, table: Table, gaps: int = 0, **outcomes: int) -> None:
        read = sum(outcomes.values())
        snapshot = table.current_snapshot()
        named = {"t": snapshot.snapshot_id} if snapshot else {}
        with OpsStore.open(self.settings.ops_store_url) as store:
            intent = store.begin(Intent(None, job, 1, range_, ("r",), NOW, 0))
            row = LedgerRow(
                None, job, 1, range_, ("r",), NOW, 0, read, read + gaps, gaps, outcomes, named,
                datetime.now(UTC),
            )  # fmt: skip
            store.settle(intent, row)

    def certify(self) -> tuple[Certificate, subprocess.CompletedProcess[str]]:
        certificate = run_certification(self.settings)
        file = write(certificate, self.settings.home / "certificates" / "proof.json")
        command = [sys.executable, str(ROOT / "scripts" / "recheck_certificate.py"), str(file)]
        command += ["--catalog", str(self.catalog_file)]
        return certificate, subprocess.run(command, capture_output=True, text=True, check=False)


def _rows(offsets: Sequence[int]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([None if n % 7 == 0 else n for n in offsets], pa.int64()),
            "kafka_topic": ["orders"] * len(offsets),
            "kafka_partition": pa.array([0] * len(offsets), pa.int32()),
            "kafka_offset": pa.array(offsets, pa.int64()),
            "ingestion_ts": pa.array([NOW] * len(offsets), pa.timestamp("us", tz="UTC")),
        }
    )


def _letters(offsets: Sequence[int]) -> pa.Table:
    return _rows(offsets).append_column("job", pa.array(["bronze-orders"] * len(offsets)))


def _marker(job: str) -> Mapping[str, str]:
    return {"headgate.job": job}


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    """Twelve offsets: nine rows, one dead letter, one tombstone, one gap; silver keeps seven."""
    pipe = Pipe(tmp_path)
    pipe.bronze.append(_rows(range(9)), snapshot_properties=dict(_marker("bronze-orders")))
    pipe.dead_letters.append(_letters([9]), snapshot_properties=dict(_marker("bronze-orders")))
    pipe.silver.append(_rows(range(7)), snapshot_properties=dict(_marker("silver-orders")))
    topic = Range("kafka:orders", "t1", {"0": 0}, {"0": 12})
    pipe.settle("bronze-orders", topic, pipe.bronze, gaps=1, accepted=9, refused=1, tombstone=1)
    snapshot = pipe.bronze.current_snapshot()
    assert snapshot is not None
    table = Range("table:bronze.orders", "u1", {}, {"snapshot": snapshot.snapshot_id})
    pipe.settle("silver-orders", table, pipe.silver, kept=7, duplicate=1, filtered=1)
    yield pipe
    pipe.close()


def test_a_sound_pipeline_is_certified_and_the_script_agrees(pipe: Pipe) -> None:
    certificate, again = pipe.certify()
    assert broken(certificate) == ()
    assert again.returncode == 0, again.stdout + again.stderr
    assert "FAIL" not in again.stdout


def _row_added_behind_our_back(pipe: Pipe) -> None:
    pipe.bronze.append(_rows([3]))


def _row_deleted(pipe: Pipe) -> None:
    pipe.silver.delete("kafka_offset = 2")


def _dead_letter_of_an_accepted_record(pipe: Pipe) -> None:
    pipe.dead_letters.append(_letters([1]), snapshot_properties=dict(_marker("bronze-orders")))


def _offsets_skipped(pipe: Pipe) -> None:
    skipped = Range("kafka:orders", "t1", {"0": 14}, {"0": 15})
    pipe.settle("bronze-orders", skipped, pipe.bronze, tombstone=1)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_row_added_behind_our_back, "not ours"),
        (_row_deleted, "silver.orders 6 ≠ ledger 7"),
        (_dead_letter_of_an_accepted_record, "stand more than once"),
        (_offsets_skipped, "skips"),
    ],
)
def test_damage_is_found_by_both(pipe: Pipe, damage: Callable[[Pipe], None], words: str) -> None:
    damage(pipe)
    certificate, again = pipe.certify()
    assert words in "\n".join(broken(certificate))
    assert again.returncode == 5, again.stdout + again.stderr
    failed = [line for line in again.stdout.splitlines() if line.startswith("FAIL")]
    assert len(failed) > 1  # not only because the certificate says so itself


def test_a_certificate_that_was_touched_up_is_found_out(pipe: Pipe) -> None:
    pipe.certify()
    ledger = pipe.settings.home / "certificates" / "proof.ledger.jsonl"
    ledger.write_text(ledger.read_text().replace('"accepted":9', '"accepted":8'))
    file = pipe.settings.home / "certificates" / "proof.json"
    again = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "recheck_certificate.py"), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 5
    assert "FAIL  the exported ledger is the certified one" in again.stdout
