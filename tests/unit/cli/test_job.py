"""`headgate job`: how a run is told, and which streams are restarted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.store.conftest import clock, made, store

from headgate.checks.lag import Lag, PartitionLag
from headgate.cli import job_mend, job_stream
from headgate.cli.console import console
from headgate.cli.job_report import report
from headgate.cli.job_stream import restart
from headgate.engine.expiry import ExpiredError
from headgate.engine.lease import EngineLease
from headgate.jobs.requests import ask_for
from headgate.settings import Settings
from headgate.store.model import Progress, Run, RunState
from headgate.store.ops import OpsStore

ROOT = Path(__file__).parents[3]
TIME = datetime(2024, 1, 1, tzinfo=UTC)
DONE = Run("bronze-taxi", 1, "bronze", "taxi", "batch", "r", {}, RunState.FINISHED, 0, TIME)
# Fixtures, which pytest finds by their names in this module.
__all__ = ["clock", "made", "store"]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        root=ROOT, home=tmp_path, dataset="taxi", topic="t", dlq_topic="t.dlq", mode="batch"
    )


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        (DONE, "nothing new"),
        (replace(DONE, progress=Progress(words="5 accepted")), "5 accepted"),
        (replace(DONE, state=RunState.FAILED, error_text="it broke | why"), "it broke"),
        (replace(DONE, state=RunState.CANCELED), ""),
    ],
)
def test_a_run_that_found_nothing_says_so(run: Run, outcome: str) -> None:
    assert report(run).outcome == outcome


@pytest.fixture
def restarted(
    settings: Settings, store: OpsStore, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[tuple[str, ...]]]:
    """What `job restart` without a JOB starts again, in place of an engine that does it."""
    found: list[tuple[str, ...]] = []

    def started(settings: Settings, store: OpsStore, jobs: tuple[str, ...]) -> list[Run]:
        found.append(jobs)
        return []

    monkeypatch.setattr(job_stream, "open_store", lambda: (settings, store))
    monkeypatch.setattr(job_stream, "started", started)
    lease = EngineLease.take(store)
    assert lease is not None
    with lease:
        yield found


def test_the_streams_that_run_are_restarted_whatever_the_mode_is(
    settings: Settings, store: OpsStore, restarted: list[tuple[str, ...]]
) -> None:
    for kind in ("bronze", "silver"):
        ask_for(settings, store, kind, "streaming", {})
    told = CliRunner().invoke(restart, [], catch_exceptions=False).output
    assert restarted == [("bronze-taxi", "silver-taxi")]
    assert "MODE is batch" not in told


def test_where_no_stream_runs_the_mode_says_which_to_start(
    settings: Settings, store: OpsStore, restarted: list[tuple[str, ...]]
) -> None:
    ask_for(settings, store, "silver", "batch", {})
    CliRunner().invoke(restart, [], catch_exceptions=False)
    assert restarted == [("bronze",)]


def test_what_expired_before_the_first_batch_is_named(
    settings: Settings, store: OpsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger has no batch to count from: the refused run knows what is gone."""
    run = ask_for(settings, store, "bronze", "batch", {})
    words = (
        "5 records of t expired | the topic no longer has them (partition 0: offsets 0 to 4) | fix"
    )
    store.move(run.job, run.number, RunState.FAILED, ExpiredError.code, words)
    lag = Lag("bronze-taxi", "t", (PartitionLag(0, 5, 5, 9, 4, None, 0),))
    monkeypatch.setattr("headgate.checks.lag.measure", lambda *_: lag)
    monkeypatch.setattr(job_mend, "open_store", lambda: (settings, store))
    said: list[str] = []
    monkeypatch.setattr(console, "say", said.append)
    CliRunner().invoke(job_mend.accept_gap, ["bronze", "--dry-run"], catch_exceptions=False)
    assert said == [
        "5 records of t expired: the topic no longer has them (partition 0: offsets 0 to 4)"
    ]
