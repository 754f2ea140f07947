"""Filters under load while engine, API, Connect, PostgreSQL and Kafka are killed one after another.

Every event that was posted must be accounted for, and every consumer must have had the effect of each
of its events once.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import orjson

from bench.faults.fault_rig import ended
from bench.faults.filter_faults_play import FAULTS, FilterFaultReport, Play, Say, Size
from headgate.config.settings import Settings, load_settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.demo.filters.filter_stage import SOURCE, Stage, filter_of, own_environment
from headgate.errors import DifferenceError, OperationError
from headgate.local.stack import down, up

SMALL = Size(rate=20.0, calm=3.0)
UP_SECONDS = 240.0
EXTRA = ("postgres", "connect")
KNOBS = ("SPARK_MASTER", "SPARK_DRIVER_MEMORY", "SPARK_JAVA_OPTIONS")
# What is free is taken: the play may run beside other services.
PORTS = ("KAFKA_PORT", "CONNECT_PORT", "SPARK_UI_PORT", "METRICS_PORT", "KAFKA_CONNECT_PORT")


def run_filter_faults(
    settings: Settings,
    folder: Path,
    size: Size | None = None,
    faults: Sequence[str] = tuple(FAULTS),
    say: Say = lambda words: None,
) -> FilterFaultReport:
    """The whole play; DifferenceError when anything is not as it must be."""
    home = settings.home.absolute() / "filter-faults"
    down(home)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    with (
        _stoppable(),
        _own(home) as environ,
        _services(settings.root, say) as running,
        OpsStore.open(running.ops_store_url) as store,
        Stage(settings.root, home, store, environ) as stage,
    ):
        set_up(stage, say)
        play = Play(stage, running.need("bootstrap_servers"), size or Size(), say)
        report = play.perform(faults)
    write_report(folder, report)
    if report.faults:
        raise DifferenceError(
            "the kills left a trace", why="\n".join(report.faults), fix=f"read {home}/logs"
        )
    return report


def set_up(stage: Stage, say: Say) -> None:
    """Filters live, consumers listening, nothing posted yet."""
    commanded(stage, "connect", "deploy", "events")
    commanded(stage, "job", "start", f"router-{SOURCE}")
    stage.serve()
    stage.create(lambda words: None)
    for dealer in stage.documents:
        stage.approve(filter_of(dealer))
        stage.order(filter_of(dealer), "deploy")
    stage.consume()
    say("three filters are live, and their consumers listen")


def commanded(stage: Stage, *words: str) -> None:
    """A command of ours, to its end; it must succeed."""
    done = ended(stage.child("-".join(words[:2]), *words))
    if done.exit_code:
        told = "\n".join(done.log.strip().splitlines()[-8:])
        raise OperationError(f"headgate {' '.join(words)} ended with {done.exit_code}", why=told)


@contextmanager
def _stoppable() -> Generator[None]:
    """A termination ends the play as Ctrl-C does: nothing is left running."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _own(home: Path) -> Generator[dict[str, str]]:
    """This process and its children see a home of their own, whatever profile is chosen here."""
    knobs = {name: os.environ[name] for name in KNOBS if name in os.environ}
    environ = own_environment(home, {**dict.fromkeys(PORTS, "0"), **knobs})
    before = dict(os.environ)
    _replace(environ)
    try:
        yield environ
    finally:
        _replace(before)


def _replace(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)


@contextmanager
def _services(root: Path, say: Say) -> Generator[Settings]:
    """Kafka, PostgreSQL, Connect and the engine under their supervisor; gone afterwards."""
    settings = load_settings(root)
    try:
        up(settings, extra=EXTRA, timeout=UP_SECONDS, tell=say)
        yield load_settings(root)
    finally:
        down(settings.home)


def write_report(folder: Path, report: FilterFaultReport) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = {**asdict(report), "faults": report.faults}
    file = folder / "filter_faults.json"
    file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
