"""What a stream left to measure: how long its records waited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from headgate.certify.checks_evidence import declared
from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake
from headgate.core.ledger.ops_store import OpsStore


@dataclass(frozen=True)
class Latency:
    """Seconds from a record's timestamp to the commit that made it visible in bronze."""

    records: int
    p50: float
    p95: float
    most: float


def latency(home: Settings, store: OpsStore, job: str, until: float) -> Latency:
    """Over the records that came before `until`; a batch is known by its time, which its rows bear."""
    table = declared(home, home.need("dataset")).bronze_table
    seen = ", ".join(
        f"(epoch_us(TIMESTAMPTZ '{row.batch_time.isoformat()}'), {row.committed_at.timestamp()})"
        for row in store.ledger(job)
    )
    with Lake.open(home) as lake:
        sql = f"""
            SELECT count(*), quantile_cont(waited, 0.5), quantile_cont(waited, 0.95), max(waited)
            FROM (
                SELECT committed - epoch(kafka_timestamp) AS waited
                FROM {lake.scan_sql(table)}
                JOIN (VALUES {seen}) AS batch(began, committed) ON began = epoch_us(ingestion_ts)
                WHERE epoch(kafka_timestamp) < {until}
            )"""
        records, *figures = cast("tuple[int, float, float, float]", lake.query(sql)[0])
    return Latency(records, *(round(figure or 0.0, 2) for figure in figures))
