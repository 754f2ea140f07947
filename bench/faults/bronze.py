"""Kills engines at named points of a batch and compares the tables with an undisturbed run.

A play is one seed; it keeps its state after each kill and goes on where it was interrupted.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import orjson
from pydantic import BaseModel, ConfigDict

from bench.faults.comparison import Comparison, compare
from bench.faults.rig import BRONZE, SILVER, Rig, rig
from headgate.config.settings import Settings
from headgate.core.engine.batch import Point
from headgate.errors import DifferenceError, OperationError

ROWS = (60, 600, 6_000)
ROWS_MID_WRITE = 20_000
SILVER_POINTS = (
    Point.AFTER_INTENT,
    Point.AFTER_STAGING,
    Point.AFTER_PUBLISH,
    Point.BEFORE_OUTCOME,
)
# The others are of outputs that bronze has not.
BRONZE_POINTS = (
    Point.AFTER_INTENT,
    Point.MID_WRITE,
    Point.AFTER_STAGING,
    Point.AFTER_DEAD_LETTERS,
    Point.AFTER_PUBLISH,
    Point.BEFORE_OUTCOME,
)
# Once the rows are published, a restarted engine only accounts for them.
PUBLISHED = frozenset({Point.AFTER_PUBLISH, Point.BEFORE_OUTCOME})
ALWAYS_PASSED = frozenset({Point.AFTER_INTENT, Point.BEFORE_OUTCOME})
MOST_VOID = 5


class Kill(BaseModel):
    """One kill that was seen to bite."""

    model_config = ConfigDict(frozen=True)

    number: int
    job: str
    point: Point
    time: int
    records: int
    seconds: float = 0.0


class State(BaseModel):
    """How far a run of kills has come.

    `published` tells of the bronze batch that is broken now whether its rows are published; None
    when no batch is broken.
    """

    seed: int
    kills: list[Kill] = []
    void: int = 0
    rounds: int = 0
    published: bool | None = None

    def note(self, kill: Kill) -> None:
        self.kills.append(kill)
        if kill.job == BRONZE:
            broken_again = kill.time == 1 and passes_again(self.published, kill.point)
            self.published = kill.point in PUBLISHED or bool(broken_again and self.published)


@dataclass(frozen=True)
class FaultReport:
    """What the kills left behind."""

    seed: int
    kills: int
    void: int
    points: dict[str, int]
    records: int
    seconds: float
    comparisons: tuple[Comparison, ...]
    holds: bool


def plan(state: State) -> Kill:
    """The next kill: where a batch is new to the engine, or while it finishes the broken one."""
    rng = Random(f"{state.seed}/{state.rounds}")
    number, rows = len(state.kills) + 1, rng.choice(ROWS)
    last = state.kills[-1] if state.kills else None
    if last and last.job == BRONZE and last.point in PUBLISHED and rng.random() < 0.5:
        point = rng.choice(SILVER_POINTS)
        return Kill(number=number, job=SILVER, point=point, time=1, records=0)
    point = rng.choice(BRONZE_POINTS)
    rows = ROWS_MID_WRITE if point is Point.MID_WRITE else rows
    times = (1, 2) if passes_again(state.published, point) else (1,)
    return Kill(number=number, job=BRONZE, point=point, time=rng.choice(times), records=rows)


def passes_again(published: bool | None, point: Point) -> bool:
    """Whether an engine that first finishes the broken batch passes this point in doing so."""
    if published is None:
        return False
    return not published or point in ALWAYS_PASSED


def run_faults(
    settings: Settings, kills: int, seed: int = 42, say: Callable[[str], None] = lambda words: None
) -> FaultReport:
    """Kill so many engines, compare, write the report; DifferenceError when something shows."""
    folder = settings.home / "faults"
    state = read_state(folder, seed, kills)
    if state.kills:
        say(f"going on after kill {len(state.kills)} of {kills}")
    say(f"seed {seed}")
    with rig(settings, folder) as place:
        home = place.home("killed")
        while len(state.kills) < kills:
            kill_once(place, home, state, say)
            keep_state(folder, state)
        say("the same commands undisturbed, and all of it again in another home")
        comparisons = compare(place, home)
    report = report_of(state, comparisons)
    write_report(settings, report)
    (folder / "state.json").unlink(missing_ok=True)
    if not report.holds:
        wrong = "; ".join(c.what for c in comparisons if not c.holds)
        raise DifferenceError(
            f"{kills} kills left a trace", why=wrong, fix=f"the homes are in {folder}"
        )
    return report


def read_state(folder: Path, seed: int, kills: int) -> State:
    """The state to go on from; anything else that stands there is cleared away."""
    file = folder / "state.json"
    if file.is_file():
        state = State.model_validate_json(file.read_bytes())
        if state.seed == seed and len(state.kills) <= kills:
            return state
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return State(seed=seed)


def keep_state(folder: Path, state: State) -> None:
    new = folder / "state.new"
    new.write_text(state.model_dump_json())
    new.replace(folder / "state.json")


def kill_once(place: Rig, home: Settings, state: State, say: Callable[[str], None]) -> None:
    """One round: records, an engine, its death. A death that was not seen does not count."""
    state.rounds += 1
    kill = plan(state)
    started = time.monotonic()
    records = place.send(state.seed + state.rounds, kill.records) if kill.records else 0
    home.home.mkdir(parents=True, exist_ok=True)
    witness = home.home / "witness"
    witness.unlink(missing_ok=True)
    ended = place.run(home, kill.job, f"{kill.point}@{kill.time}:{witness}")
    seconds = round(time.monotonic() - started, 1)
    words = f"{kill.job} {kill.point}@{kill.time}, {records:,} records, {seconds} s"
    if ended.killed and witness.is_file():
        state.note(kill.model_copy(update={"records": records, "seconds": seconds}))
        say(f"kill {len(state.kills)}: {words}")
        return
    state.void += 1
    state.published = None  # it finished the broken batch, and its own
    say(f"void: {words}, exit code {ended.exit_code}")
    if ended.exit_code not in (0, 8) or state.void > MOST_VOID + len(state.kills):
        raise OperationError(
            f"an engine that should have been killed ended with {ended.exit_code}",
            why="\n".join(ended.log.strip().splitlines()[-5:]),
        )


def report_of(state: State, comparisons: tuple[Comparison, ...]) -> FaultReport:
    return FaultReport(
        seed=state.seed,
        kills=len(state.kills),
        void=state.void,
        points=dict(Counter(f"{kill.job} {kill.point}" for kill in state.kills)),
        records=sum(kill.records for kill in state.kills),
        seconds=round(sum(kill.seconds for kill in state.kills), 1),
        comparisons=comparisons,
        holds=all(comparison.holds for comparison in comparisons),
    )


def write_report(settings: Settings, report: FaultReport) -> None:
    """The report as JSON and as a table."""
    folder = settings.build_dir / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    document = orjson.dumps(asdict(report), option=orjson.OPT_INDENT_2) + b"\n"
    (folder / "faults.json").write_bytes(document)
    (folder / "faults.md").write_text(table(report), encoding="utf-8")


def table(report: FaultReport) -> str:
    lines = [f"{report.kills} kills, seed {report.seed}, {report.records:,} records", ""]
    lines += ["| what | with kills | undisturbed |", "|---|---|---|"]
    lines += [f"| {c.what} | {c.with_kills} | {c.undisturbed} |" for c in report.comparisons]
    lines += ["", "| struck | times |", "|---|---|"]
    lines += [f"| {point} | {times} |" for point, times in sorted(report.points.items())]
    return "\n".join(lines) + "\n"
