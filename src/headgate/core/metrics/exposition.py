"""The text that Prometheus scrapes: format 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from headgate.core.metrics.family import Family, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(families: Iterable[Family]) -> str:
    """Each metric with its help and type, then its values.

    Families of one name stand beside each other; they may have different labels, and one head.
    """
    grouped = groupby(families, key=lambda family: family.metric.name)
    return "".join(_metric(tuple(same)) for _, same in grouped)


def _metric(families: Sequence[Family]) -> str:
    metric = families[0].metric
    head = f"# HELP {metric.name} {_help(metric.help)}\n# TYPE {metric.name} {metric.kind}\n"
    lines = (
        f"{metric.name}{_labels(family.metric.labels, sample)} {number(sample[1])}\n"
        for family in families
        for sample in family.samples
    )
    return head + "".join(lines)


def _labels(keys: tuple[str, ...], sample: Sample) -> str:
    pairs = [f'{key}="{_value(value)}"' for key, value in zip(keys, sample[0], strict=True)]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _help(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n")


def _value(words: str) -> str:
    return _help(words).replace('"', '\\"')


def number(value: float) -> str:
    """Whole numbers without a point, so that large counters lose no digit."""
    return str(int(value)) if value == int(value) else repr(float(value))
