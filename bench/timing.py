"""CPU and wall time of work done by this process and its descendants.

Other tools measure themselves with it in environments of their own, so it needs the standard
library alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """What a piece of work took; CPU seconds are user and system time, at least one clock tick."""

    cpu_seconds: float
    wall_seconds: float


def measure_cost(work: Callable[[], object]) -> Cost:
    """Do the work once and return what it took."""
    wall = time.perf_counter()
    cpu = cpu_seconds()
    work()
    spent = max(cpu_seconds() - cpu, 1 / TICKS)
    return Cost(round(spent, 2), round(time.perf_counter() - wall, 2))


def measure_in_turns(
    forms: Mapping[str, Callable[[], object]], repeat: int
) -> dict[str, list[Cost]]:
    """Measure every form `repeat` times, in turns, after one turn that warms up the JVM.

    Other programs slow the machine down for seconds at a time: in turns, that meets all forms alike.
    """
    for name, work in forms.items():
        report_progress(f"warming up: {name}")
        work()
    costs: dict[str, list[Cost]] = {name: [] for name in forms}
    for turn in range(1, repeat + 1):
        for name, work in forms.items():
            report_progress(f"turn {turn} of {repeat}: {name}")
            costs[name].append(measure_cost(work))
    return costs


def best_cpu(costs: Mapping[str, list[Cost]]) -> dict[str, float]:
    """The fewest CPU seconds that each form took."""
    return {name: min(cost.cpu_seconds for cost in each) for name, each in costs.items()}


def cpu_seconds() -> float:
    """CPU seconds so far of this process and all descendants that still run (Linux only)."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended meanwhile
            continue
        pid = int(file.parent.name)
        parents[pid] = int(fields[1])
        ticks[pid] = int(fields[11]) + int(fields[12])
    family = {os.getpid()}
    while children := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= children
    return sum(ticks.get(pid, 0) for pid in family) / TICKS


def report_progress(message: str) -> None:
    """Write a line to stderr: `python -m bench run` shows the newest one."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
