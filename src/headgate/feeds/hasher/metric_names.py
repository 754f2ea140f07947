"""Names of the hasher's metrics, until the one table has them."""

from __future__ import annotations

from headgate.metrics.names import BY_NAME as KNOWN
from headgate.metrics.names import DEAD_LETTERS, LAG, Kind, Metric

__all__ = ["DEAD_LETTERS", "LAG", "Metric"]


def _metric(name: str, kind: Kind, unit: str, help: str, labels: tuple[str, ...] = ()) -> Metric:
    return KNOWN.get(name) or Metric(name, kind, unit, ("table", *labels), help)


CASSANDRA_TIMEOUTS = _metric(
    "dq_cassandra_timeout_total", "counter", "records", "Records lost to Cassandra's silence."
)
PARTIAL_ROWS = _metric(
    "dq_partial_row_total", "counter", "rows", "Rows of the cloud with a null in a hashed column."
)
SCHEMA_DRIFT = _metric(
    "dq_schema_drift_detected_total", "counter", "columns", "Columns that no contract has."
)
COLUMNS_REMOVED = _metric(
    "dq_column_removed_total", "counter", "columns", "Columns of a contract that a table lost."
)
HASHER_RECORDS = _metric(
    "headgate_hasher_records_total", "counter", "records", "What became of records.", ("outcome",)
)
HASHER_READINGS = _metric(
    "headgate_hasher_readings_total", "counter", "readings", "Readings sent to the cloud's topic."
)
HASHER_LOOKUPS = _metric("headgate_hasher_lookups_total", "counter", "lookups", "Rows asked for.")
HASHER_LOOKUP_SECONDS = _metric(
    "headgate_hasher_lookup_seconds_total", "counter", "seconds", "Time that lookups took."
)
HASHER_IN_FLIGHT = _metric("headgate_hasher_in_flight", "gauge", "lookups", "Lookups under way.")
HASHER_PAUSED = _metric("headgate_hasher_paused", "gauge", "flag", "1 while Cassandra is away.")
HASHER_REREADS = _metric("headgate_hasher_rereads", "gauge", "keys", "Keys to be read again.")
BY_NAME = {
    metric.name: metric
    for metric in (CASSANDRA_TIMEOUTS, PARTIAL_ROWS, SCHEMA_DRIFT, COLUMNS_REMOVED)
}
