"""A dealer's consumer on a real broker: its own topic and group, killed, restarted, stopped."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.services import RunningBroker

from headgate.core.kafka.schema_registry import framed
from headgate.filters.consumers.config import ConsumerConfig, Dealer
from headgate.filters.consumers.consumer import DealerConsumer
from headgate.filters.consumers.sinks import Seen
from headgate.local.process import wait_until

ROOT = Path(__file__).parents[3]
DEALER = Dealer("DEALER-001", "Tesla Service Center - San Francisco")


def value(id: str, dealer: str | None = "DEALER-001") -> bytes:
    head = {"dealerId": dealer, "carId": "CAR-1", "amountPaid": 450.0, "mileageAtService": 15000}
    row = {"id": id, "event_type": "CarServiceDone", "header_data": json.dumps(head), "__op": "c"}
    return json.dumps(row).encode()


def produce(broker: RunningBroker, topic: str, values: list[bytes], first: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, body in enumerate(values, first):
        headers: dict[str, str | bytes | None] = {
            "headgate.origin": f"raw/0/{number}",
            "headgate.filter": "f",
        }
        producer.produce(topic, body, str(number).encode(), headers=headers)
    assert producer.flush(120) == 0


def config(topic: str, **changes: object) -> ConsumerConfig:
    return ConsumerConfig(
        **{"dealer": DEALER, "topic": topic, "group": f"of-{topic}", "sinks": ("crm",), **changes}
    )


def consume(broker: RunningBroker, topic: str, file: Path):
    with Seen(file) as seen:
        consumer = DealerConsumer(config(topic), broker.bootstrap, seen)
        return consumer.run(lambda: False, once=True)


def effects(file: Path) -> list[str]:
    """The ids of what had its effect; none before the consumer has made its tables."""
    with closing(sqlite3.connect(file)) as database, suppress(sqlite3.OperationalError):
        found = database.execute("SELECT event_id FROM effects ORDER BY event_id").fetchall()
        return [id for (id,) in found]
    return []


def test_it_handles_its_own_and_drops_the_rest(broker, tmp_path):
    topic = broker.new_topic(partitions=3, prefix="dealer")
    bodies = [value("a"), framed(7, value("b")), value("c", "DEALER-002"), value("d", None), b"{"]
    produce(broker, topic, bodies)
    done = consume(broker, topic, tmp_path / "state.db")
    assert (done.received, done.handled, done.wrong_dealer, done.unreadable) == (5, 2, 2, 1)
    assert effects(tmp_path / "state.db") == ["a", "b"]


def test_it_goes_on_where_its_group_stands(broker, tmp_path):
    topic = broker.new_topic(partitions=3, prefix="dealer")
    produce(broker, topic, [value(f"e{n:02d}") for n in range(20)])
    assert consume(broker, topic, tmp_path / "state.db").handled == 20
    produce(broker, topic, [value("more")], first=20)
    again = consume(broker, topic, tmp_path / "state.db")
    assert (again.received, again.handled) == (1, 1)


def test_records_that_were_never_committed_come_again_and_change_nothing(broker, tmp_path):
    topic = broker.new_topic(prefix="dealer")
    produce(broker, topic, [value(f"e{n:02d}") for n in range(20)])
    with Seen(tmp_path / "state.db") as seen:
        consumer = DealerConsumer(config(topic), broker.bootstrap, seen)
        consumer._commit = lambda records: None  # as if it were killed each time before it could
        assert consumer.run(lambda: False, once=True).handled == 20
    again = consume(broker, topic, tmp_path / "state.db")
    assert (again.received, again.duplicates, again.handled) == (20, 20, 0)
    with closing(sqlite3.connect(tmp_path / "state.db")) as database:
        assert database.execute("SELECT car_id, visits FROM crm_visits").fetchall() == [
            ("CAR-1", 20)
        ]


def test_it_waits_for_a_topic_that_is_made_after_it_was_started(broker, tmp_path):
    from headgate.core.kafka.topics import TopicSpec

    topic, stop = "made-later", threading.Event()
    with Seen(tmp_path / "state.db") as seen:
        consumer = DealerConsumer(config(topic), broker.bootstrap, seen)

        def make() -> None:
            broker.topics.create([TopicSpec(topic, 3, 1)])
            produce(broker, topic, [value("late")])

        maker = threading.Timer(1.0, make)
        maker.start()
        ender = threading.Timer(240.0, stop.set)
        ender.daemon = True
        ender.start()
        done = consumer.run(lambda: stop.is_set() or consumer._handler.counts.handled > 0)
        maker.join()
        ender.cancel()
    assert done.handled == 1


def start(broker: RunningBroker, topic: str, file: Path, log: Path) -> subprocess.Popen[bytes]:
    environ = {
        **os.environ,
        "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap,
        "KAFKA_TOPIC": topic,
        "CONSUMER_GROUP_ID": f"of-{topic}",
        "HEADGATE_HOME": str(file.parent / "home"),
    }
    words = ("-o", "json", "filters", "consumer", "consumers/dealer-001/consumer.yml")
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *words, "--state", str(file)],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=out,
        )


def test_the_program_is_killed_started_again_and_stopped_and_does_everything_once(broker, tmp_path):
    topic = broker.new_topic(partitions=3, prefix="dealer")
    file, log = tmp_path / "state.db", tmp_path / "log"
    ids = [f"e{n:04d}" for n in range(600)]
    produce(broker, topic, [value(id) for id in ids[:300]])
    first = start(broker, topic, file, log)
    try:
        assert wait_until(lambda: b"Service Event for Tesla" in log.read_bytes(), 240)
        first.kill()
    finally:
        first.kill()
        first.communicate()
    produce(broker, topic, [value(id) for id in ids[300:]], first=300)
    second = start(broker, topic, file, log)
    try:
        assert wait_until(lambda: file.exists() and len(effects(file)) == 600, 240)
        second.send_signal(signal.SIGTERM)
        out, _ = second.communicate(timeout=120)
    finally:
        second.kill()
        second.communicate()
    assert second.returncode == 0
    assert effects(file) == ids
    told = json.loads(out)
    assert told["dealer"] == "DEALER-001"
    assert told["received"] == told["handled"] + told["duplicates"]


@pytest.mark.slow
def test_a_broker_that_is_killed_under_it_loses_and_repeats_nothing(private_broker, tmp_path):
    topic, file = private_broker.new_topic(partitions=3, prefix="dealer"), tmp_path / "state.db"
    produce(private_broker, topic, [value(f"e{n:02d}") for n in range(50)])
    stop = threading.Event()

    def run() -> None:
        with Seen(file) as seen:
            DealerConsumer(config(topic), private_broker.bootstrap, seen).run(stop.is_set)

    consumer = threading.Thread(target=run)
    consumer.start()
    try:
        assert wait_until(lambda: file.exists() and len(effects(file)) == 50, 120)
        private_broker.kill()
        private_broker.restart()
        produce(private_broker, topic, [value(f"f{n:02d}") for n in range(50)], first=50)
        assert wait_until(lambda: len(effects(file)) == 100, 120)
    finally:
        stop.set()
        consumer.join()
    expected = [f"e{n:02d}" for n in range(50)] + [f"f{n:02d}" for n in range(50)]
    assert effects(file) == expected
