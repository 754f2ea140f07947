from __future__ import annotations

import pytest

from headgate.core.kafka.offsets import (
    ExpiredError,
    Followed,
    expired,
    is_data_loss,
    refuse_expired,
    refuse_shorter,
)
from headgate.core.kafka.topics import TopicState
from headgate.errors import BatchRefusedError

TOPIC = Followed.one(
    TopicState("orders", "id1", begin={0: 10, 1: 0, 2: 4}, end={0: 20, 1: 5, 2: 9})
)


def test_what_the_topic_has_no_more_is_counted_by_partition() -> None:
    assert expired(TOPIC, {"0": 7, "1": 5, "2": 4}) == {"0": 3}
    assert expired(TOPIC, {"0": 15, "1": 0, "2": 9}) == {}


def test_a_partition_that_was_never_read_begins_at_nought() -> None:
    assert expired(TOPIC, {"0": 10, "1": 0}) == {"2": 4}


def test_the_refusal_names_the_offsets_and_the_decision() -> None:
    refuse_expired(TOPIC, {"0": 10, "1": 0, "2": 4}, "bronze-orders")
    with pytest.raises(ExpiredError, match="5 records of orders expired") as error:
        refuse_expired(TOPIC, {"0": 6, "1": 0, "2": 3}, "bronze-orders")
    assert "partition 0: offsets 6 to 9, partition 2: offsets 3 to 3" in error.value.why
    assert "headgate job accept-gap bronze-orders" in error.value.fix
    assert not error.value.retryable


def test_a_topic_that_ends_before_what_was_read_is_refused() -> None:
    refuse_shorter(TOPIC, {"0": 20, "1": 5, "2": 9}, "bronze-orders")
    with pytest.raises(BatchRefusedError, match="topic orders ends before what bronze-orders has"):
        refuse_shorter(TOPIC, {"0": 21, "1": 5, "2": 9}, "bronze-orders")


def test_words_of_spark_about_lost_data_are_known() -> None:
    assert is_data_loss(RuntimeError("[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have"))
    assert not is_data_loss(RuntimeError("out of memory"))
