from __future__ import annotations

import re

import pytest

from headgate.metrics.names import BY_NAME, METRICS, flat, namespaced, prometheus, rule_metric


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


@pytest.mark.parametrize("metric", ["error", "warn", "rows", "clean", "rule_held"])
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
