"""Plots of a report as inline SVG: bars that stretch to any width, without a word in them.

Words stand beside the plot as text of the page, so that they keep their size when it is narrow, and
all numbers stand in a table below it, for those who cannot see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headgate.spec.ruleset import SEVERITIES

WIDTH, HEIGHT = 800, 160
GAP, WIDEST = 0.25, 80
SPARK_WIDTH, SPARK_HEIGHT = 64, 16
_BAR = Markup(
    '<rect class="{name}" x="{x}" y="{y}" width="{width}" height="{height}"><title>{title}</title></rect>'
)
_PLOT = Markup(
    '<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" aria-label="{label}">'
    "{lines}{bars}</svg>"
)
_LINE = Markup('<line class="grid" x1="0" x2="{width}" y1="{y}" y2="{y}"></line>')
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
    top = scale(bars)
    wide = min(WIDTH / max(len(bars), 1) * (1 - GAP), WIDEST)
    step = (WIDTH - wide) / max(len(bars) - 1, 1)
    drawn = [rect for at, bar in enumerate(bars) for rect in _stack(bar, at * step, wide, top)]
    lines = [_LINE.format(width=WIDTH, y=_number(HEIGHT * part)) for part in (0.0, 0.5, 1.0)]
    return _PLOT.format(
        width=WIDTH,
        height=HEIGHT,
        label=label,
        lines=Markup("").join(lines),
        bars=Markup("").join(drawn),
    )


def _stack(bar: Bar, left: float, wide: float, top: float) -> list[Markup]:
    """Errors stand at the bottom, where they are easiest to compare."""
    y, found = float(HEIGHT), list[Markup]()
    for severity in SEVERITIES:
        n = bar.parts.get(severity, 0)
        if not n or not bar.rows:
            continue
        height = HEIGHT * n / bar.rows / top
        y -= height
        found.append(
            _BAR.format(
                name=f"bar {severity.lower()}",
                x=_number(left),
                y=_number(y),
                width=_number(wide),
                height=_number(height),
                title=f"{bar.label}: {n:,} of {bar.rows:,} rows {severity}",
            )
        )
    return found


def spark_svg(shares: Sequence[float], label: str) -> Markup:
    """A line as small as a word."""
    most = max(shares, default=0.0) or 1.0
    step = SPARK_WIDTH / max(len(shares) - 1, 1)
    points = " ".join(
        f"{_number(at * step)},{_number(1 + (SPARK_HEIGHT - 2) * (1 - value / most))}"
        for at, value in enumerate(shares)
    )
    return _SPARK.format(width=SPARK_WIDTH, height=SPARK_HEIGHT, label=label, points=points)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
