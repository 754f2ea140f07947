"""Closed windows on a real broker, a UDP listener and an HTTP receiver, through kills and outages."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.support.metric_sinks import BATCH_METRICS, settle_counted_batch
from tests.support.metric_windows import FEW_ROWS, SHAPE, event_time, settle_batch
from tests.support.services import RunningBroker

from headgate.config.settings import Settings
from headgate.core.engine.telemetry import sinks_of
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.delivery import Deliverer
from headgate.core.metrics.windows import Emitter, WindowSums

pytestmark = pytest.mark.integration
WINDOWS = 7


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ops.db'}"


@pytest.fixture
def store(url: str) -> Iterator[OpsStore]:
    with OpsStore.open(url) as store:
        yield store


def settings(bootstrap: str, topic: str, **more: str) -> Settings:
    return Settings.model_validate(
        {"broker": "kafka", "bootstrap_servers": bootstrap, "metrics_topic": topic, **more}
    )


def close_windows(store: OpsStore, offset: int, rows: int) -> None:
    """Some windows with `rows` rows each, all of them errors."""
    sums = WindowSums(rows, {"negative": rows}, {"ERROR": rows}, (FEW_ROWS,), "r1")
    settle_batch(store, offset, {10 * n: event_time(10 * n) for n in range(WINDOWS)})
    Emitter(store, SHAPE, lambda s: dict.fromkeys(s, sums)).close_due(everything=True)


def consume_records(bootstrap: str, topic: str) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    """Key, value and headers of every record of a topic with one partition."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    )
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        while len(found) < end:
            for message in consumer.consume(end - len(found), timeout=5):
                key, value = message.key(), message.value()
                assert isinstance(key, bytes)
                assert isinstance(value, bytes)
                headers: Any = message.headers()
                told = {name: text.decode() for name, text in headers}
                found.append((key.decode(), orjson.loads(value), told))
        return found
    finally:
        consumer.close()


def errors_once(records: list[tuple[str, dict[str, Any], dict[str, str]]]) -> int:
    """The errors that a consumer counts that keys on window and keeps the newest sequence."""
    newest: dict[str, dict[str, Any]] = {}
    for _, value, _ in records:
        known = newest.get(value["window_start"])
        if value["record"] == "window" and (not known or known["sequence"] < value["sequence"]):
            newest[value["window_start"]] = value
    return sum(value["dq_error_total"] for value in newest.values())


def test_windows_reach_the_topic_which_is_made_where_it_is_absent(
    broker: RunningBroker, store: OpsStore
) -> None:
    topic = "made.by.the.sink"
    deliverer = Deliverer(store, sinks_of(settings(broker.bootstrap, topic)))
    close_windows(store, 0, rows=3)
    assert deliverer.deliver_now() == (WINDOWS, {})
    deliverer.close()
    records = consume_records(broker.bootstrap, topic)
    assert Counter(value["record"] for _, value, _ in records) == {
        "window": WINDOWS,
        "aggregate": WINDOWS,
    }
    six = {"window_start", "env", "dc", "table_name", "topic_name", "dq_error_total"}
    assert all(six <= value.keys() for _, value, _ in records)
    assert {key for key, _, _ in records} == {"orders_onprem"}
    _, value, headers = records[0]
    assert headers == {
        "headgate.id": value["id"],
        "headgate.job": value["job"],
        "headgate.window_start": value["window_start"],
        "headgate.sequence": "1",
        "headgate.revision": "r1",
    }


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from headgate.core.engine.telemetry import sinks_of
    from headgate.core.metrics.delivery import Deliverer
    from headgate.config.settings import Settings
    from headgate.core.ledger.ops_store import OpsStore

    url, bootstrap, topic = sys.argv[1:]
    chosen = {"broker": "kafka", "bootstrap_servers": bootstrap, "metrics_topic": topic}
    store = OpsStore.open(url)
    store.windows_sent = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    Deliverer(store, sinks_of(Settings.model_validate(chosen))).deliver()
