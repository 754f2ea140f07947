"""Plots of a report as inline SVG: bars that stretch to any width, without a word in them.

Words stand beside the plot as text of the page, so that they keep their size when it is narrow, and
all numbers stand in a table below it, for those who cannot see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headgate.quality.spec.rule_set import SEVERITIES
from headgate.terminal.report_page import Canvas, number

WIDTH = 800
CANVAS = Canvas(WIDTH, height=160, gap=0.25, widest=80)
SPARK_WIDTH, SPARK_HEIGHT = 64, 16
_SPARK = Markup(
    '<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
    'aria-label="{label}"><polyline points="{points}"></polyline></svg>'
)


@dataclass(frozen=True)
class Bar:
    """One bar: a part of `rows` for each severity, and what it stands for."""

    label: str
    rows: int
    parts: Mapping[str, int]

    @property
    def share(self) -> float:
        return sum(self.parts.values()) / self.rows if self.rows else 0.0


def scale(bars: Sequence[Bar]) -> float:
    """The share at the top of the plot: a round number not below the greatest."""
    most = max((bar.share for bar in bars), default=0.0)
    steps = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    return next((step for step in steps if step >= most), 1.0)


def bars_svg(bars: Sequence[Bar], label: str) -> Markup:
    """The shares of failing rows, one stacked bar each, from edge to edge as the words below it."""
    places, wide = CANVAS.places(len(bars))
    top = scale(bars)
    drawn = [
        part
        for bar, left in zip(bars, places, strict=True)
        for part in CANVAS.stacked(_parts(bar, top), left, wide)
    ]
    return CANVAS.plot(drawn, label)


def _parts(bar: Bar, top: float) -> list[tuple[str, float, str]]:
    """Errors stand at the bottom, where they are easiest to compare."""
    found = ((severity, bar.parts.get(severity, 0)) for severity in SEVERITIES)
    return [
        (
            f"bar {severity.lower()}",
            n / bar.rows / top,
            f"{bar.label}: {n:,} of {bar.rows:,} rows {severity}",
        )
        for severity, n in found
        if n and bar.rows
    ]


def spark_svg(shares: Sequence[float], label: str) -> Markup:
    """A line as small as a word."""
    most = max(shares, default=0.0) or 1.0
    step = SPARK_WIDTH / max(len(shares) - 1, 1)
    points = " ".join(
        f"{number(at * step)},{number(1 + (SPARK_HEIGHT - 2) * (1 - value / most))}"
        for at, value in enumerate(shares)
    )
    return _SPARK.format(width=SPARK_WIDTH, height=SPARK_HEIGHT, label=label, points=points)
