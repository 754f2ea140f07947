"""Hashers as processes: Cassandra stands still or is gone, one is killed, two share, one is stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.hasher_harness import HasherHarness, HasherProcess, event, hash_of

from headgate.local.process import wait_until
from headgate.reconcile.cassandra.session import Cassandra, Place, session_at


def place_of(cassandra: Any) -> Place:
    return Place((cassandra.service.contact_points,), cassandra.service.port)


@pytest.fixture(scope="module")
def session(cassandra: Any) -> Iterator[Cassandra]:
    with session_at(place_of(cassandra)) as opened:
        yield opened


@pytest.fixture
def harness(broker: Any, session: Cassandra, tmp_path: Path) -> HasherHarness:
    return HasherHarness(broker, session, tmp_path)


@contextmanager
def standing_still(cassandra: Any, harness: HasherHarness) -> Iterator[None]:
    """The process is there and says nothing: what a long pause of its JVM looks like."""
    os.kill(cassandra.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(cassandra.pid, signal.SIGCONT)
        assert wait_until(lambda: harness.cassandra.answers(harness.table), 120)


def begun(harness: HasherHarness, *options: str) -> HasherProcess:
    """A hasher that has its partitions."""
    hasher = HasherProcess(harness, *options)
    assert wait_until(lambda: f"{harness.topic} [" in hasher.text(), 120), hasher.text()
    return hasher


def metrics(hasher: HasherProcess) -> dict[str, float]:
    found = re.search(r"metrics at (http://\S+)", hasher.text())
    assert found, hasher.text()
    with urllib.request.urlopen(found[1], timeout=60) as page:
        lines = page.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def keys_on(harness: HasherHarness, topic: str) -> set[str]:
    return {record.key.decode() for record in harness.records(topic)}


def test_s1_108_a_timeout_is_retried_s1_109_then_a_dead_letter_and_s1_110_counted(
    harness: HasherHarness, cassandra: Any
) -> None:
    harness.write([{"pk": key} for key in ("warm", "a", "b", "c")])
    # All tries are over before the driver's heartbeat could say that Cassandra is away.
    with begun(harness, "--timeout", "0.3", "--retries", "3") as hasher:
        harness.send([event("warm")])
        assert wait_until(lambda: keys_on(harness, harness.cloud_topic) == {"warm"}, 120)
        with standing_still(cassandra, harness):
            harness.send([event("a"), event("b")])
            assert wait_until(lambda: keys_on(harness, "dlq-cassandra-cloud") >= {"a", "b"}, 120)
        assert metrics(hasher)['dq_cassandra_timeout_total{table="business"}'] == 2
        harness.send([event("c")])
        assert wait_until(lambda: "c" in keys_on(harness, harness.cloud_topic), 120)
    letters = {r.key: r for r in harness.records("dlq-cassandra-cloud")}
    letter = letters[b"a"]
    assert json.loads(letter.value or b"") == event("a")[1]
    assert letter.headers["headgate.stage"] == "Cassandra"
    assert letter.headers["headgate.reason_code"] == "dq_cassandra_timeout"
    assert "after 4 tries" in letter.headers["headgate.reason"]
    assert letter.headers["headgate.topic"] == harness.topic


def test_a_cassandra_that_stands_still_under_load_is_waited_for_and_s1_129_the_lag_is_seen(
    harness: HasherHarness, cassandra: Any
) -> None:
    keys = [f"k{n}" for n in range(400)]
    harness.write([{"pk": key} for key in [*keys, "warm"]])
    lag = f'dq_kafka_lag{{job="hasher-business",topic="{harness.topic}"}}'
    with begun(harness, "--timeout", "2") as hasher:
        harness.send([event("warm")])
        assert wait_until(lambda: keys_on(harness, harness.cloud_topic) == {"warm"}, 120)
        with standing_still(cassandra, harness):
            harness.send([event(key) for key in keys])
            assert wait_until(lambda: "Cassandra is away" in hasher.text(), 120)
            assert wait_until(lambda: metrics(hasher)[lag] == 400, 120)
            assert metrics(hasher)['headgate_hasher_paused{table="business"}'] == 1
        assert wait_until(lambda: "answers again" in hasher.text(), 120)
        assert wait_until(lambda: keys_on(harness, harness.cloud_topic) == {*keys, "warm"}, 120)
        assert wait_until(lambda: metrics(hasher)[lag] == 0, 120)
        assert metrics(hasher)['dq_cassandra_timeout_total{table="business"}'] == 0


def test_a_killed_hasher_loses_nothing(harness: HasherHarness, cassandra: Any) -> None:
    keys = [f"k{n}" for n in range(2_500)]
    harness.write([{"pk": key} for key in keys])
    with begun(harness) as first:
        harness.send([event(key) for key in keys[:1_500]])
        assert wait_until(lambda: harness.broker.topics.found(harness.cloud_topic).span > 200, 120)
        # However quick it is, it cannot be through before it is killed.
        with standing_still(cassandra, harness):
            harness.send([event(key) for key in keys[1_500:]])
            first.kill()
    before = harness.broker.topics.found(harness.cloud_topic).span
    assert before < 2_500
    done = harness.run()
    found = {reading["pk"]: reading["hash_cloud"] for reading in harness.readings()}
    assert found == {key: hash_of(key) for key in keys}
    assert done.dead_letters == 0
    assert done.records <= 2_500


def test_two_hashers_share_the_work_and_a_stopped_one_leaves_it_to_the_other(
    harness: HasherHarness,
) -> None:
    keys = [f"k{n}" for n in range(1_500)]
    harness.write([{"pk": key} for key in keys])
    with begun(harness) as one, HasherProcess(harness) as other:
        both = re.compile(rf"{re.escape(harness.topic)} \[\d(, \d)?\]")
        assert wait_until(lambda: all(both.search(last_share(h)) for h in (one, other)), 120)
        harness.send([event(key) for key in keys[:1_000]])
        assert wait_until(lambda: len(keys_on(harness, harness.cloud_topic)) == 1_000, 120)
        assert one.stop() == 0
        harness.send([event(key) for key in keys[1_000:]])
        assert wait_until(lambda: len(keys_on(harness, harness.cloud_topic)) == 1_500, 120)
        assert other.stop() == 0
        read = [
            int(re.findall(r"([\d,]+) records,", h.text())[-1].replace(",", ""))
            for h in (one, other)
        ]
    assert min(read) > 0
    assert sum(read) == 1_500  # nothing came twice: a hasher that stops has committed what it sent


def last_share(hasher: HasherProcess) -> str:
    return (re.findall(r"group \S+: (.*)", hasher.text()) or [""])[-1]


@pytest.mark.slow
def test_a_column_that_is_dropped_meanwhile_hashes_as_null_from_then_on(
    harness: HasherHarness,
) -> None:
    harness.write([{"pk": "before"}, {"pk": "after"}])
    with begun(harness) as hasher:
        harness.send([event("before")])
        assert wait_until(lambda: keys_on(harness, harness.cloud_topic) == {"before"}, 120)
        harness.cassandra.execute(f"ALTER TABLE {harness.table} DROP col2")
        harness.send([event("after")])
        assert wait_until(lambda: keys_on(harness, harness.cloud_topic) == {"before", "after"}, 120)
        removed = 'dq_column_removed_total{table="business"}'
        assert wait_until(lambda: metrics(hasher)[removed] == 1, 120)  # a page may be a second old
        assert "hashes as null" in hasher.text()
    found = {reading["pk"]: reading["hash_cloud"] for reading in harness.readings()}
    assert found == {"before": hash_of("before"), "after": hash_of("after", col2=None)}


@pytest.mark.slow
def test_a_cassandra_that_is_killed_and_comes_back_loses_nothing(
    harness: HasherHarness, cassandra: Any
) -> None:
    keys = [f"k{n}" for n in range(5_000)]
    harness.write([{"pk": key} for key in keys])
    with begun(harness) as hasher:
        harness.send([event(key) for key in keys])
        assert wait_until(lambda: harness.broker.topics.found(harness.cloud_topic).span > 300, 120)
        cassandra.kill()
        assert wait_until(lambda: "Cassandra is away" in hasher.text(), 120)
        time.sleep(10)
        cassandra.restart()
        assert wait_until(lambda: keys_on(harness, harness.cloud_topic) == set(keys), 120)
        assert hasher.stop() == 0
    assert "dead letters" not in hasher.text()


# After the longer time the hasher has no room left, and its group has given up on it.
@pytest.mark.slow
@pytest.mark.parametrize("away", [5, 15])
def test_a_broker_that_is_killed_and_comes_back_loses_nothing(
    away: int, private_broker: Any, session: Cassandra, tmp_path: Path
) -> None:
    harness = HasherHarness(private_broker, session, tmp_path)
    keys = [f"k{n}" for n in range(5_000)]
    harness.write([{"pk": key} for key in keys])
    with begun(harness) as hasher:
        harness.send([event(key) for key in keys])
        assert wait_until(lambda: private_broker.topics.found(harness.cloud_topic).span > 300, 120)
        private_broker.kill()
        time.sleep(away)
        private_broker.restart()
        assert wait_until(lambda: keys_on(harness, harness.cloud_topic) == set(keys), 120)
        assert hasher.stop() == 0
