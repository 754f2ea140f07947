"""The one table of metric names, and the rule by which the metric of a rule gets its three names.

A metric that a rule set calls `hash_mismatch` under the namespace `dq.cassandra` is
`dq.cassandra.hash_mismatch` where names have dots, `dq_hash_mismatch` where they are flat, and
`dq_hash_mismatch_total` for Prometheus. Nothing else spells a name: all of it is derived here.
`Family` is a metric with its values, as every reading gives them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge"]
PREFIX = "dq_"
TOTAL = "_total"
DIMENSIONS = ("env", "dc", "table", "topic")


@dataclass(frozen=True)
class Metric:
    """One name with what it counts; labels in the order they are written."""

    name: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    help: str


def _metric(name: str, kind: Kind, unit: str, labels: str, help: str) -> Metric:
    return Metric(name, kind, unit, tuple(labels.split()), help)


ROWS = _metric("dq_rows_total", "counter", "rows", " ".join(DIMENSIONS), "Rows that rules judged.")
CLEAN = _metric(
    "dq_clean_total", "counter", "rows", " ".join(DIMENSIONS), "Rows whose status no rule gave."
)
ERRORS, WARNINGS, INFOS = (
    _metric(
        f"dq_{word}_total",
        "counter",
        "rows",
        " ".join(DIMENSIONS),
        f"Rows whose status a rule of severity {word.upper()} gave.",
    )
    for word in ("error", "warn", "info")
)
SEVERITY_TOTALS = {"ERROR": ERRORS, "WARN": WARNINGS, "INFO": INFOS}
MATCHES = _metric(
    "dq_rule_matches_total",
    "counter",
    "rows",
    f"{' '.join(DIMENSIONS)} rule severity",
    "Rows that the rule matched, whether or not it gave them their status.",
)
WINDOWS_OPEN = _metric(
    "dq_windows_open", "gauge", "windows", "job", "Windows that counted rows and have not closed."
)
WINDOWS_CLOSED = _metric(
    "dq_windows_closed_total", "counter", "windows", "job", "Windows that have closed."
)
WINDOWS_LATE = _metric(
    "dq_windows_late_total",
    "counter",
    "windows",
    "job",
    "Closings again: after late rows, or of other sources.",
)
UNIQUE_KEYS = _metric(
    "dq_unique_keys", "gauge", "keys", "job", "Keys that `unique` rules remember."
)
KEYS = _metric("dq_keys", "gauge", "keys", "job status", "Keys of a pair by their status now.")
WITHIN_GRACE = _metric(
    "dq_reconciled_within_grace",
    "gauge",
    "ratio",
    "job",
    "Share of settled keys whose sides met within window and grace.",
)
WITHIN_GRACE_LATELY = _metric(
    "dq_recently_within_grace",
    "gauge",
    "ratio",
    "job",
    "The same share of the keys settled lately, as the objective's `over` says.",
)
SLO_MET = _metric(
    "dq_slo_met",
    "gauge",
    "flag",
    "job",
    "1 when the share of those settled lately reaches its objective.",
)
AUDIT_BEHIND = _metric(
    "dq_audit_behind",
    "gauge",
    "batches",
    "job",
    "Settled batches and sweeps whose changes could not be told on the audit topic yet.",
)
SMT_ERRORS = _metric(
    "dq_smt_errors_total",
    "counter",
    "records",
    "connector",
    "Records that Connect's hashing refused.",
)
SMT_MISSING_FIELDS = _metric(
    "dq_smt_missing_fields_total",
    "counter",
    "records",
    "connector",
    "Records among them that lacked a field to hash.",
)
STATE_ROWS = _metric(
    "dq_state_rows", "gauge", "keys", "job", "Keys of which the running query keeps state."
)
STATE_BYTES = _metric("dq_state_bytes", "gauge", "bytes", "job", "Memory that the state takes.")
BACKPRESSURE = _metric(
    "dq_backpressure", "gauge", "ratio", "job", "Last batch's duration over the trigger interval."
)
BACKPRESSURE_HIGH = _metric(
    "dq_backpressure_high", "gauge", "flag", "job", "1 when it was above 1 for three batches."
)
LAG = _metric(
    "dq_kafka_lag", "gauge", "records", "job topic", "Offsets of the topic that are not settled."
)
DEAD_LETTERS = _metric(
    "dq_dlq_records_total", "counter", "records", "job", "Records that became dead letters."
)
RECORDS_READ = _metric(
    "headgate_records_read_total", "counter", "records", "job", "Records read from the source."
)
RECORDS = _metric(
    "headgate_records_total", "counter", "records", "job outcome", "What became of the records."
)
OFFSET_GAPS = _metric(
    "headgate_offset_gaps_total", "counter", "offsets", "job", "Offsets without a record."
)
BATCHES = _metric("headgate_batches_total", "counter", "batches", "job", "Batches settled.")
BATCH_SECONDS = _metric(
    "headgate_batch_seconds_total", "counter", "seconds", "job", "Time spent on settled batches."
)
LAST_BATCH_SECONDS = _metric(
    "headgate_last_batch_seconds", "gauge", "seconds", "job", "Duration of the last batch."
)
LAST_BATCH_RECORDS = _metric(
    "headgate_last_batch_records", "gauge", "records", "job", "Records in the last batch."
)
LAST_BATCH_TIME = _metric(
    "headgate_last_batch_timestamp_seconds",
    "gauge",
    "seconds",
    "job",
    "When the last batch was committed.",
)
FAILED_BATCHES = _metric(
    "headgate_failed_batches_total",
    "counter",
    "batches",
    "job",
    "Batches that broke off: restarts, and runs that failed.",
)
RUNNING_JOBS = _metric("headgate_running_jobs", "gauge", "jobs", "", "Runs under way.")
JOB_RUNNING = _metric(
    "headgate_job_running", "gauge", "flag", "job kind mode", "1 while a run of it is under way."
)
EXECUTORS = _metric(
    "headgate_executors", "gauge", "executors", "", "Executors; the local driver counts as one."
)
CORES = _metric("headgate_cores", "gauge", "cores", "", "Cores for tasks.")
CORES_FREE = _metric("headgate_cores_free", "gauge", "cores", "", "Cores without a task.")
HEAP_USED = _metric("headgate_heap_used_bytes", "gauge", "bytes", "", "Heap in use in the engine.")
HEAP_MAX = _metric("headgate_heap_max_bytes", "gauge", "bytes", "", "Heap the engine may use.")
SINK_WAITING = _metric(
    "headgate_sink_waiting_windows", "gauge", "windows", "sink", "Closed windows not yet sent."
)
SINK_FAILURES = _metric(
    "headgate_sink_failures", "gauge", "tries", "sink", "Failed tries since the last success."
)
SCRAPE_SECONDS = _metric(
    "headgate_scrape_seconds", "gauge", "seconds", "", "Time the last reading of the store took."
)
UP = _metric("headgate_engine_up", "gauge", "flag", "version", "1 while the engine runs.")
CASSANDRA_TIMEOUTS = _metric(
    "dq_cassandra_timeout_total",
    "counter",
    "records",
    "table",
    "Records that got no reading, for Cassandra did not answer.",
)
PARTIAL_ROWS = _metric(
    "dq_partial_row_total", "counter", "rows", "table", "Rows with a null in a hashed column."
)
SCHEMA_DRIFT = _metric(
    "dq_schema_drift_detected_total",
    "counter",
    "columns",
    "table",
    "Columns of the table that its hash contract does not have.",
)
COLUMNS_REMOVED = _metric(
    "dq_column_removed_total",
    "counter",
    "columns",
    "table",
    "Columns of the hash contract that the table lost.",
)
HASHER_RECORDS = _metric(
    "headgate_hasher_records_total",
    "counter",
    "records",
    "table outcome",
    "What became of the records that a hasher read.",
)
HASHER_READINGS = _metric(
    "headgate_hasher_readings_total",
    "counter",
    "readings",
    "table",
    "Readings that a hasher sent.",
)
HASHER_LOOKUPS = _metric(
    "headgate_hasher_lookups_total", "counter", "lookups", "table", "Rows that a hasher asked for."
)
HASHER_LOOKUP_SECONDS = _metric(
    "headgate_hasher_lookup_seconds_total", "counter", "seconds", "table", "Time of those lookups."
)
HASHER_IN_FLIGHT = _metric(
    "headgate_hasher_in_flight", "gauge", "lookups", "table", "Lookups under way."
)
HASHER_PAUSED = _metric(
    "headgate_hasher_paused", "gauge", "flag", "table", "1 while Cassandra is away."
)
HASHER_REREADS = _metric(
    "headgate_hasher_rereads", "gauge", "keys", "table", "Keys that will be read again."
)
HASHER_REREADS_LEFT_OUT = _metric(
    "headgate_hasher_rereads_left_out_total",
    "counter",
    "keys",
    "table",
    "Keys that differed and are not read again: too many wait already.",
)
FILTER_ROUTED = _metric(
    "headgate_filter_routed_total",
    "counter",
    "records",
    "job filter",
    "Records that the filter sent to its topic.",
)
FILTER_REFUSED = _metric(
    "headgate_filter_refused_total",
    "counter",
    "records",
    "job filter",
    "Records that the filter matched and that were too large for its topic.",
)
FILTER_BEHIND = _metric(
    "headgate_filter_behind",
    "gauge",
    "offsets",
    "source filter",
    "Offsets that the router has judged and the filter has yet to judge.",
)
FILTER_LIVE = _metric(
    "headgate_filter_live",
    "gauge",
    "flag",
    "source filter standing",
    "1 while the filter judges; 0 with how it stands otherwise.",
)

METRICS: tuple[Metric, ...] = (
    *(ROWS, CLEAN, ERRORS, WARNINGS, INFOS, MATCHES),
    *(WINDOWS_OPEN, WINDOWS_CLOSED, WINDOWS_LATE, UNIQUE_KEYS, STATE_ROWS, STATE_BYTES),
    *(KEYS, WITHIN_GRACE, WITHIN_GRACE_LATELY, SLO_MET, AUDIT_BEHIND),
    *(SMT_ERRORS, SMT_MISSING_FIELDS),
    *(RECORDS_READ, RECORDS, DEAD_LETTERS, OFFSET_GAPS, BATCHES, BATCH_SECONDS),
    *(LAST_BATCH_SECONDS, LAST_BATCH_RECORDS, LAST_BATCH_TIME, FAILED_BATCHES),
    *(BACKPRESSURE, BACKPRESSURE_HIGH, LAG, RUNNING_JOBS, JOB_RUNNING),
    *(EXECUTORS, CORES, CORES_FREE, HEAP_USED, HEAP_MAX),
    *(SINK_WAITING, SINK_FAILURES, SCRAPE_SECONDS, UP),
    *(CASSANDRA_TIMEOUTS, PARTIAL_ROWS, SCHEMA_DRIFT, COLUMNS_REMOVED),
    *(HASHER_RECORDS, HASHER_READINGS, HASHER_LOOKUPS, HASHER_LOOKUP_SECONDS),
    *(HASHER_IN_FLIGHT, HASHER_PAUSED, HASHER_REREADS, HASHER_REREADS_LEFT_OUT),
    *(FILTER_ROUTED, FILTER_REFUSED, FILTER_BEHIND, FILTER_LIVE),
)
BY_NAME = {metric.name: metric for metric in METRICS}
KEPT_GAUGES = (
    *(UNIQUE_KEYS, STATE_ROWS, STATE_BYTES),
    *(KEYS, WITHIN_GRACE, WITHIN_GRACE_LATELY, SLO_MET, AUDIT_BEHIND),
)
# Metrics that the documents call by a second name as well.
ALIASES = {"invalid_hash": "hash_format_error"}
# Rules of this name count records, not verdicts: they are part of no total.
COUNTED = "counted_"
# What a pair's batch counts of its records beside their outcomes, and the metric of each count.
COUNTED_METRICS = {
    "deletes": "delete_count",
    "duplicates": "duplicates",
    "late_records": "late_records",
    "dq_missing_pk": "missing_pk",
    "dq_unknown_action": "unknown_action",
}
# Verdicts on pairs that came together late count as this, beside what they count as themselves.
LATE_ARRIVAL = "late_arrival"
LATE_VERDICTS = ("verdict_late_match", "verdict_late_mismatch")
# What became of a record that no job could accept, and under which name sinks are told how many.
DEAD_OUTCOMES = ("refused", "dead_letter")
DLQ_RECORDS = "dlq_records"


def flat(metric: str) -> str:
    """`hash_mismatch` as `dq_hash_mismatch`; a name that begins so already stays."""
    return metric if metric.startswith(PREFIX) else f"{PREFIX}{metric}"


def namespaced(namespace: str, metric: str) -> str:
    """`hash_mismatch` as `dq.cassandra.hash_mismatch`."""
    return f"{namespace}.{metric}"


def prometheus(metric: str) -> str:
    """A rule's metric as the name of a counter; a name of the table above is never taken twice."""
    word = re.sub(r"[^a-zA-Z0-9_]", "_", flat(metric))
    name = word if word.endswith(TOTAL) else f"{word}{TOTAL}"
    return name if name not in BY_NAME else f"{PREFIX}rule_{name.removeprefix(PREFIX)}"


def alias(metric: str) -> str | None:
    """The second name of a rule's metric, if the documents have one."""
    return ALIASES.get(metric.removeprefix(PREFIX))


def counted_as(rule: str, metric: str) -> str | None:
    """What a rule's count is told as beside its verdicts; None where windows say it all."""
    if rule in LATE_VERDICTS:
        return LATE_ARRIVAL
    return metric if rule.startswith(COUNTED) else None


def rule_metric(metric: str) -> Metric:
    """The counter of a rule's metric, with the rule as a label."""
    name = prometheus(metric)
    words = f"Rows whose status a rule gave that counts as {name.removesuffix(TOTAL)}."
    return Metric(name, "counter", "rows", (*DIMENSIONS, "rule"), words)


Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True)
class Family:
    """One metric with its values, each under the labels that the metric names."""

    metric: Metric
    samples: tuple[Sample, ...]
