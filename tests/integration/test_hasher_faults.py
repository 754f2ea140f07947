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
from tests.support.hasher_harness import Lab, Started, event, eventually, hash_of

from headgate.feeds.cassandra import Cassandra, Place, session_at


def place_of(cassandra: Any) -> Place:
    return Place((cassandra.service.contact_points,), cassandra.service.port)


@pytest.fixture(scope="module")
def session(cassandra: Any) -> Iterator[Cassandra]:
    with session_at(place_of(cassandra)) as opened:
        yield opened


@pytest.fixture
def lab(broker: Any, session: Cassandra, tmp_path: Path) -> Lab:
    return Lab(broker, session, tmp_path)


@contextmanager
def standing_still(cassandra: Any, lab: Lab) -> Iterator[None]:
    """The process is there and says nothing: what a long pause of its JVM looks like."""
    os.kill(cassandra.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(cassandra.pid, signal.SIGCONT)
        assert eventually(lambda: lab.cassandra.answers(lab.table))


def begun(lab: Lab, *options: str) -> Started:
    """A hasher that has its partitions."""
    hasher = Started(lab, *options)
    assert eventually(lambda: f"{lab.topic} [" in hasher.text()), hasher.text()
    return hasher


def metrics(hasher: Started) -> dict[str, float]:
    found = re.search(r"metrics at (http://\S+)", hasher.text())
    assert found, hasher.text()
    with urllib.request.urlopen(found[1], timeout=60) as page:
        lines = page.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def keys_on(lab: Lab, topic: str) -> set[str]:
    return {record.key.decode() for record in lab.records(topic)}


def test_s1_108_a_timeout_is_retried_s1_109_then_a_dead_letter_and_s1_110_counted(
    lab: Lab, cassandra: Any
) -> None:
    lab.write([{"pk": key} for key in ("warm", "a", "b", "c")])
    # All tries are over before the driver's heartbeat could say that Cassandra is away.
    with begun(lab, "--timeout", "0.3", "--retries", "3") as hasher:
        lab.send([event("warm")])
        assert eventually(lambda: keys_on(lab, lab.cloud) == {"warm"})
        with standing_still(cassandra, lab):
            lab.send([event("a"), event("b")])
            assert eventually(lambda: keys_on(lab, "dlq-cassandra-cloud") >= {"a", "b"})
        assert metrics(hasher)['dq_cassandra_timeout_total{table="business"}'] == 2
        lab.send([event("c")])
        assert eventually(lambda: "c" in keys_on(lab, lab.cloud))
    letters = {r.key: r for r in lab.records("dlq-cassandra-cloud")}
    letter = letters[b"a"]
    assert json.loads(letter.value or b"") == event("a")[1]
    assert letter.headers["headgate.stage"] == "Cassandra"
    assert letter.headers["headgate.reason_code"] == "dq_cassandra_timeout"
    assert "after 4 tries" in letter.headers["headgate.reason"]
    assert letter.headers["headgate.topic"] == lab.topic


def test_a_cassandra_that_stands_still_under_load_is_waited_for_and_s1_129_the_lag_is_seen(
    lab: Lab, cassandra: Any
) -> None:
    keys = [f"k{n}" for n in range(400)]
    lab.write([{"pk": key} for key in [*keys, "warm"]])
    lag = f'dq_kafka_lag{{job="hasher-business",topic="{lab.topic}"}}'
    with begun(lab, "--timeout", "2") as hasher:
        lab.send([event("warm")])
        assert eventually(lambda: keys_on(lab, lab.cloud) == {"warm"})
        with standing_still(cassandra, lab):
            lab.send([event(key) for key in keys])
            assert eventually(lambda: "Cassandra is away" in hasher.text())
            assert eventually(lambda: metrics(hasher)[lag] == 400)
            assert metrics(hasher)['headgate_hasher_paused{table="business"}'] == 1
        assert eventually(lambda: "answers again" in hasher.text())
        assert eventually(lambda: keys_on(lab, lab.cloud) == {*keys, "warm"})
        assert eventually(lambda: metrics(hasher)[lag] == 0)
        assert metrics(hasher)['dq_cassandra_timeout_total{table="business"}'] == 0


def test_a_killed_hasher_loses_nothing(lab: Lab, cassandra: Any) -> None:
    keys = [f"k{n}" for n in range(2_500)]
    lab.write([{"pk": key} for key in keys])
    with begun(lab) as first:
        lab.send([event(key) for key in keys[:1_500]])
        assert eventually(lambda: lab.broker.topics.found(lab.cloud).span > 200)
        # However quick it is, it cannot be through before it is killed.
        with standing_still(cassandra, lab):
            lab.send([event(key) for key in keys[1_500:]])
            first.kill()
    before = lab.broker.topics.found(lab.cloud).span
    assert before < 2_500
    done = lab.run()
    found = {reading["pk"]: reading["hash_cloud"] for reading in lab.readings()}
    assert found == {key: hash_of(key) for key in keys}
    assert done.dead_letters == 0
    assert done.records <= 2_500


def test_two_hashers_share_the_work_and_a_stopped_one_leaves_it_to_the_other(lab: Lab) -> None:
    keys = [f"k{n}" for n in range(1_500)]
    lab.write([{"pk": key} for key in keys])
    with begun(lab) as one, Started(lab) as other:
        both = re.compile(rf"{re.escape(lab.topic)} \[\d(, \d)?\]")
        assert eventually(lambda: all(both.search(last_share(h)) for h in (one, other)))
        lab.send([event(key) for key in keys[:1_000]])
        assert eventually(lambda: len(keys_on(lab, lab.cloud)) == 1_000)
        assert one.stop() == 0
        lab.send([event(key) for key in keys[1_000:]])
        assert eventually(lambda: len(keys_on(lab, lab.cloud)) == 1_500)
        assert other.stop() == 0
        read = [
            int(re.findall(r"([\d,]+) records,", h.text())[-1].replace(",", ""))
            for h in (one, other)
        ]
    assert min(read) > 0
    assert sum(read) == 1_500  # nothing came twice: a hasher that stops has committed what it sent


def last_share(hasher: Started) -> str:
    return (re.findall(r"group \S+: (.*)", hasher.text()) or [""])[-1]


@pytest.mark.slow
def test_a_column_that_is_dropped_meanwhile_hashes_as_null_from_then_on(lab: Lab) -> None:
    lab.write([{"pk": "before"}, {"pk": "after"}])
    with begun(lab) as hasher:
        lab.send([event("before")])
        assert eventually(lambda: keys_on(lab, lab.cloud) == {"before"})
        lab.cassandra.execute(f"ALTER TABLE {lab.table} DROP col2")
        lab.send([event("after")])
        assert eventually(lambda: keys_on(lab, lab.cloud) == {"before", "after"})
        removed = 'dq_column_removed_total{table="business"}'
        assert eventually(lambda: metrics(hasher)[removed] == 1)  # a page may be a second old
        assert "hashes as null" in hasher.text()
    found = {reading["pk"]: reading["hash_cloud"] for reading in lab.readings()}
    assert found == {"before": hash_of("before"), "after": hash_of("after", col2=None)}


@pytest.mark.slow
def test_a_cassandra_that_is_killed_and_comes_back_loses_nothing(lab: Lab, cassandra: Any) -> None:
    keys = [f"k{n}" for n in range(5_000)]
    lab.write([{"pk": key} for key in keys])
    with begun(lab) as hasher:
        lab.send([event(key) for key in keys])
        assert eventually(lambda: lab.broker.topics.found(lab.cloud).span > 300)
        cassandra.kill()
        assert eventually(lambda: "Cassandra is away" in hasher.text())
        time.sleep(10)
        cassandra.restart()
        assert eventually(lambda: keys_on(lab, lab.cloud) == set(keys), 120)
        assert hasher.stop() == 0
    assert "dead letters" not in hasher.text()


# After the longer time the hasher has no room left, and its group has given up on it.
@pytest.mark.slow
@pytest.mark.parametrize("away", [5, 15])
def test_a_broker_that_is_killed_and_comes_back_loses_nothing(
    away: int, private_broker: Any, session: Cassandra, tmp_path: Path
) -> None:
    lab = Lab(private_broker, session, tmp_path)
    keys = [f"k{n}" for n in range(5_000)]
    lab.write([{"pk": key} for key in keys])
    with begun(lab) as hasher:
        lab.send([event(key) for key in keys])
        assert eventually(lambda: private_broker.topics.found(lab.cloud).span > 300)
        private_broker.kill()
        time.sleep(away)
        private_broker.restart()
        assert eventually(lambda: keys_on(lab, lab.cloud) == set(keys), 120)
        assert hasher.stop() == 0
