"""Plots of a reconciliation as inline SVG: stacked bars over time, without a word in them.

Words stand beside the plot as text of the page, and all numbers in a table below it, for those who
cannot see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headgate.terminal.report_page import Canvas

CANVAS = Canvas(width=800, height=180, gap=0.15, widest=60)
ROUND = (*range(1, 10), 10, 12, 15, 16, 18, 20, 22, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100)


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
    places, wide = CANVAS.places(len(stacks))
    top = top_of(stacks)
    bars = [
        part
        for stack, left in zip(stacks, places, strict=True)
        for part in CANVAS.stacked(_parts(stack, classes, top), left, wide)
    ]
    return CANVAS.plot(bars, label)


def _parts(stack: Stack, classes: Mapping[str, str], top: int) -> list[tuple[str, float, str]]:
    found = ((part, name, stack.parts.get(part, 0)) for part, name in classes.items())
    return [
        (f"part {name}", n / top, f"{stack.label}: {n:,} {part}") for part, name, n in found if n
    ]
