"""Kills engines at named points of a batch and compares the tables with an undisturbed run.

One seed makes one run; it keeps its history after each kill and goes on where it was interrupted.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random

import orjson
from pydantic import BaseModel, ConfigDict

from bench.faults.comparison import Comparison, compare_homes
from bench.faults.rig import (
    BRONZE,
    SILVER,
    CommandResult,
    TopicRig,
    open_rig,
    start_command,
    wait_for_end,
)
from bench.faults.scenario import Load, Outage, PlannedOutage, Report, Say, Scenario, run_scenario
from headgate.config.settings import Settings
from headgate.core.engine.batch import Point
from headgate.errors import OperationError

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
MAX_VOID = 5
HISTORY_FILE = "state.json"


class Kill(BaseModel):
    """One kill that was seen to bite."""

    model_config = ConfigDict(frozen=True)

    number: int
    job: str
    point: Point
    time: int
    records: int
    seconds: float = 0.0


class KillHistory(BaseModel):
    """How far a run of kills has come.

    `published` says of the bronze batch that is broken now whether its rows are published; None
    when no batch is broken.
    """

    seed: int
    kills: list[Kill] = []
    void: int = 0
    rounds: int = 0
    published: bool | None = None

    def add(self, kill: Kill) -> None:
        self.kills.append(kill)
        if kill.job == BRONZE:
            broken_again = kill.time == 1 and passes_again(self.published, kill.point)
            self.published = kill.point in PUBLISHED or bool(broken_again and self.published)


@dataclass(frozen=True)
class KillReport(Report):
    """What the kills left behind."""

    seed: int
    kills: int
    void: int
    points: dict[str, int]
    records: int
    seconds: float
    comparisons: tuple[Comparison, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        return tuple(c.what for c in self.comparisons if not c.holds)

    def write(self, file: Path) -> None:
        """As JSON, and as a table beside it."""
        document = {**asdict(self), "holds": not self.faults}
        file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
        file.with_suffix(".md").write_text(render_table(self), encoding="utf-8")


def plan_kill(history: KillHistory) -> Kill:
    """The next kill: where a batch is new to the engine, or while it finishes the broken one."""
    rng = Random(f"{history.seed}/{history.rounds}")
    number, rows = len(history.kills) + 1, rng.choice(ROWS)
    last = history.kills[-1] if history.kills else None
    if last and last.job == BRONZE and last.point in PUBLISHED and rng.random() < 0.5:
        point = rng.choice(SILVER_POINTS)
        return Kill(number=number, job=SILVER, point=point, time=1, records=0)
    point = rng.choice(BRONZE_POINTS)
    rows = ROWS_MID_WRITE if point is Point.MID_WRITE else rows
    times = (1, 2) if passes_again(history.published, point) else (1,)
    return Kill(number=number, job=BRONZE, point=point, time=rng.choice(times), records=rows)


def passes_again(published: bool | None, point: Point) -> bool:
    """Whether an engine that first finishes the broken batch passes this point in doing so."""
    if published is None:
        return False
    return not published or point in ALWAYS_PASSED


@dataclass
class KillScenario(Scenario[Load, KillReport]):
    """Engines that die in turn, each while it finishes the batch that the one before left broken, or later.

    The load is idle: every engine is given its records before it starts. Nothing is waited for after
    a kill, since the next engine shows whether the broken batch can be finished.
    """

    rig: TopicRig
    home: Settings
    history: KillHistory
    kills: int

    def plan_outages(self) -> Iterator[PlannedOutage]:
        while len(self.history.kills) < self.kills:
            self.history.rounds += 1
            kill = plan_kill(self.history)
            what = f"{kill.job} {kill.point}@{kill.time}"
            yield PlannedOutage(what, strike=partial(self._run_to_death, kill))
            save_history(self.home.home.parent, self.history)

    def _run_to_death(self, kill: Kill) -> None:
        """One round: records, an engine, its death. A death that was not seen does not count."""
        history, started = self.history, time.monotonic()
        seed = history.seed + history.rounds
        records = self.rig.send_round(seed, kill.records) if kill.records else 0
        self.load.sent += records
        witness = self.home.home / "witness"
        witness.unlink(missing_ok=True)
        fault = f"{kill.point}@{kill.time}:{witness}"
        result = wait_for_end(
            start_command(self.home, kill.job, "job", "run", kill.job, fault=fault)
        )
        seconds = round(time.monotonic() - started, 1)
        if result.was_killed and witness.is_file():
            history.add(kill.model_copy(update={"records": records, "seconds": seconds}))
            self.say(f"kill {len(history.kills)}: {records:,} records, {seconds} s")
        else:
            self._add_void(result)

    def _add_void(self, result: CommandResult) -> None:
        history = self.history
        history.void += 1
        history.published = None  # it finished the broken batch, and its own
        self.say(f"void: exit code {result.exit_code}")
        if result.exit_code not in (0, 8) or history.void > MAX_VOID + len(history.kills):
            raise OperationError(
                f"an engine that should have been killed ended with {result.exit_code}",
                why=result.last_lines(),
            )

    def report(
        self, outages: Sequence[Outage], seconds: float, drained_seconds: float
    ) -> KillReport:
        self.say("the same commands undisturbed, and all of it again in another home")
        kills, comparisons = self.history.kills, compare_homes(self.rig, self.home)
        (self.home.home.parent / HISTORY_FILE).unlink(missing_ok=True)
        return KillReport(
            seed=self.history.seed,
            kills=len(kills),
            void=self.history.void,
            points=dict(Counter(f"{kill.job} {kill.point}" for kill in kills)),
            records=sum(kill.records for kill in kills),
            seconds=round(sum(kill.seconds for kill in kills), 1),
            comparisons=comparisons,
        )


def run_faults(
    settings: Settings, kills: int, seed: int = 42, say: Say = lambda text: None
) -> KillReport:
    """Kill so many engines, compare, write the report; DifferenceError when something shows."""
    folder, file = settings.home / "faults", settings.build_dir / "bench" / "faults.json"
    history = load_history(folder, seed, kills)
    if history.kills:
        say(f"going on after kill {len(history.kills)} of {kills}")
    say(f"seed {seed}")
    with open_rig(settings, folder) as rig:
        home = rig.create_home("killed")
        home.home.mkdir(parents=True, exist_ok=True)
        scenario = KillScenario(Load(), say, rig, home, history, kills)
        return run_scenario(scenario, file, f"the homes are in {folder}")


def load_history(folder: Path, seed: int, kills: int) -> KillHistory:
    """The history to go on from; anything else that stands there is cleared away."""
    file = folder / HISTORY_FILE
    if file.is_file():
        history = KillHistory.model_validate_json(file.read_bytes())
        if history.seed == seed and len(history.kills) <= kills:
            return history
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return KillHistory(seed=seed)


def save_history(folder: Path, history: KillHistory) -> None:
    new = folder / "state.new"
    new.write_text(history.model_dump_json())
    new.replace(folder / HISTORY_FILE)


def render_table(report: KillReport) -> str:
    lines = [f"{report.kills} kills, seed {report.seed}, {report.records:,} records", ""]
    lines += ["| what | with kills | undisturbed |", "|---|---|---|"]
    lines += [f"| {c.what} | {c.with_kills} | {c.undisturbed} |" for c in report.comparisons]
    lines += ["", "| struck | times |", "|---|---|"]
    lines += [f"| {point} | {times} |" for point, times in sorted(report.points.items())]
    return "\n".join(lines) + "\n"
