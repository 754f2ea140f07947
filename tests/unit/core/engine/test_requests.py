"""What is asked for becomes a run, joins one that is under way, or is refused with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.config.settings import Settings, streams_of
from headgate.core.engine.run import Reading, trigger_of
from headgate.core.engine.submit import ask_for, full_name, need_engine
from headgate.core.ledger.model import JobSpec, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import ConflictError, UnavailableError, UsageError
from headgate.pipeline.revision import declared_revision, fetch, keep

ROOT = Path(__file__).parents[4]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        root=ROOT, home=tmp_path, dataset="taxi", topic="t", dlq_topic="t.dlq", mode="batch"
    )


@pytest.mark.parametrize(
    ("mode", "streams"),
    [
        ("batch", ("bronze",)),
        ("streaming_bronze", ("bronze",)),
        ("streaming_silver", ("bronze", "silver")),
    ],
)
def test_the_mode_says_which_jobs_are_streams(mode: str, streams: tuple[str, ...]) -> None:
    assert streams_of(mode) == streams


def test_a_job_is_known_by_its_short_name(settings: Settings) -> None:
    assert full_name(settings, "bronze") == "bronze-taxi"
    assert full_name(settings, "silver-orders") == "silver-orders"
    with pytest.raises(UsageError, match="there is no job gold"):
        full_name(settings, "gold")


def test_without_an_engine_nothing_can_stream(store: OpsStore) -> None:
    with pytest.raises(UnavailableError, match="no engine is running") as error:
        need_engine(store)
    assert "make up" in error.value.fix
    assert store.runs() == ()


def test_a_stream_that_is_under_way_is_not_started_twice(
    settings: Settings, store: OpsStore
) -> None:
    first = ask_for(settings, store, "bronze", "streaming", {})
    assert first.state is RunState.SUBMITTED
    assert ask_for(settings, store, "bronze", "streaming", {}) == first


def test_a_batch_run_beside_a_stream_is_refused_with_the_way_to_switch(
    settings: Settings, store: OpsStore
) -> None:
    ask_for(settings, store, "bronze", "streaming", {})
    with pytest.raises(ConflictError, match="reads new records by itself") as error:
        ask_for(settings, store, "bronze", "batch", {})
    assert "headgate job stop bronze-taxi" in error.value.fix
    assert ask_for(settings, store, "silver", "batch", {}).number == 1


def test_a_stream_under_another_revision_is_to_be_restarted(
    settings: Settings, store: OpsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_for(settings, store, "bronze", "streaming", {})
    monkeypatch.setattr("headgate.pipeline.job_kinds.keep", lambda store, revision: "another")
    with pytest.raises(ConflictError, match="under another revision") as error:
        ask_for(settings, store, "bronze", "streaming", {})
    assert "headgate job restart bronze-taxi" in error.value.fix


def test_what_follows_no_source_is_no_stream(settings: Settings, store: OpsStore) -> None:
    with pytest.raises(UsageError, match="maintain is no stream"):
        ask_for(settings, store, "maintain", "streaming", {})


def test_a_run_keeps_what_it_reads_as_it_was_asked_for(settings: Settings, store: OpsStore) -> None:
    there = settings.model_copy(update={"topic": "x", "trigger_seconds": 2.5})
    run = ask_for(there, store, "bronze", "streaming", {})
    revision = fetch(store, run.revision)
    # The engine's own settings say something else.
    assert Reading.of(run, revision, settings) == Reading.declared(revision, there)
    assert Reading.of(run, revision, settings).topic == "x"
    assert trigger_of(run, settings) == 2.5
    assert ask_for(there, store, "bronze", "streaming", {}) == run


def test_a_stream_that_reads_otherwise_is_to_be_restarted(
    settings: Settings, store: OpsStore
) -> None:
    ask_for(settings, store, "bronze", "streaming", {})
    other = settings.model_copy(update={"topic": "x"})
    with pytest.raises(ConflictError, match="reads otherwise") as error:
        ask_for(other, store, "bronze", "streaming", {})
    assert error.value.why == "its run 1 has TOPIC t, asked is x"
    assert "headgate job restart bronze-taxi" in error.value.fix


def test_a_stream_of_before_what_it_reads_was_kept_is_the_same_one(
    settings: Settings, store: OpsStore
) -> None:
    revision = declared_revision(settings, "taxi")
    hash_ = keep(store, revision)
    old = store.submit(JobSpec("bronze-taxi", "bronze", "taxi", "streaming", hash_))
    assert ask_for(settings, store, "bronze", "streaming", {}) == old
    assert Reading.of(old, revision, settings) == Reading.declared(revision, settings)


def test_a_batch_run_has_no_trigger_to_differ_in(settings: Settings, store: OpsStore) -> None:
    first = ask_for(settings, store, "bronze", "batch", {})
    slower = settings.model_copy(update={"trigger_seconds": 99.0})
    assert ask_for(slower, store, "bronze", "batch", {}) == first
    with pytest.raises(ConflictError, match="in another form"):
        ask_for(settings, store, "bronze", "batch", {"form": "repair"})
