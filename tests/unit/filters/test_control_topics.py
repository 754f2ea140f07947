"""Topics that a filter must not read or write, alone and beside other filters."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.control_plane import ANN, BOB, ControlPlaneHarness, filter_document

from headgate.config.settings import Settings
from headgate.declarations.names import ReservedTopics, reason_against_events
from headgate.errors import ConflictError, DeclarationError
from headgate.filters.loader import parse_filter
from headgate.filters.store.control import ControlStore

NOT_FOR_EVENTS = [
    "connect-configs",
    "connect-offsets",
    "connect-status",
    "headgate-connect-configs",
    "my.connect.status",
    "dlq-cassandra-cloud",
    "taxi.events.dlq",
    "orders-dlq",
    "dq.metrics",
    "__consumer_offsets",
    "__transaction_state",
    "_schemas",
    "..",
    ".",
]
FOR_EVENTS = [
    "raw-event-headers",
    "filtered-one",
    "order-status",
    "app-configs",
    "connected-cars",
    "my-connection-status",
    "dqa.events",
    "dlqueen",
]


@pytest.mark.parametrize("topic", NOT_FOR_EVENTS)
def test_a_topic_that_is_not_for_events_is_known_by_its_name(topic: str) -> None:
    assert reason_against_events(topic)
    with pytest.raises(DeclarationError) as raised:
        parse_filter(filter_document(source=topic))
    assert "/source" in {fault.field for fault in raised.value.faults}
    with pytest.raises(DeclarationError) as raised:
        parse_filter(filter_document(outputTopic=topic))
    assert "/outputTopic" in {fault.field for fault in raised.value.faults}


@pytest.mark.parametrize("topic", FOR_EVENTS)
def test_a_name_that_only_resembles_one_of_those_may_be_used(topic: str) -> None:
    assert reason_against_events(topic) == ""
    parse_filter(filter_document(source=topic, outputTopic="filtered-one-two"))


def test_topics_that_the_settings_name_are_taken(
    harness: ControlPlaneHarness, tmp_path: Path
) -> None:
    named = Settings(
        root=tmp_path, topic="trips", dlq_topic="refused-trips", metrics_topic="windows"
    )
    harness.service._reserved = ReservedTopics.of(named)
    for topic in ("trips", "refused-trips", "windows"):
        with pytest.raises(ConflictError, match="cannot have these topics") as raised:
            harness.service.create(ANN, filter_document(outputTopic=topic))
        assert topic in (raised.value.why or "")


def test_two_filters_do_not_send_events_round(harness: ControlPlaneHarness) -> None:
    harness.service.create(ANN, filter_document("one", source="x", outputTopic="y"))
    harness.service.create(ANN, filter_document("two", source="y", outputTopic="z"))
    back = filter_document("three", source="z", outputTopic="x")
    with pytest.raises(ConflictError) as raised:
        harness.service.create(ANN, back)
    assert "z -> x -> y -> z" in (raised.value.why or "")
    found = harness.service.check_document(parse_filter(back))
    assert (found.valid, len(found.errors)) == (False, 1)
    harness.service.create(ANN, filter_document("three", source="z", outputTopic="w"))
    with pytest.raises(ConflictError, match="cannot have these topics"):
        harness.service.update(ANN, "three", back)


def test_a_loop_that_arose_since_the_approval_is_found_when_it_is_deployed(
    harness: ControlPlaneHarness,
) -> None:
    record = harness.service.create(ANN, filter_document("one", source="x", outputTopic="y"))
    harness.service.approve(BOB, "one", record.revision)
    other = harness.service.create(ANN, filter_document("two", source="a", outputTopic="x"))
    with harness.store.part(ControlStore).change() as change:
        change.audit("test", "test", "two")
        change.save(type(other)(**{**vars(other), "document": {**other.document, "source": "y"}}))
    with pytest.raises(ConflictError, match="cannot have these topics"):
        harness.service.deploy(ANN, "one")


def test_a_topic_of_another_consumer_is_warned_of(harness: ControlPlaneHarness) -> None:
    harness.service.create(ANN, filter_document("one", outputTopic="shared"))
    found = harness.service.check_document(
        parse_filter(filter_document("two", outputTopic="shared"))
    )
    assert found.valid
    assert found.warnings == ("one writes to shared too, for another consumer: one-consumer",)
