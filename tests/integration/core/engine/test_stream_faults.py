"""A stream outlives its engine and its broker, and says so while it waits."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from tests.support.dataset_events import events
from tests.support.local_stack import RECOVERY_SECONDS, STRIKES, Feeder, Stack
from tests.support.oracle import expected_bronze
from tests.support.pipeline import TYPES, Pipeline, create_topic
from tests.support.services import RunningBroker
from tests.support.streams import (
    engine_process,
    newest_run,
    run_command,
    stream_job,
    wait_until_read,
)

from headgate.core.ledger.model import RunState
from headgate.local.process import wait_until

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("HEADGATE_KILLS", "6"))
NewPipeline = Callable[..., Pipeline]


@pytest.fixture
def pipeline(new_pipeline: NewPipeline) -> Pipeline:
    made = new_pipeline()
    made.settings = made.settings.model_copy(update={"trigger_seconds": 0.5})
    return made


def test_a_stream_goes_on_after_its_engine_was_killed_and_can_be_restarted(
    pipeline: Pipeline,
) -> None:
    pipeline.produce(events(1, 50))
    with engine_process(pipeline) as first:
        assert "SUBMITTED" in run_command(pipeline, "job", "start", "bronze")
        wait_until_read(pipeline, 50)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait(30)
    pipeline.produce(events(2, 50, 50))
    assert "waits for an engine" in run_command(pipeline, "job", "list")
    with engine_process(pipeline):
        wait_until_read(pipeline, 100)
        assert (newest_run(pipeline).number, newest_run(pipeline).restarts) == (1, 1)
        assert "went away" in run_command(pipeline, "job", "show", "bronze")
        run_command(pipeline, "job", "restart", "bronze")
        pipeline.produce(events(3, 50, 100))
        wait_until_read(pipeline, 150)
        assert (newest_run(pipeline).number, newest_run(pipeline).state) == (2, RunState.RUNNING)
        run_command(pipeline, "job", "stop", "bronze")
    assert newest_run(pipeline).state is RunState.CANCELED
    assert pipeline.bronze() == expected_bronze(pipeline.records(), TYPES)


def test_a_stream_says_that_its_broker_is_away_and_comes_back_by_itself(
    pipeline: Pipeline, private_broker: RunningBroker
) -> None:
    for name in (pipeline.topic, f"{pipeline.topic}-dlq"):
        create_topic(private_broker.bootstrap, name, 1, 1_048_588)
    moved = {"bootstrap_servers": private_broker.bootstrap}
    pipeline.settings = pipeline.settings.model_copy(update=moved)
    pipeline.produce(events(1, 20))
    with stream_job(pipeline, "bronze") as stream:
        stream.wait_until_read(20)
        private_broker.kill()
        assert wait_until(lambda: bool(newest_run(pipeline).error_text), 30)
        assert "does not answer" in (newest_run(pipeline).error_text or "")
        private_broker.restart()
        pipeline.produce(events(2, 20, 20))
        stream.wait_until_read(40)
        assert wait_until(lambda: newest_run(pipeline).error_text is None, 30)
    assert pipeline.bronze() == expected_bronze(pipeline.records(), TYPES)


@pytest.mark.timeout(600 + 90 * KILLS)
def test_streams_work_again_after_every_kind_of_kill_and_lose_nothing(tmp_path: Path) -> None:
    """HEADGATE_KILLS says how many kills; with 30 it takes about 20 minutes."""
    rng = Random(15)
    kinds: list[str] = []
    while len(kinds) < KILLS:
        kinds += rng.sample(list(STRIKES), len(STRIKES))
    stack = Stack(tmp_path)
    with stack.running() as pipeline:
        feeder = Feeder(str(pipeline.settings.bootstrap_servers), pipeline.topic, seed=15)
        feeder.start()
        assert stack.wait_until_all_work(datetime.now(UTC)) < 120
        for kind in kinds[:KILLS]:
            time.sleep(rng.uniform(0.0, 4.0))
            stack.strike(kind)
        feeder.stop()
        stack.drain()
        sums = stack.check()
    print(f"{feeder.bursts} bursts, {feeder.aborted} aborted, {feeder.failed} failed: {sums}")
    assert feeder.aborted
    assert sums["refused"]
    assert [struck for struck in stack.kills if struck.seconds > RECOVERY_SECONDS] == []
