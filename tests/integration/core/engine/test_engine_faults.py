"""An engine ends with its JVM, says why, and leaves its runs to the next one."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.dataset_events import events
from tests.support.local_stack import find_jvm
from tests.support.pipeline import Pipeline
from tests.support.streams import (
    connect_client,
    engine_process,
    newest_run,
    run_command,
    wait_until_read,
)

from headgate.core.engine.host import ENGINE_FILE
from headgate.core.engine.lease import active_engine
from headgate.core.engine.submit import ask_for
from headgate.core.ledger.model import RunState
from headgate.errors import DriverLostError
from headgate.local.process import wait_until


def kill_jvm(pipeline: Pipeline, jvm: int) -> None:
    os.kill(jvm, signal.SIGKILL)


def exhaust_heap(pipeline: Pipeline, jvm: int) -> None:
    """Ask for more bytes than the heap has; whoever asks is told that the engine is gone."""
    query = "SELECT length(repeat('x', 2000000000))"
    command = connect_client(pipeline).command("sql", query)
    _, talk = command.communicate(timeout=120)
    assert command.returncode == 8, talk
    assert "the engine does not answer" in talk
    assert "Traceback" not in talk


@pytest.mark.usefixtures("spark")
def test_a_call_that_the_jvm_cuts_off_prints_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    """Which of py4j's loggers reports it depends on when the JVM ends; this is the root logger's."""
    from py4j.java_gateway import GatewayClient, GatewayParameters

    def answer_nothing() -> None:
        connection, _ = jvm.accept()
        connection.recv(100)
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as jvm:
        thread = threading.Thread(target=answer_nothing)
        thread.start()
        client = GatewayClient(gateway_parameters=GatewayParameters(port=jvm.getsockname()[1]))
        client.send_command("c\nt\nname\ne\n", retry=False)
        thread.join()
        client.close()
    assert not caplog.records


@pytest.mark.parametrize(
    ("lose", "words"),
    [
        (exhaust_heap, "the engine's JVM ran out of memory (heap 2g)"),
        pytest.param(kill_jvm, "the engine's JVM was killed by signal 9", marks=pytest.mark.slow),
    ],
)
def test_an_engine_that_loses_its_jvm_ends_and_leaves_its_stream_wanted(
    pipeline: Pipeline, lose: Callable[[Pipeline, int], None], words: str
) -> None:
    pipeline.settings = pipeline.settings.model_copy(update={"trigger_seconds": 0.5})
    pipeline.produce(events(1, 50))
    announced = pipeline.settings.home / ENGINE_FILE
    with engine_process(pipeline) as running:
        name = f"bronze-{pipeline.name}"
        ask_for(pipeline.settings, pipeline.store, name, "streaming")
        wait_until_read(pipeline, 50)
        jvm = find_jvm(running.pid)
        token = json.loads(announced.read_text())["connect_token"]
        assert token not in Path(f"/proc/{jvm}/cmdline").read_text()
        lose(pipeline, jvm)
        _, talk = running.communicate(timeout=60)
    assert running.returncode == DriverLostError.exit_code, talk
    assert f"error HG-8003: {words}" in talk
    assert "Traceback" not in talk
    assert not announced.exists()
    assert active_engine(pipeline.store) is None
    assert (newest_run(pipeline).state, newest_run(pipeline).restarts) == (RunState.RUNNING, 0)
    assert f"waits for an engine: make up ({words})" in run_command(pipeline, "job", "list")
    pipeline.store.move(newest_run(pipeline).job, newest_run(pipeline).number, RunState.CANCELED)


def test_a_master_that_spark_refuses_is_an_error_in_words(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    log, began = pipeline.settings.home / "logs" / "spark.log", datetime.now(UTC)
    wrong = {"spark_master": "local[nonsense]"}
    pipeline.settings = pipeline.settings.model_copy(update=wrong)
    command = pipeline.command("job", "run", "silver")
    said, talk = command.communicate(timeout=120)
    assert command.returncode == 3, talk + said
    assert "Spark does not know the master SPARK_MASTER=local[nonsense]" in talk
    assert "Traceback" not in talk
    assert wait_until(lambda: active_engine(pipeline.store) is None, 10)
    errors = [line for line in log.read_text().splitlines() if " ERROR SparkContext: " in line]
    logged = datetime.fromisoformat(errors[-1].split()[0])
    assert began <= logged <= datetime.now(UTC), "whatever the time zone is, the log is in UTC"
