"""Kills engines at named points, and holds what is left against a run that nobody disturbed.

A run of kills is one seed. It keeps its state after each kill and goes on where it was stopped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import orjson
from pydantic import BaseModel, ConfigDict

from headgate.checks.certificate import broken, run_certification, write
from headgate.checks.evidence import DEAD_LETTERS, declared, table_evidence
from headgate.checks.fault_rig import Rig, rig
from headgate.checks.lake import Lake, quoted
from headgate.checks.letters import origins_on_topic
from headgate.engine.faults import Point
from headgate.errors import DifferenceError, OperationError
from headgate.settings import Settings

BRONZE, SILVER = "bronze", "silver"
ROWS = (60, 600, 6_000)
ROWS_MID_WRITE = 20_000
SILVER_POINTS = (
    Point.AFTER_INTENT,
    Point.AFTER_STAGING,
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
    """How far a run of kills has come."""

    seed: int
    kills: list[Kill] = []
    void: int = 0
    rounds: int = 0


@dataclass(frozen=True)
class Comparison:
    """One thing that must be the same with and without kills."""

    what: str
    with_kills: str
    undisturbed: str

    @property
    def holds(self) -> bool:
        return self.with_kills == self.undisturbed


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


def plan(seed: int, number: int, last: Kill | None) -> Kill:
    """The next kill: where a batch is new to the engine, or while it finishes the broken one."""
    rng = Random(f"{seed}/{number}")
    rows = rng.choice(ROWS)
    if last and last.job == BRONZE and last.point in PUBLISHED and rng.random() < 0.5:
        point = rng.choice(SILVER_POINTS)
        return Kill(number=number, job=SILVER, point=point, time=1, records=0)
    point = rng.choice(tuple(Point))
    rows = ROWS_MID_WRITE if point is Point.MID_WRITE else rows
    times = (1, 2) if last and passes_again(last, point) else (1,)
    return Kill(number=number, job=BRONZE, point=point, time=rng.choice(times), records=rows)


def passes_again(last: Kill, point: Point) -> bool:
    """Whether an engine that finishes what the last kill broke passes this point in doing so."""
    return last.job == BRONZE and (last.point not in PUBLISHED or point in ALWAYS_PASSED)


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
        comparisons = compare(place, home, settings)
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
    last = state.kills[-1] if state.kills else None
    state.rounds += 1
    kill = plan(state.seed, state.rounds, last)
    started = time.monotonic()
    records = place.send(state.seed + state.rounds, kill.records) if kill.records else 0
    home.home.mkdir(parents=True, exist_ok=True)
    witness = home.home / "witness"
    witness.unlink(missing_ok=True)
    ended = place.run(home, kill.job, f"{kill.point}@{kill.time}:{witness}")
    seconds = round(time.monotonic() - started, 1)
    words = f"{kill.job} {kill.point}@{kill.time}, {records:,} records, {seconds} s"
    if ended.killed and witness.is_file():
        done = {"number": len(state.kills) + 1, "records": records, "seconds": seconds}
        state.kills.append(kill.model_copy(update=done))
        say(f"kill {len(state.kills)}: {words}")
        return
    state.void += 1
    say(f"void: {words}, exit code {ended.exit_code}")
    if ended.exit_code not in (0, 8) or state.void > MOST_VOID + len(state.kills):
        raise OperationError(
            f"an engine that should have been killed ended with {ended.exit_code}",
            why="\n".join(ended.log.strip().splitlines()[-5:]),
        )


def compare(place: Rig, home: Settings, settings: Settings) -> tuple[Comparison, ...]:
    """Finish the killed home, run a calm one, and hold one against the other."""
    calm = place.home("calm")
    shutil.rmtree(calm.home, ignore_errors=True)
    for each in (home, calm):
        for job in (BRONZE, SILVER):
            place.finish(each, job)
    contents, expected = content(home), content(calm)
    return (
        *(Comparison(what, contents[what], expected[what]) for what in expected),
        Comparison("certificate", certified(home), "holds"),
        Comparison("independent re-check", rechecked(home, settings.root), "holds"),
        Comparison("dead letters on their topic", letters(home), letters(calm)),
    )


def content(home: Settings) -> dict[str, str]:
    """Rows and content hash of each table."""
    dataset = declared(home, home.need("dataset"))
    mine = f"job = {quoted('bronze-' + dataset.name)}"
    wanted = ((dataset.bronze_table, ""), (dataset.silver_table, ""), (DEAD_LETTERS, mine))
    with Lake.open(home) as lake:
        found = {name: table_evidence(lake, name, where) for name, where in wanted}
    return {
        name: f"{table.rows:,} rows, {table.content_hash}" if table else "no table"
        for name, table in found.items()
    }


def certified(home: Settings) -> str:
    certificate = run_certification(home)
    write(certificate, home.home / "certificate.json")
    return "; ".join(broken(certificate)) or "holds"


def rechecked(home: Settings, root: Path) -> str:
    script = root / "scripts" / "recheck_certificate.py"
    catalog = home.need("catalog_uri").removeprefix("jdbc:sqlite:")
    command = [sys.executable, str(script), str(home.home / "certificate.json")]
    command += ["--catalog", catalog]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    return "; ".join(failed) or ("holds" if done.returncode == 0 else done.stderr[-200:])


def letters(home: Settings) -> str:
    """How many dead letters their topic has, each origin counted once."""
    origins = origins_on_topic(home.need("bootstrap_servers"), home.need("dlq_topic"))
    return f"{len(set(origins)):,} origins"


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


def write_report(settings: Settings, report: FaultReport) -> Path:
    file = settings.root / "bench" / "results" / "faults.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps(asdict(report), option=orjson.OPT_INDENT_2) + b"\n")
    return file
