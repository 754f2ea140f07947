"""A metric with its values, as every reading gives them."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.core.metrics.metrics_names import Metric

Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True)
class Family:
    """One metric with its values, each under the labels that the metric names."""

    metric: Metric
    samples: tuple[Sample, ...]
