"""`headgate job`: how a run is told, and which streams are restarted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support.clock import ManualClock

from headgate.cli.job import group as job_mend
from headgate.cli.job import run as job_stream
from headgate.cli.job import show as job_show
from headgate.cli.job.run import restart, run_job
from headgate.cli.main import cli
from headgate.config.settings import Settings
from headgate.core.engine.lag import Lag, PartitionLag
from headgate.core.engine.lease import NAME, EngineLease
from headgate.core.engine.submit import ask_for, need_broker
from headgate.core.kafka.offsets import ExpiredError
from headgate.core.ledger.model import JobSpec, Lease, Progress, Run, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import InterruptedByUserError, UnavailableError, UsageError
from headgate.terminal import runs as job_report
from headgate.terminal.console import console
from headgate.terminal.runs import EngineWatch, RunReport, carried_out, interrupted, report

ROOT = Path(__file__).parents[3]
TIME = datetime(2024, 1, 1, tzinfo=UTC)
DONE = Run("bronze-taxi", 1, "bronze", "taxi", "batch", "r", {}, RunState.FINISHED, 0, TIME)


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


def test_only_what_is_judged_by_rules_can_fail_on_them(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "datasets").mkdir()
    monkeypatch.chdir(project)
    result = CliRunner().invoke(cli, ["job", "run", "bronze", "--fail-on", "error"])
    assert isinstance(result.exception, UsageError)
    assert "bronze-taxi judges by no rules" in result.exception.what


def test_the_streams_that_run_are_restarted_whatever_the_mode_is(
    settings: Settings, store: OpsStore, restarted: list[tuple[str, ...]]
) -> None:
    for kind in ("bronze", "silver"):
        ask_for(settings, store, kind, "streaming")
    told = CliRunner().invoke(restart, [], catch_exceptions=False).output
    assert restarted == [("bronze-taxi", "silver-taxi")]
    assert "MODE is batch" not in told


def test_where_no_stream_runs_the_mode_says_which_to_start(
    settings: Settings, store: OpsStore, restarted: list[tuple[str, ...]]
) -> None:
    ask_for(settings, store, "silver", "batch")
    CliRunner().invoke(restart, [], catch_exceptions=False)
    assert restarted == [("bronze",)]


def test_what_expired_before_the_first_batch_is_named(
    settings: Settings, store: OpsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger has no batch to count from: the refused run knows what is gone."""
    run = ask_for(settings, store, "bronze", "batch")
    words = (
        "5 records of t expired | the topic no longer has them (partition 0: offsets 0 to 4) | fix"
    )
    store.move(run.job, run.number, RunState.FAILED, ExpiredError.code, words)
    lag = Lag("bronze-taxi", "t", (PartitionLag(0, 5, 5, 9, 4, None, 0),))
    monkeypatch.setattr("headgate.core.engine.lag.measure", lambda *_: lag)
    monkeypatch.setattr(job_mend, "open_store", lambda: (settings, store))
    said: list[str] = []
    monkeypatch.setattr(console, "say", said.append)
    CliRunner().invoke(job_mend.accept_gap, ["bronze", "--dry-run"], catch_exceptions=False)
    assert said == [
        "5 records of t expired: the topic no longer has them (partition 0: offsets 0 to 4)"
    ]


def test_a_failed_run_says_why_and_not_how_far_it_came() -> None:
    run = replace(DONE, state=RunState.FAILED, error_text="it broke | why")
    assert report(replace(run, progress=Progress(words="5 accepted"))).outcome == "it broke"


def test_a_run_that_waits_for_an_engine_says_why_the_last_one_went() -> None:
    run = replace(DONE, state=RunState.RUNNING, error_text="the engine's JVM ran out | why")
    assert report(run, engine=False).outcome == (
        "waits for an engine: make up (the engine's JVM ran out)"
    )