"""


def test_a_kill_between_sending_and_marking_counts_nothing_twice(
    broker: RunningBroker, store: OpsStore, url: str
) -> None:
    topic = broker.new_topic(prefix="killed")
    deliverer = Deliverer(store, sinks_of(settings(broker.bootstrap, topic)))
    close_windows(store, 0, rows=5)
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), url, broker.bootstrap, topic], timeout=240
    )
    assert killed.returncode == -signal.SIGKILL
    deliverer.deliver_now()
    close_windows(store, 1, rows=6)
    deliverer.deliver_now()
    deliverer.close()
    records = consume_records(broker.bootstrap, topic)
    first = [value for _, value, _ in records if value["sequence"] == 1]
    assert len(first) == 2 * len({value["id"] for value in first}), "they were sent twice"
    by_id: dict[str, dict[str, Any]] = {}
    for _, value, _ in records:
        assert by_id.setdefault(value["id"], value) == value, "one id, one content"
    assert errors_once(records) == 6 * WINDOWS
    assert {v["late"] for _, v, _ in records if v["sequence"] == 2} == {True}


@pytest.fixture
def agent() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.bind(("127.0.0.1", 0))
        agent.settimeout(0.5)
        yield agent


def sum_counters(agent: socket.socket) -> Counter[str]:
    """What an agent adds up, by name."""
    sums: Counter[str] = Counter()
    while True:
        try:
            datagram = agent.recv(65_535).decode()
        except TimeoutError:
            return sums
        for line in datagram.splitlines():
            name, _, rest = line.partition(":")
            value, kind, *_ = rest.split("|")
            if kind == "c":
                sums[name] += int(value)


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[dict[str, Any]], list[int]]]:
    """An HTTP receiver: its URL, what it took, and the statuses it answers with, the last again."""
    taken: list[dict[str, Any]] = []
    statuses = [200]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
            if status == 200:
                taken.extend(orjson.loads(content))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", taken, statuses
        server.shutdown()
        thread.join()


def test_all_sinks_say_the_same_through_an_outage_and_late_rows(
    broker: RunningBroker,
    store: OpsStore,
    agent: socket.socket,
    receiver: tuple[str, list[dict[str, Any]], list[int]],
) -> None:
    topic = broker.new_topic(prefix="all")
    push_url, taken, statuses = receiver
    more = {
        "dogstatsd_address": f"127.0.0.1:{agent.getsockname()[1]}",
        "metrics_push_url": push_url,
        "metrics_push_token": "hidden-token",
    }
    deliverer = Deliverer(store, sinks_of(settings(broker.bootstrap, topic, **more)))
    statuses[:] = [503, 200]
    close_windows(store, 0, rows=4)
    sent, errors = deliverer.deliver_now()
    assert (sent, list(errors)) == (2 * WINDOWS, ["http"])
    trouble = {state.name: state.trouble for state in store.sinks()}
    assert "HTTP 503" in str(trouble["http"])
    assert "hidden-token" not in str(trouble)
    close_windows(store, 1, rows=9)
    assert deliverer.deliver_now() == (3 * WINDOWS, {})
    deliverer.close()
    windows = [value for value in taken if value["record"] == "window"]
    assert sum(value["dq_error_total"] for value in windows) == 9 * WINDOWS
    assert sum_counters(agent)["dq_error_total"] == 9 * WINDOWS
    assert errors_once(consume_records(broker.bootstrap, topic)) == 9 * WINDOWS


def test_all_sinks_say_what_batches_counted(
    broker: RunningBroker,
    store: OpsStore,
    agent: socket.socket,
    receiver: tuple[str, list[dict[str, Any]], list[int]],
) -> None:
    topic = broker.new_topic(prefix="batches")
    push_url, taken, _ = receiver
    address = f"127.0.0.1:{agent.getsockname()[1]}"
    more = {"dogstatsd_address": address, "metrics_push_url": push_url}
    deliverer = Deliverer(store, sinks_of(settings(broker.bootstrap, topic, **more)))
    Emitter(store, SHAPE, lambda _: {})
    settle_counted_batch(store)
    settle_counted_batch(store, 23)
    assert deliverer.deliver_now() == (6, {})
    deliverer.close()
    twice = {name: 2 * n for name, n in BATCH_METRICS.items()}
    assert sum_counters(agent) == twice
    records = consume_records(broker.bootstrap, topic)
    assert [value for _, value, _ in records] == taken
    assert {name: sum(value[name] for value in taken) for name in BATCH_METRICS} == twice
    assert [headers["headgate.id"] for _, _, headers in records] == [one["id"] for one in taken]
    assert {key for key, _, _ in records} == {"orders_onprem"}


def test_a_broker_that_is_away_loses_nothing(broker: RunningBroker, store: OpsStore) -> None:
    topic = broker.new_topic(prefix="away")
    away = Deliverer(store, sinks_of(settings("127.0.0.1:9", topic)))
    close_windows(store, 0, rows=2)
    sent, errors = away.deliver_now()
    assert (sent, errors["kafka"].exit_code) == (0, 8)
    back = Deliverer(store, sinks_of(settings(broker.bootstrap, topic)))
    assert back.deliver_now() == (WINDOWS, {})
    back.close()
    assert errors_once(consume_records(broker.bootstrap, topic)) == 2 * WINDOWS
