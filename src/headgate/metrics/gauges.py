"""Gauges that only a running job can measure: it keeps the last value in the store."""

from __future__ import annotations

from headgate.metrics.names import KEPT_GAUGES, Metric
from headgate.store.ops import OpsStore


def keep(store: OpsStore, metric: Metric, job: str, value: float) -> None:
    """Remember the value until the job measures it again."""
    store.mark(f"gauge:{metric.name}:{job}", f"{value:g}" if value % 1 else str(int(value)))


def kept(store: OpsStore) -> dict[Metric, dict[str, float]]:
    """The last value of every such gauge, by job."""
    found: dict[Metric, dict[str, float]] = {metric: {} for metric in KEPT_GAUGES}
    for metric in KEPT_GAUGES:
        prefix = f"gauge:{metric.name}:"
        for name, mark in store.marks(prefix).items():
            found[metric][name.removeprefix(prefix)] = float(mark.value)
    return found
