"""A stretch of a topic, read by a plain consumer: all of it, nothing else, and never for ever."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer, TopicPartition

from headgate.core.kafka import reader as topic_reader
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.core.kafka.topics import TopicSpec, shared_admin
from headgate.core.runtime.ports import any_port
from headgate.errors import UnavailableError
from headgate.local.process import wait_until

pytestmark = pytest.mark.integration
SECONDS = 120.0


def producer(bootstrap: str, **more: object) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0, **more})


def filled(broker, name: str, count: int, partitions: int = 2) -> str:
    broker.topics.create([TopicSpec(name, partitions=partitions, retention_days=1)])
    sending = producer(broker.bootstrap)
    for n in range(count):
        sending.produce(
            name,
            str(n).encode(),
            str(n % 7).encode(),
            partition=n % partitions,
            headers=[("n", b"first"), ("n", str(n).encode()), ("none", None)],
        )
    assert sending.flush(120) == 0
    return name


def whole(broker, name: str) -> Stretch:
    return Stretch.whole(broker.topics.found(name))


def test_a_topic_is_read_whole_with_keys_times_and_headers(broker):
    name = filled(broker, "reader-whole", 2500)
    found = list(committed_records(broker.bootstrap, whole(broker, name), quiet=True))
    assert sorted(int(one.value or b"") for one in found) == list(range(2500))
    assert {(one.partition, one.offset) for one in found} == {(n % 2, n // 2) for n in range(2500)}
    last = max(found, key=lambda one: int(one.value or b""))
    assert (last.key, last.headers) == (b"0", {"n": "2499", "none": ""})
    assert abs(last.millis / 1000 - time.time()) < 120


def test_what_came_after_the_stretch_and_before_it_is_left_out(broker):
    name = filled(broker, "reader-part", 60)
    stretch = Stretch(name, {0: 5, 1: 30}, {0: 12, 1: 30})
    found = list(committed_records(broker.bootstrap, stretch, SECONDS))
    assert [(one.partition, one.offset) for one in found] == [(0, n) for n in range(5, 12)]


def test_an_empty_topic_is_read_at_once(broker):
    name, began = filled(broker, "reader-empty", 0), time.monotonic()
    assert list(committed_records(broker.bootstrap, whole(broker, name), quiet=True)) == []
    assert time.monotonic() - began < 5


def test_ends_of_transactions_and_what_was_given_up_are_no_records(broker):
    name = filled(broker, "reader-transactions", 3, partitions=1)
    sending = producer(broker.bootstrap, **{"transactional.id": "reader"})
    sending.init_transactions(120)
    for commits in (True, False):
        sending.begin_transaction()
        sending.produce(name, b"in a transaction", partition=0)
        sending.flush(120)
        sending.commit_transaction(120) if commits else sending.abort_transaction(120)
    # The last mark is written after the call returns.
    assert wait_until(lambda: broker.topics.found(name).end == {0: 7}, 60)
    stretch = whole(broker, name)
    found = [one.value for one in committed_records(broker.bootstrap, stretch, SECONDS)]
    assert (stretch.end, found) == ({0: 7}, [b"0", b"1", b"2", b"in a transaction"])


def test_offsets_that_are_gone_are_an_error_or_left_out(broker):
    name = filled(broker, "reader-expired", 40, partitions=1)
    before = whole(broker, name)
    gone = shared_admin(broker.bootstrap, 60.0).delete_records([TopicPartition(name, 0, 30)])
    assert [future.result(60).low_watermark for future in gone.values()] == [30]
    with pytest.raises(UnavailableError, match="could not be read"):
        list(committed_records(broker.bootstrap, before, SECONDS))
    left = committed_records(broker.bootstrap, before, SECONDS, expired="earliest")
    assert [one.offset for one in left] == list(range(30, 40))


@pytest.mark.parametrize("quiet", [True, False])
def test_a_broker_that_is_away_ends_the_reading(quiet):
    stretch, began = Stretch("reader-nowhere", {0: 0}, {0: 10}), time.monotonic()
    with pytest.raises(UnavailableError, match="reader-nowhere"):
        list(committed_records(f"127.0.0.1:{any_port()}", stretch, 0.5, quiet=quiet))
    assert time.monotonic() - began < 10


def test_who_takes_long_over_a_record_is_not_taken_for_a_silent_topic(broker, monkeypatch):
    """The reader's clock moves while a record is looked at, and at no other time."""
    name, now, read = filled(broker, "reader-slowly", 3, partitions=1), [0.0], []
    stretch = whole(broker, name)
    monkeypatch.setattr(topic_reader, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(topic_reader, "AT_ONCE", 1)  # else all are there before the first look
    for one in committed_records(broker.bootstrap, stretch, 2.0, quiet=True):
        now[0] += 2.5
        read.append(one.offset)
    assert read == [0, 1, 2]
