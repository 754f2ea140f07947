"""Does every origin stand once? A topic that was made again has the same offsets a second time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from headgate.core.accounting.facts import TableEvidence
from headgate.core.lake.duckdb_reader import Lake, quoted
from headgate.core.ledger.store_model import LedgerRow

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
