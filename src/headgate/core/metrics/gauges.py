"""Gauges that only a running job can measure: it keeps the last value in the store."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.metrics_names import KEPT_GAUGES, LABELLED_GAUGES, Metric


def keep(store: OpsStore, metric: Metric, job: str, value: float) -> None:
    """Remember the value until the job measures it again."""
    store.mark(f"gauge:{metric.name}:{job}", f"{value:g}" if value % 1 else str(int(value)))


def keep_labelled(store: OpsStore, metric: Metric, job: str, values: Mapping[str, float]) -> None:
    """The same for a gauge with one more label: the value of each."""
    for label, value in values.items():
        keep(store, metric, f"{job}:{label}", value)


def kept_labelled(store: OpsStore) -> dict[Metric, dict[tuple[str, ...], float]]:
    """The last values of gauges with one more label, by job and label."""
    found: dict[Metric, dict[tuple[str, ...], float]] = {metric: {} for metric in LABELLED_GAUGES}
    for metric in LABELLED_GAUGES:
        prefix = f"gauge:{metric.name}:"
        for name, mark in store.marks(prefix).items():
            job, _, label = name.removeprefix(prefix).rpartition(":")
            found[metric][job, label] = float(mark.value)
    return found


def kept(store: OpsStore) -> dict[Metric, dict[str, float]]:
    """The last value of every such gauge, by job."""
    found: dict[Metric, dict[str, float]] = {metric: {} for metric in KEPT_GAUGES}
    for metric in KEPT_GAUGES:
        prefix = f"gauge:{metric.name}:"
        for name, mark in store.marks(prefix).items():
            found[metric][name.removeprefix(prefix)] = float(mark.value)
    return found
