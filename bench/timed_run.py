"""One timed run of the whole path under the active profile: what `make benchmark` does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.config.env_files import find_root
from headgate.config.settings import load_settings
from headgate.demo.own_home import alone, emptied, replaced, stopped_on_failure
from headgate.demo.steps import NAME_WIDTH, Planted, Walk
from headgate.terminal.console import as_json, console
from headgate.terminal.steps import StepReport, Steps

if TYPE_CHECKING:
    from headgate.config.settings import Settings

SAMPLE_ROWS = 50_000


@dataclass(frozen=True)
class TimedRun:
    """How long the path took, as benchmark_results/latest.json keeps it."""

    broker: str
    mode: str
    events: int
    elapsed_seconds: float
    timestamp: str
    steps: tuple[StepReport, ...]


def timed_run() -> TimedRun:
    """Take the path and keep the result; nothing that is not embedded is emptied or stopped."""
    root = find_root(Path.cwd())
    settings = load_settings(root)
    embedded = settings.broker == "embedded" and settings.storage == "local"
    home = root / ".headgate" / "benchmark"
    environ = own_environment(home, os.environ) if embedded else dict(os.environ)
    with alone(home), replaced(environ):
        if embedded:
            emptied(home)
        result = _run(root, load_settings(root))
    folder = settings.benchmark_dir
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "latest.json").write_text(as_json(result) + "\n", encoding="utf-8")
    console.done(f"written to {folder / 'latest.json'}")
    return result


def own_environment(home: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The active profile, with everything it would write moved to this home."""
    moved = dict.fromkeys(("WAREHOUSE", "CATALOG_URI", "OPS_STORE_URL"), "")
    return {**environ, **moved, "HEADGATE_HOME": str(home)}


def _run(root: Path, settings: Settings) -> TimedRun:
    steps = Steps(settings.home / "logs", "benchmark", NAME_WIDTH)
    walk = Walk(steps, root)
    if not settings.data_file.is_file():
        walk.sample(SAMPLE_ROWS)
    allow_planted(settings)
    walk.settings()
    walk.fetch()
    steps.taken.clear()
    with stopped_on_failure(settings.home):
        walk.down()
        walk.up()
        walk.topics()
        events = walk.generate().events
        walk.process("bronze")
        walk.process("silver")
        walk.wait()
        walk.marts()
        walk.validate()
    walk.down()
    return TimedRun(
        broker=settings.broker,
        mode=settings.mode,
        events=events,
        elapsed_seconds=round(sum(step.seconds for step in steps.taken), 1),
        timestamp=datetime.now(UTC).isoformat(timespec="seconds"),
        steps=tuple(steps.taken),
    )


def allow_planted(settings: Settings) -> None:
    """A sample says how many of its rows are bad: so many dead letters are no fault."""
    from headgate.pipeline.generator.sample import planted_file

    sidecar = planted_file(settings.data_file)
    if sidecar.is_file():
        planted = Planted.model_validate_json(sidecar.read_bytes())
        os.environ["DLQ_MAX"] = str(max(settings.dlq_max, planted.bad))
