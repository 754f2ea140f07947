"""Previews over a real topic: the last records, whatever stands between them."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from tests.support.control_plane import filter_document
from tests.support.filter_documents import event_value

from headgate.core.kafka.topics import TopicSpec
from headgate.errors import UnavailableError
from headgate.filters.loader import parse_filter
from headgate.filters.preview import KafkaRecent, Question, preview
from headgate.local.process import wait_until

pytestmark = pytest.mark.integration
SECONDS = 120.0
DEALERS = ("DEALER-001", "DEALER-002", "DEALER-003")


def producer(bootstrap: str, **more: object) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0, **more})


def filled(broker, name: str, count: int) -> str:
    broker.topics.create([TopicSpec(name, partitions=3, retention_days=1)])
    sending = producer(broker.bootstrap)
    for n in range(count):
        sending.produce(name, event_value(n, DEALERS[n % 3]), partition=n % 3)
    assert sending.flush(120) == 0
    return name


def question(topic: str, value: str = "DEALER-001") -> Question:
    return Question(parse_filter(filter_document(value=value, source=topic)))


def test_the_last_events_of_all_partitions_are_judged(broker):
    topic = filled(broker, "recent-events", 3000)
    found = preview(question(topic), KafkaRecent(broker.bootstrap, SECONDS), last=300)
    assert found.unread == ""
    assert found.read == {str(p): (900, 1000) for p in range(3)}
    assert (found.events, found.matched) == (300, 100)
    assert [sample.offset for sample in found.samples_added] == list(range(990, 1000))


def test_ends_of_transactions_are_no_events_and_no_reason_to_wait(broker):
    topic = filled(broker, "recent-transactions", 30)
    sending = producer(broker.bootstrap, **{"transactional.id": "recent"})
    sending.init_transactions(120)
    for commits in (True, False, True):
        sending.begin_transaction()
        sending.produce(topic, event_value(99, "DEALER-001"), partition=0)
        sending.flush(120)
        sending.commit_transaction(120) if commits else sending.abort_transaction(120)
    # The last mark is written after the commit returns.
    assert wait_until(lambda: broker.topics.found(topic).span == 30 + 3 * 2, 60)
    found = preview(question(topic), KafkaRecent(broker.bootstrap, SECONDS), last=100)
    # Whoever waited for the offsets without a record would have read nothing in all that time.
    assert (found.unread, found.events, found.matched) == ("", 32, 12)
    assert found.seconds < SECONDS


def test_an_empty_topic_and_one_that_is_not_there_are_told_apart(broker):
    topic = filled(broker, "recent-nothing", 0)
    recent = KafkaRecent(broker.bootstrap, SECONDS)
    assert (preview(question(topic), recent).events, preview(question(topic), recent).unread) == (
        0,
        "",
    )
    assert "there is no topic" in preview(question("recent-nowhere"), recent).unread
    with pytest.raises(UnavailableError):
        recent.span("recent-nowhere", 1)
