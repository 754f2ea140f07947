"""Streaming runs of jobs, in a thread of this process or in an engine process, and what Kafka shows of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.pipeline import Pipeline
from tests.support.router_job import Router

from headgate.core.engine.batch import Faults
from headgate.core.engine.host import ENGINE_FILE
from headgate.core.engine.job_kind import JOBS
from headgate.core.engine.lease import active_engine
from headgate.core.engine.run import RunContext
from headgate.core.ledger.model import Run, RunState
from headgate.filters.store.model import Standing
from headgate.filters.store.routing import RoutingStore
from headgate.local.process import alive, wait_until

SECONDS = 240


class Stream:
    """One streaming run in a thread of this process; `error` is the exception that ended it."""

    def __init__(self, pipeline: Pipeline, context: RunContext) -> None:
        self.pipeline = pipeline
        self.context = context
        self.run = context.run
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            JOBS[self.run.kind](self.context)
        except BaseException as error:  # raised in the thread; the test asserts on it
            self.error = error

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds; fail at once if the stream ends before."""
        assert wait_until(lambda: condition() or not self.is_alive, SECONDS)
        if self.error is not None:
            raise self.error
        assert condition()

    def wait_until_read(self, records: int) -> None:
        """Wait until the job's ledger accounts for at least so many records."""
        ledger = self.pipeline.store.ledger
        self.wait_for(lambda: sum(row.read for row in ledger(self.run.job)) >= records)

    def wait_for_failure(self) -> BaseException | None:
        """Wait until the stream ends by itself; the exception that ended it."""
        self._thread.join(SECONDS)
        assert not self.is_alive
        return self.error

    def stop(self) -> None:
        """Ask the stream to stop, wait for it, and mark its run as canceled."""
        self.context.stop.set()
        self._thread.join(SECONDS)
        assert not self.is_alive
        self.pipeline.store.move(self.run.job, self.run.number, RunState.CANCELED)


@contextmanager
def stream_job(pipeline: Pipeline, kind: str, faults: Faults | None = None) -> Iterator[Stream]:
    """A streaming run of the pipeline's job of this kind, stopped at the end."""
    stream = Stream(pipeline, pipeline.context(pipeline.ask_for(kind, "streaming"), faults))
    try:
        yield stream
    finally:
        stream.stop()


@contextmanager
def stream_router(router: Router) -> Iterator[Stream]:
    """The router as a stream; it must end without an error."""
    with stream_job(router.pipeline, "router") as stream:
        yield stream
    assert stream.error is None


def has_standing(router: Router, filter: str, standing: Standing, deployment: str) -> bool:
    """Whether the router reports this standing for this deployment of the filter."""
    seen = router.pipeline.store.part(RoutingStore).seen_filter(filter)
    return seen is not None and (seen.standing, seen.deployment) == (standing, deployment)


def group_offsets(pipeline: Pipeline, job: str = "") -> dict[str, int]:
    """The offsets that a job's consumer group has committed in Kafka, by partition."""
    group = f"headgate-{job or f'bronze-{pipeline.name}'}"
    admin = AdminClient({"bootstrap.servers": str(pipeline.settings.bootstrap_servers)})
    request = [ConsumerGroupTopicPartitions(group)]
    committed = admin.list_consumer_group_offsets(request)[group].result(60)
    assert all(p.topic == pipeline.topic for p in committed.topic_partitions)
    return {str(p.partition): p.offset for p in committed.topic_partitions}


def delete_records_before(pipeline: Pipeline, offsets: dict[int, int]) -> None:
    """Delete the records below these offsets, as retention would."""
    admin = AdminClient({"bootstrap.servers": str(pipeline.settings.bootstrap_servers)})
    partitions = [TopicPartition(pipeline.topic, p, offset) for p, offset in offsets.items()]
    for future in admin.delete_records(partitions).values():
        future.result(60)


@contextmanager
def engine_process(pipeline: Pipeline) -> Iterator[subprocess.Popen[str]]:
    """`headgate engine run` in a process group of its own, once it holds the lease."""
    process = pipeline.command("engine", "run")
    try:
        assert wait_until(lambda: active_engine(pipeline.store) is not None, 90)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=90)


def run_command(pipeline: Pipeline, *words: str) -> str:
    """Run a command of the pipeline that must succeed; its standard output and error."""
    command = pipeline.command(*words)
    output, errors = command.communicate(timeout=90)
    assert command.returncode == 0, errors
    return output + errors


def connect_client(pipeline: Pipeline) -> Pipeline:
    """The pipeline with the address and token of its running engine's Spark Connect server."""
    # The engine takes its lease first, and writes its file once its session serves clients; one that was
    # killed leaves its file behind.
    file = pipeline.settings.home / ENGINE_FILE
    assert wait_until(lambda: file.exists() and alive(json.loads(file.read_text())["pid"]), 90)
    engine = json.loads(file.read_text())
    connect = {
        "connect_url": f"sc://localhost:{engine['connect_port']}",
        "connect_token": engine["connect_token"],
    }
    return replace(pipeline, settings=pipeline.settings.model_copy(update=connect))


def query_engine(pipeline: Pipeline, sql: str) -> list[dict[str, Any]]:
    """The rows that `headgate sql` prints of a query on the pipeline's running engine."""
    answer = connect_client(pipeline).command("-o", "json", "sql", sql)
    output, errors = answer.communicate(timeout=90)
    assert answer.returncode == 0, errors
    return cast("list[dict[str, Any]]", json.loads(output)["items"])


def newest_run(pipeline: Pipeline) -> Run:
    """The newest run of the pipeline's bronze job."""
    run = pipeline.store.latest(f"bronze-{pipeline.name}")
    assert run
    return run


def wait_until_read(pipeline: Pipeline, records: int) -> None:
    """Wait until the bronze ledger accounts for so many records, whichever engine reads them."""

    def count_read() -> int:
        return sum(row.read for row in pipeline.ledger())

    assert wait_until(lambda: count_read() >= records, 90), (count_read(), newest_run(pipeline))
