from __future__ import annotations

from tests.support.clock import ManualClock
from tests.support.metric_windows import JOB, SHAPE, event_time, settle_batch

from headgate.core.engine.job_kind import find_trigger
from headgate.core.ledger.model import JobSpec, RuleCount, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics import names
from headgate.core.metrics.names import Metric
from headgate.core.metrics.prometheus import Page, exposition, number
from headgate.core.metrics.readings import EngineReading, Family, JobLag, Readings
from headgate.core.metrics.windows import Emitter, WindowSums
from headgate.quality.job_kind import QualityRunOptions

COUNTS = (
    RuleCount("amount", "negative", "ERROR", 3, 5),
    RuleCount("refund", "negative", "ERROR", 1, 1),
    RuleCount("old", "stale", "WARN", 2, 4),
)
DIMENSIONS = ("prod", "onprem", "orders_onprem", "orders.events")


def families(store: OpsStore) -> dict[str, Family]:
    readings = Readings(store, find_trigger=find_trigger)
    return {family.metric.name: family for family in readings.families()}


def values(found: Family) -> dict[tuple[str, ...], float]:
    return dict(found.samples)


def test_counters_are_the_sums_of_the_ledger(store: OpsStore, clock: ManualClock) -> None:
    Emitter(store, SHAPE, lambda _: {}, clock)
    settle_batch(store, 0, {0: event_time(0)}, COUNTS, rows=9, accepted=7, dead_letter=2, refused=1)
    settle_batch(store, 10, {0: event_time(0)}, COUNTS[:1], rows=4, newest=4)
    found = families(store)
    assert values(found["headgate_records_read_total"]) == {(JOB,): 14}
    assert values(found["headgate_records_total"])[(JOB, "accepted")] == 7
    assert values(found["dq_dlq_records_total"]) == {(JOB,): 3}
    assert values(found["dq_negative_total"]) == {
        (*DIMENSIONS, "amount"): 6,
        (*DIMENSIONS, "refund"): 1,
    }
    assert values(found["dq_rule_matches_total"])[(*DIMENSIONS, "old", "WARN")] == 4
    totals = [values(found[f"dq_{name}_total"]) for name in ("error", "warn", "info")]
    assert totals == [{DIMENSIONS: 7}, {DIMENSIONS: 2}, {DIMENSIONS: 0}]
    assert values(found["dq_rows_total"]) == {DIMENSIONS: 13}
    assert values(found["dq_clean_total"]) == {DIMENSIONS: 4}


def test_a_reading_goes_on_from_the_last_one_and_a_new_one_from_the_beginning(
    store: OpsStore, clock: ManualClock
) -> None:
    settle_batch(store, 0, {0: event_time(0)}, COUNTS)
    readings = Readings(store)
    readings.families()
    settle_batch(store, 1, {0: event_time(0)}, COUNTS)
    again = {f.metric.name: f for f in readings.families()}
    assert values(again["dq_stale_total"]) == values(families(store)["dq_stale_total"])
    assert sum(values(again["dq_stale_total"]).values()) == 4


def test_runs_windows_sinks_and_gauges_are_told(store: OpsStore, clock: ManualClock) -> None:
    options = QualityRunOptions(trigger_seconds=2)
    run = store.submit(JobSpec(JOB, "quality", "orders", "streaming", "r", options))
    store.move(run.job, run.number, RunState.RUNNING)
    store.count_restart(run.job, run.number, "once")
    store.register_sink("kafka")
    emitter = Emitter(store, SHAPE, lambda s: dict.fromkeys(s, WindowSums(1)), clock)
    settle_batch(store, 0, {0: event_time(0), 100: event_time(100)})
    emitter.close_due()
    store.write_gauge(names.UNIQUE_KEYS.name, JOB, 12_345_678)
    found = families(store)
    assert values(found["headgate_running_jobs"]) == {(): 1}
    assert values(found["headgate_job_running"]) == {(JOB, "quality", "streaming"): 1}
    assert values(found["headgate_failed_batches_total"]) == {(JOB,): 1}
    assert values(found["dq_windows_open"]) == {(JOB,): 1}
    assert values(found["dq_windows_closed_total"]) == {(JOB,): 1}
    assert values(found["headgate_sink_waiting_windows"]) == {("kafka",): 1}
    assert values(found["dq_unique_keys"]) == {(JOB,): 12_345_678}
    assert values(found["dq_backpressure"]) == {(JOB,): 0}