def listed(
    settings: Settings, store: OpsStore, monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[list[str], list[str]]:
    """The jobs that `job list` shows, and what it says besides."""
    said: list[str] = []
    rows: list[RunReport] = []
    monkeypatch.setattr(job_show, "open_store", lambda: (settings, store))
    monkeypatch.setattr(console, "say", said.append)
    monkeypatch.setattr(console, "data", rows.extend)
    CliRunner().invoke(job_show.list_runs, list(words), catch_exceptions=False)
    return [f"{row.job}/{row.run}" for row in rows], said


def test_the_list_of_newest_runs_has_all_that_run_and_says_when_it_is_cut(
    settings: Settings, store: OpsStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(job: str, mode: str = "batch") -> Run:
        clock.advance(1)
        return store.submit(JobSpec(job, "bronze", job, mode, "r"))

    submit("stream", "streaming")
    for number in range(25):
        run = submit(f"batch{number}")
        store.move(run.job, run.number, RunState.CANCELED)
    again = submit("batch0")
    store.move(again.job, again.number, RunState.CANCELED)

    shown, said = listed(settings, store, monkeypatch, "--newest")
    assert shown[:2] == ["batch0/2", "batch24/1"], "by the newest run of each job"
    assert shown[-1] == "stream/1", "a stream is shown however long ago it was started"
    assert len(shown) == 21
    assert said == ["21 of 26 jobs are shown: -n 26 shows all"]

    shown, said = listed(settings, store, monkeypatch, "-n", "3")
    assert shown == ["batch0/2", "batch24/1", "batch23/1", "stream/1"]
    assert said == ["4 of 27 runs are shown: -n 27 shows all"]

    shown, said = listed(settings, store, monkeypatch, "--newest", "-n", "26")
    assert (len(shown), said) == (26, [])


class Waiting:
    """A command that waits for a run, over a clock of its own."""

    def __init__(self, store: OpsStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.said = 1_000.0, list[str]()
        monkeypatch.setattr(job_report.time, "monotonic", lambda: self.now)
        self._watch, self._store = EngineWatch(store, self.said.append), store

    def look(self, seconds: float = 0.0, run: Run = DONE) -> None:
        self.now += seconds
        self._watch(self._store.run(run.job, run.number))


@pytest.fixture
def waiting(store: OpsStore, monkeypatch: pytest.MonkeyPatch) -> Waiting:
    store.submit(JobSpec("bronze-taxi", "bronze", "taxi", "batch", "r"))
    return Waiting(store, monkeypatch)


def take_lease(store: OpsStore, holder: str) -> Lease:
    lease = store.acquire(NAME, holder, 3_600)
    assert lease is not None
    return lease


def test_a_wait_says_that_its_engine_is_gone_and_that_another_goes_on(
    store: OpsStore, waiting: Waiting
) -> None:
    lease = take_lease(store, "first")
    store.claim("bronze-taxi", 1, "first")
    waiting.look()
    store.trouble("bronze-taxi", 1, "HG-8003", "the engine's JVM was killed by signal 9 | why")
    store.release(lease)
    waiting.look(0.2)
    waiting.look(0.2)
    take_lease(store, "second")
    waiting.look(EngineWatch.ABSENT_SECONDS)
    assert waiting.said == [
        "the engine went away (the engine's JVM was killed by signal 9);"
        " waiting for it to come back"
    ]
    store.claim("bronze-taxi", 1, "second")
    waiting.look(0.2)
    assert waiting.said[1:] == ["an engine is there again and goes on"]


def test_a_wait_ends_when_no_engine_comes_back(store: OpsStore, waiting: Waiting) -> None:
    store.release(take_lease(store, "first"))
    waiting.look()
    waiting.look(EngineWatch.ABSENT_SECONDS - 1)
    with pytest.raises(UnavailableError, match="none has taken its place") as caught:
        waiting.look(2)
    assert caught.value.exit_code == 8


def test_a_wait_ends_when_every_engine_dies_before_it_works(
    store: OpsStore, waiting: Waiting
) -> None:
    for number in range(int(EngineWatch.IDLE_SECONDS / 20)):
        lease = take_lease(store, f"engine{number}")
        waiting.look(15)
        store.release(lease)
        waiting.look(5)
    with pytest.raises(UnavailableError, match="none has taken its place"):
        waiting.look(16)


def test_an_interrupted_wait_says_that_the_run_goes_on_and_how_to_stop_it() -> None:
    elsewhere, here = interrupted(DONE, elsewhere=True), interrupted(DONE, elsewhere=False)
    assert elsewhere.what == "interrupted: bronze-taxi run 1 goes on in the engine"
    assert "headgate job stop bronze-taxi" in elsewhere.fix
    assert "stopped between two batches" in here.what
    assert elsewhere.exit_code == here.exit_code == 130


def test_an_interrupted_command_tells_it(
    settings: Settings, store: OpsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> Run:
        raise KeyboardInterrupt

    monkeypatch.setattr("headgate.core.engine.submit.wait_for", interrupt)
    run = store.submit(JobSpec("bronze-taxi", "bronze", "taxi", "batch", "r"))
    take_lease(store, "an engine")
    with pytest.raises(InterruptedByUserError, match="goes on in the engine"):
        carried_out(settings, store, run)


@pytest.mark.parametrize("job", ["bronze", "quality-taxi", "router", "replay-a"])
def test_without_a_broker_no_run_is_asked_for_and_no_spark_started(
    settings: Settings, store: OpsStore, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    monkeypatch.setattr("headgate.cli.job.run.open_store", lambda: (settings, store))
    with pytest.raises(UnavailableError, match="the embedded broker is not running") as caught:
        CliRunner().invoke(run_job, [job], catch_exceptions=False)
    assert caught.value.exit_code == 8
    assert "make up" in caught.value.fix
    assert store.runs() == ()


def test_silver_needs_no_broker(settings: Settings) -> None:
    need_broker(settings, "silver")
    need_broker(settings, "maintain")
