"""Plots of a reconciliation as inline SVG: stacked bars over time, without a word in them.

Words stand beside the plot as text of the page, and all numbers in a table below it, for those who
cannot see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDTH, HEIGHT = 800, 180
GAP, WIDEST = 0.15, 60
ROUND = (*range(1, 10), 10, 12, 15, 16, 18, 20, 22, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100)
_BAR = Markup(
    '<rect class="{name}" x="{x}" y="{y}" width="{width}" height="{height}"><title>{title}</title></rect>'
)
_LINE = Markup('<line class="grid" x1="0" x2="{width}" y1="{y}" y2="{y}"></line>')
_PLOT = Markup(
    '<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" aria-label="{label}">'
    "{lines}{bars}</svg>"
)


@dataclass(frozen=True)
class Stack:
    """One bar: what stands on it, lowest first, and when."""

    label: str
    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())


def top_of(stacks: Sequence[Stack]) -> int:
    """A round number not below the highest bar."""
    most = max((stack.total for stack in stacks), default=0)
    unit = 10 ** max(len(str(most)) - 2, 0)
    return max(next(step * unit for step in ROUND if step * unit >= most), 1)


def stacks_svg(stacks: Sequence[Stack], classes: Mapping[str, str], label: str) -> Markup:
    """The bars from edge to edge; `classes` gives each part its colour and its place in the stack."""
    top = top_of(stacks)
    wide = min(WIDTH / max(len(stacks), 1) * (1 - GAP), WIDEST)
    step = (WIDTH - wide) / max(len(stacks) - 1, 1)
    bars = [
        bar
        for at, stack in enumerate(stacks)
        for bar in _bars(stack, classes, at * step, wide, top)
    ]
    lines = [_LINE.format(width=WIDTH, y=number(HEIGHT * part)) for part in (0.0, 0.5, 1.0)]
    return _PLOT.format(
        width=WIDTH,
        height=HEIGHT,
        label=label,
        lines=Markup("").join(lines),
        bars=Markup("").join(bars),
    )


def _bars(
    stack: Stack, classes: Mapping[str, str], left: float, wide: float, top: int
) -> list[Markup]:
    y, found = float(HEIGHT), list[Markup]()
    for part, name in classes.items():
        n = stack.parts.get(part, 0)
        if not n:
            continue
        height = HEIGHT * n / top
        y -= height
        found.append(
            _BAR.format(
                name=f"part {name}",
                x=number(left),
                y=number(y),
                width=number(wide),
                height=number(height),
                title=f"{stack.label}: {n:,} {part}",
            )
        )
    return found


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
