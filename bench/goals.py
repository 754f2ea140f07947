"""The speed goals, the benchmark of each, and the table of what was measured against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from headgate.errors import OperationError, UsageError

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
Size = Literal["full", "tiny"]


@dataclass(frozen=True)
class Goal:
    """A speed goal and the function in bench/ that measures it, as `module:function`.

    The function's defaults are the full size. `tiny` are the arguments of a run that ends in
    seconds and proves only that the benchmark works.
    """

    id: str
    what: str
    benchmark: str
    tiny: Mapping[str, int]
    needs_broker: bool = False

    @property
    def module(self) -> str:
        return "bench." + self.benchmark.partition(":")[0]

    @property
    def function(self) -> str:
        return self.benchmark.partition(":")[2]


_ROWS = {"rows": 1_000, "repeat": 1}
_RULES = {**_ROWS, "few": 5, "many": 20, "most": 30}
_PAIRS = {"pairs": 600, "batch": 200, "warm": 1}
_SMALL = {"records": 100, "batches": 4, "warm": 1}
GOALS = (
    Goal("P1", "CPU of 100 rules a row", "rules:measure_rules", _ROWS),
    Goal("P2", "growth from 100 to 400 rules", "rules:measure_growth", _RULES),
    Goal("P3", "compile 200 rules", "rules:measure_compiler", {"rules": 20, "repeat": 1}),
    Goal("P4", "reads of the source a batch", "rules:measure_reads", {"rows": 200}, True),
    Goal("P5", "route through 1,000 filters", "filters:measure_routing", {**_ROWS, "many": 50}),
    Goal("P6", "compare two tables", "compare:measure_comparison", {"rows": 6_000, "repeat": 1}),
    Goal("P7", "reconcile two streams", "reconcile:measure_stream", _PAIRS, True),
    Goal("P8", "bronze beside a plain query", "bronze:measure_bronze", _ROWS, True),
    Goal("P9", "send a Parquet file to Kafka", "generator:measure_generator", _ROWS, True),
    Goal("P10", "hash rows", "hashing:measure_hash", _ROWS),
    Goal("P11", "the demo", "commands:measure_demo", {"rows": 100, "runs": 1}),
    Goal("P12", "headgate --help", "commands:measure_help", {"repeat": 1}),
    Goal("P13", "deploy a filter", "router:measure_deployments", {"filters": 5, "rounds": 1}, True),
    Goal("P14", "dry run of a filter", "filters:measure_dry_run", _ROWS),
    Goal("P15", "growth with rows", "growth:measure_growth", {"rows": 50, "repeat": 1}, True),
    Goal("P16", "fixed cost of a batch", "fixed_cost:measure_small_batches", _SMALL, True),
)


def choose_goals(ids: Sequence[str]) -> tuple[Goal, ...]:
    """The goals of these ids in the order of the table, all of them without ids."""
    named = {name.upper() for name in ids}
    known = [goal.id for goal in GOALS]
    if unknown := sorted(named - set(known)):
        raise UsageError(
            f"there is no benchmark for {', '.join(unknown)}", fix=f"choose from {', '.join(known)}"
        )
    return tuple(goal for goal in GOALS if not named or goal.id in named)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Figure(_Frozen):
    """A measured value and its target; `beside` are the two values of a ratio, from one run."""

    what: str
    value: float
    unit: str
    target: float
    better: Literal["less", "more"] = "less"
    beside: str = ""

    @classmethod
    def of_ratio(cls, what: str, cost: float, base: float, target: float, unit: str = "×") -> Self:
        """CPU seconds divided by those of what they are compared with."""
        beside = f"{cost:.2f} to {base:.2f} CPU s"
        return cls(what=what, value=round(cost / base, 3), unit=unit, target=target, beside=beside)

    @property
    def is_met(self) -> bool:
        return self.value <= self.target if self.better == "less" else self.value >= self.target


class Measurement(_Frozen):
    """What a benchmark returns: figures with targets, and details that have none."""

    figures: tuple[Figure, ...]
    details: Mapping[str, Any] = {}


class Machine(_Frozen):
    """Where figures were measured."""

    cores: int
    processor: str
    memory_gib: float
    java: str
    python: str
    load: float


class Result(_Frozen):
    """The measurement of one goal, and when, where and of which code it was taken.

    `state` is a hash of the commit and of all uncommitted changes.
    """

    goal: str
    size: Size
    commit: str
    state: str
    measured_at: datetime
    seconds: float
    machine: Machine
    measurement: Measurement


@dataclass(frozen=True)
class Failure:
    """A benchmark that broke or ran out of time."""

    goal: Goal
    reason: str
    seconds: float


def render_rows(outcomes: Iterable[Result | Failure]) -> list[dict[str, str]]:
    """The table, one row a figure."""
    return [row for outcome in outcomes for row in _render_outcome(outcome)]


def _render_outcome(outcome: Result | Failure) -> list[dict[str, str]]:
    seconds = f"{outcome.seconds:.0f}"
    if isinstance(outcome, Failure):
        goal = outcome.goal
        return [_row(goal.id, goal.what, "", "", outcome.reason, seconds)]
    return [
        _row(
            outcome.goal,
            figure.what,
            f"{'≤' if figure.better == 'less' else '≥'} {render_value(figure.target, figure.unit)}",
            _render_measured(figure),
            "tiny" if outcome.size == "tiny" else "met" if figure.is_met else "missed",
            "" if number else seconds,
        )
        for number, figure in enumerate(outcome.measurement.figures)
    ]


def _row(goal: str, what: str, target: str, measured: str, verdict: str, s: str) -> dict[str, str]:
    return {
        "goal": goal,
        "what": what,
        "target": target,
        "measured": measured,
        "verdict": verdict,
        "seconds": s,
    }


def _render_measured(figure: Figure) -> str:
    value = render_value(figure.value, figure.unit)
    return f"{value} ({figure.beside})" if figure.beside else value


def render_value(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{number} {unit}".rstrip()


def insert_table(page: str, table: str) -> str:
    """The page with the table between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise OperationError(
            "the page has no place for the figures", fix=f"write {BEGIN} and {END} into it"
        )
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def describe_run(results: Sequence[Result]) -> str:
    """A sentence about the day, the commit and the machine of the newest result."""
    newest = max(results, key=lambda result: result.measured_at)
    machine = newest.machine
    return (
        f"Measured on {newest.measured_at:%Y-%m-%d} at commit {newest.commit}: {machine.cores} cores"
        f" ({machine.processor}), {machine.memory_gib:.0f} GiB, {machine.java},"
        f" Python {machine.python}; load average {machine.load:.1f} before it began."
    )