def test_what_the_engine_knows_of_itself_is_told(store: OpsStore) -> None:
    engine = EngineReading(1, 4, 3, 100, 200)
    lag = JobLag(JOB, "orders.events", 7)
    found = {f.metric.name: f for f in Readings(store, lambda: engine, lambda: [lag]).families()}
    told = ("executors", "cores", "cores_free", "heap_used_bytes", "heap_max_bytes")
    assert [values(found[f"headgate_{name}"])[()] for name in told] == [1, 4, 3, 100, 200]
    assert values(found["dq_kafka_lag"]) == {(JOB, "orders.events"): 7}


def test_the_text_escapes_what_would_break_it() -> None:
    metric = Metric("dq_x_total", "counter", "rows", ("rule",), "Back\\slash\nand line.")
    family = Family(metric, ((('say "no"\\\n',), 9_007_199_254_740_993), (("b",), 0.25)))
    assert exposition([family]) == (
        "# HELP dq_x_total Back\\\\slash\\nand line.\n"
        "# TYPE dq_x_total counter\n"
        'dq_x_total{rule="say \\"no\\"\\\\\\n"} 9007199254740993\n'
        'dq_x_total{rule="b"} 0.25\n'
    )


def test_numbers_lose_no_digit() -> None:
    assert [number(v) for v in (0, 3.0, 0.1, 1e300)][:3] == ["0", "3", "0.1"]


def test_every_name_stands_once_in_the_text(store: OpsStore) -> None:
    Emitter(store, SHAPE, lambda _: {})
    clash = (RuleCount("a", "error", "ERROR", 1, 1), RuleCount("b", "a-b", "INFO", 1, 1))
    settle_batch(store, 0, {}, (*clash, RuleCount("c", "a.b", "INFO", 1, 1)))
    text = exposition(Readings(store).families())
    typed = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(typed) == len(set(typed))
    samples = [line.rpartition(" ")[0] for line in text.splitlines() if line[0] != "#"]
    assert len(samples) == len(set(samples))
    assert 'dq_rule_error_total{env="prod",dc="onprem",table="orders_onprem"' in text


def test_a_page_is_made_at_most_once_a_second(store: OpsStore) -> None:
    now = [0.0]
    page = Page(Readings(store), monotonic=lambda: now[0])
    first = page.text()
    settle_batch(store, 0, {}, COUNTS)
    assert page.text() == first
    now[0] = 1.0
    assert "dq_stale_total" in page.text()


def test_counts_of_a_pair_stand_under_the_names_of_the_documents(
    store: OpsStore, clock: ManualClock
) -> None:
    Emitter(store, SHAPE, lambda _: {}, clock)
    counts = (
        RuleCount("verdict_invalid_hash", "invalid_hash", "ERROR", 2, 2),
        RuleCount("verdict_late_match", "hash_match", "INFO", 3, 3),
        RuleCount("counted_deletes", "delete_count", "INFO", 9, 9),
    )
    settle_batch(store, 0, {0: event_time(0)}, counts, rows=5)
    found = families(store)
    bad = values(found["dq_invalid_hash_total"])
    assert values(found["dq_hash_format_error_total"]) == bad
    assert values(found["dq_late_arrival_total"]) == {(*DIMENSIONS, "verdict_late_match"): 3}
    assert values(found["dq_delete_count_total"]) == {(*DIMENSIONS, "counted_deletes"): 9}
    assert values(found["dq_info_total"]) == {DIMENSIONS: 3}, "records are no verdicts"
    assert values(found["dq_clean_total"]) == {DIMENSIONS: 0}


def test_keys_by_status_are_told_with_their_status(store: OpsStore) -> None:
    for status, keys in {"MATCH": 7, "PENDING": 0}.items():
        store.write_gauge(names.KEYS.name, "reconcile-x", keys, status)
    store.write_gauge(names.WITHIN_GRACE.name, "reconcile-x", 0.875)
    found = families(store)
    assert values(found["dq_keys"]) == {("reconcile-x", "MATCH"): 7, ("reconcile-x", "PENDING"): 0}
    assert values(found["dq_reconciled_within_grace"]) == {("reconcile-x",): 0.875}
