"""Names of metrics that rules and aggregates cannot have, since every table's records have them.

Without their `dq_`; what each counts stands in `headgate.metrics.names`, and a test holds the two
against each other.
"""

from __future__ import annotations

TAKEN_METRICS = frozenset(
    {
        "rows_total",
        "clean_total",
        "error_total",
        "warn_total",
        "info_total",
        "rule_matches_total",
        "windows_open",
        "windows_closed_total",
        "windows_late_total",
        "unique_keys",
        "keys",
        "reconciled_within_grace",
        "recently_within_grace",
        "slo_met",
        "audit_behind",
        "smt_errors_total",
        "smt_missing_fields_total",
        "state_rows",
        "state_bytes",
        "backpressure",
        "backpressure_high",
        "kafka_lag",
        "dlq_records_total",
        "cassandra_timeout_total",
        "partial_row_total",
        "schema_drift_detected_total",
        "column_removed_total",
    }
)
