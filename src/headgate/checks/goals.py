"""What was measured against which goal, as a table; a line that is lost is shown like one won."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from headgate.errors import OperationError

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Line(_Frozen):
    """One figure: what was measured, how much it is, and what it had to be."""

    what: str
    figure: float
    unit: str
    limit: float
    better: Literal["less", "more"] = "less"

    @property
    def met(self) -> bool:
        return self.figure <= self.limit if self.better == "less" else self.figure >= self.limit

    @property
    def ratio(self) -> float:
        """1 is exactly the goal; below it there is room, whichever way is better."""
        if self.better == "less":
            return self.figure / self.limit
        return self.limit / self.figure if self.figure else float("inf")


class Measured(_Frozen):
    """What one script found for one goal."""

    goal: str
    lines: tuple[Line, ...]


class Machine(_Frozen):
    """Where the figures come from."""

    cores: int
    processor: str
    memory_gib: float
    java: str
    python: str
    load: float


class Result(_Frozen):
    """One goal's figures, when and where they were taken."""

    at: datetime
    quick: bool
    machine: Machine
    measured: Measured


class Results(_Frozen):
    """The newest result of every goal that was ever measured here."""

    results: Mapping[str, Result] = {}

    def with_result(self, result: Result) -> Results:
        found = {**self.results, result.measured.goal: result}
        return Results(results={goal: found[goal] for goal in sorted(found, key=_number)})


def _number(goal: str) -> tuple[str, int]:
    return goal[:1], int(goal[1:]) if goal[1:].isdigit() else 0


def rows(results: Iterable[Result]) -> list[dict[str, str]]:
    """The table, one row a figure."""
    return [
        {
            "goal": result.measured.goal,
            "what": line.what,
            "figure": shown(line.figure, line.unit),
            "limit": f"{'≤' if line.better == 'less' else '≥'} {shown(line.limit, line.unit)}",
            "of limit": f"{line.ratio:.2f}",
            "verdict": ("met" if line.met else "missed") + (" (quick)" if result.quick else ""),
        }
        for result in results
        for line in result.measured.lines
    ]


def shown(figure: float, unit: str) -> str:
    number = f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"
    return f"{number} {unit}".rstrip()


def page_with(page: str, table: str) -> str:
    """The page with the table between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise OperationError(
            "the page has no place for the figures", fix=f"write {BEGIN} and {END} into it"
        )
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def taken_on(results: Sequence[Result]) -> str:
    """A sentence on the machine and the day of the newest figures."""
    newest = max(results, key=lambda result: result.at)
    m = newest.machine
    return (
        f"Measured on {newest.at:%Y-%m-%d}: {m.cores} cores ({m.processor}),"
        f" {m.memory_gib:.0f} GiB, {m.java}, Python {m.python}; load average {m.load:.1f}"
        " before it began."
    )
