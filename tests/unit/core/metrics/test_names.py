from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from headgate.core.metrics.names import (
    BY_NAME,
    METRICS,
    PREFIX,
    flat,
    namespaced,
    prometheus,
    rule_metric,
)
from headgate.core.metrics.windows import WindowShape, WindowSums, record_of, window_fields
from headgate.declarations.names import TAKEN_METRICS


@pytest.mark.parametrize(
    ("metric", "dotted", "plain", "counter"),
    [
        ("hash_mismatch", "dq.x.hash_mismatch", "dq_hash_mismatch", "dq_hash_mismatch_total"),
        ("dq_invalid_hash", "dq.x.dq_invalid_hash", "dq_invalid_hash", "dq_invalid_hash_total"),
        ("seen_total", "dq.x.seen_total", "dq_seen_total", "dq_seen_total"),
        ("null-rate.é", "dq.x.null-rate.é", "dq_null-rate.é", "dq_null_rate___total"),
    ],
)
def test_a_rules_metric_has_three_names(metric, dotted, plain, counter) -> None:
    assert (namespaced("dq.x", metric), flat(metric), prometheus(metric)) == (
        dotted,
        plain,
        counter,
    )


@pytest.mark.parametrize("metric", ["error", "warn", "rows", "clean", "rule_matches"])
def test_a_rules_metric_never_takes_the_name_of_another(metric: str) -> None:
    assert prometheus(metric) == f"dq_rule_{metric}_total"
    assert prometheus(metric) not in BY_NAME


def test_metrics_that_read_the_same_are_one_family() -> None:
    assert rule_metric("a-b") == rule_metric("a.b")


def test_every_name_is_one_that_prometheus_takes() -> None:
    assert len(BY_NAME) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"(dq|headgate)_[a-z_]+", metric.name)
        assert (metric.kind == "counter") == metric.name.endswith("_total"), metric.name
        assert metric.help.endswith("."), metric.name
        assert all(re.fullmatch(r"[a-z]+", label) for label in metric.labels)


def test_rules_cannot_have_the_names_that_are_counted_anyway() -> None:
    own = {metric.name for metric in METRICS if metric.name.startswith(PREFIX)}
    assert {flat(metric) for metric in TAKEN_METRICS} == own


def test_every_total_of_a_record_is_a_name_that_rules_cannot_have() -> None:
    length = timedelta(seconds=10)
    shape = WindowShape("j", "t", "o", "e", "d", "dq.x", length, length)
    record = record_of(shape, datetime(2026, 1, 1, tzinfo=UTC), WindowSums(), 1)
    totals = {name for name in window_fields(record) if name.startswith(PREFIX)}
    assert totals == set(record.totals_by_name())
    assert totals <= {flat(metric) for metric in TAKEN_METRICS}
