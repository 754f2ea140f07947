"""dbt as a child process: what it is told, what it says, and that it is gone afterwards."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from headgate.pipeline.dbt.dbt_scope import Scope

CHILD = "headgate.pipeline.dbt.child"
FINISHED = frozenset({"LogModelResult", "LogTestResult", "LogSeedResult", "LogSkipBecauseError"})


@dataclass(frozen=True)
class Step:
    """One model, seed or test that dbt has finished."""

    done: int
    total: int | None
    name: str
    status: str


@dataclass(frozen=True)
class Outcome:
    """How the process ended, and what dbt complained about."""

    exit_code: int
    timed_out: bool
    complaints: tuple[str, ...]


Watch = Callable[[Step], None]


def unwatched(step: Step) -> None:
    """For callers that need no progress."""


def run_dbt(
    commands: Sequence[Sequence[str]],
    given: Mapping[str, str],
    scope: Scope,
    project: Path,
    environ: Mapping[str, str],
    watch: Watch,
    timeout: float | None,
) -> Outcome:
    """The commands one after the other, up to the first that fails."""
    process = subprocess.Popen(
        [sys.executable, "-m", CHILD, told(commands, given, scope)],
        cwd=project,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with _ended(process, timeout) as timed_out:
        complaints = _follow(process.stdout or (), watch)
    return Outcome(process.returncode, timed_out.is_set(), tuple(complaints))


@contextmanager
def _ended(process: subprocess.Popen[str], timeout: float | None) -> Generator[threading.Event]:
    """However the block is left, the process is gone after it."""
    timed_out = threading.Event()

    def give_up() -> None:
        timed_out.set()
        process.kill()

    timer = threading.Timer(timeout or threading.TIMEOUT_MAX, give_up)
    timer.daemon = True
    timer.start()
    try:
        with process:
            try:
                yield timed_out
            except BaseException:
                process.kill()
                raise
    finally:
        timer.cancel()


class _NodeInfo(BaseModel):
    model_config = ConfigDict(frozen=True)

    node_name: str = ""
    node_status: str = ""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True)

    node_info: _NodeInfo = _NodeInfo()
    node_count: int | None = None


class _Info(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    level: str
    msg: str


class _Event(BaseModel):
    """A line of dbt's JSON log."""

    model_config = ConfigDict(frozen=True)

    info: _Info
    data: _Data = _Data()


def _follow(lines: Iterable[str], watch: Watch) -> list[str]:
    """Tells `watch` of each finished step; what dbt complains about is returned."""
    complaints: list[str] = []
    done, total = 0, None
    for line in lines:
        try:
            event = _Event.model_validate_json(line)
        except ValidationError:
            complaints.append(line.rstrip())
            continue
        total = event.data.node_count or total
        if event.info.name in FINISHED:
            done += 1
            watch(
                Step(done, total, event.data.node_info.node_name, event.data.node_info.node_status)
            )
        if event.info.level == "error":
            complaints.append(event.info.msg.strip())
    return [text for text in complaints if text]


def told(commands: Sequence[Sequence[str]], given: Mapping[str, str], scope: Scope) -> str:
    """What the process is to do, as its one argument."""
    quiet = ["--log-format", "json", "--log-format-file", "text", "--no-use-colors"]
    shared = [*quiet, "--no-use-colors-file", "--vars", orjson.dumps(given).decode()]
    document = {
        "commands": [[*command, *shared] for command in commands],
        "shared": shared,
        "active": scope.active,
        "tables": dict(scope.tables),
        "present": sorted(scope.present),
    }
    return orjson.dumps(document).decode()
