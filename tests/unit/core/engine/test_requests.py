"""What is asked for becomes a run, joins one that is under way, or is refused with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.support.run_requests import REPAIR

from headgate.config.settings import Settings, streams_of
from headgate.core.engine.run_options import TopicRunForm, TopicRunOptions
from headgate.core.engine.submit import ask_for, full_name, need_engine
from headgate.core.ledger.model import RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import ConflictError, UnavailableError, UsageError

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
    first = ask_for(settings, store, "bronze", "streaming")
    assert first.state is RunState.SUBMITTED
    assert ask_for(settings, store, "bronze", "streaming") == first


def test_a_batch_run_beside_a_stream_is_refused_with_the_way_to_switch(
    settings: Settings, store: OpsStore
) -> None:
    ask_for(settings, store, "bronze", "streaming")
    with pytest.raises(ConflictError, match="reads new records by itself") as error:
        ask_for(settings, store, "bronze", "batch")
    assert "headgate job stop bronze-taxi" in error.value.fix
    assert ask_for(settings, store, "silver", "batch").number == 1


def test_a_stream_under_another_revision_is_to_be_restarted(
    settings: Settings, store: OpsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_for(settings, store, "bronze", "streaming")
    monkeypatch.setattr("headgate.pipeline.job_kinds.keep", lambda store, revision: "another")
    with pytest.raises(ConflictError, match="under another revision") as error:
        ask_for(settings, store, "bronze", "streaming")
    assert "headgate job restart bronze-taxi" in error.value.fix


def test_what_follows_no_source_is_no_stream(settings: Settings, store: OpsStore) -> None:
    with pytest.raises(UsageError, match="maintain is no stream"):
        ask_for(settings, store, "maintain", "streaming")


def test_a_run_keeps_what_it_reads_as_it_was_asked_for(settings: Settings, store: OpsStore) -> None:
    there = settings.model_copy(update={"topic": "x", "trigger_seconds": 2.5})
    run = ask_for(there, store, "bronze", "streaming")
    assert TopicRunOptions.of(run) == TopicRunOptions(
        topic="x",
        dlq_topic="t.dlq",
        trigger_seconds=2.5,
        max_offsets_per_batch=there.max_offsets_per_batch,
    )
    assert ask_for(there, store, "bronze", "streaming") == run


def test_a_stream_that_reads_otherwise_is_to_be_restarted(
    settings: Settings, store: OpsStore
) -> None:
    ask_for(settings, store, "bronze", "streaming")
    other = settings.model_copy(update={"topic": "x"})
    with pytest.raises(ConflictError, match="reads otherwise") as error:
        ask_for(other, store, "bronze", "streaming")
    assert error.value.why == "its run 1 has TOPIC t, asked is x"
    assert "headgate job restart bronze-taxi" in error.value.fix


def test_all_that_a_stream_would_read_otherwise_is_named(
    settings: Settings, store: OpsStore
) -> None:
    changed = {"topic": "x", "trigger_seconds": 2.5, "max_offsets_per_batch": 7}
    ask_for(settings.model_copy(update=changed), store, "bronze", "streaming")
    with pytest.raises(ConflictError, match="reads otherwise") as error:
        ask_for(settings, store, "bronze", "streaming")
    assert error.value.why == (
        f"its run 1 has MAX_OFFSETS_PER_BATCH 7, asked is {settings.max_offsets_per_batch},"
        " TOPIC x, asked is t, TRIGGER_SECONDS 2.5, asked is 10"
    )


def test_a_repair_has_the_declared_topic_beside_its_form(
    settings: Settings, store: OpsStore
) -> None:
    run = ask_for(settings, store, "bronze", "batch", REPAIR)
    options = TopicRunOptions.of(run)
    assert (options.form, options.topic) == (TopicRunForm.REPAIR, "t")
    assert ask_for(settings, store, "bronze", "batch", REPAIR) == run


def test_a_request_of_another_kind_is_refused(settings: Settings, store: OpsStore) -> None:
    with pytest.raises(ValidationError, match="accepted_by"):
        ask_for(settings, store, "silver", "batch", REPAIR)
    assert store.runs() == ()


def test_a_batch_run_has_no_trigger_to_differ_in(settings: Settings, store: OpsStore) -> None:
    first = ask_for(settings, store, "bronze", "batch")
    slower = settings.model_copy(update={"trigger_seconds": 99.0})
    assert ask_for(slower, store, "bronze", "batch") == first
    with pytest.raises(ConflictError, match="in another form"):
        ask_for(settings, store, "bronze", "batch", REPAIR)
