"""Two topics become verdicts: as the pure function says, with every record accounted for."""

from __future__ import annotations

import pytest
from tests.support.pipeline import Pipeline, ProducerRecord
from tests.support.reconcile_job import Message, Pair, cloud, onprem, tombstone

from headgate.checks.certificate import broken


@pytest.fixture
def pair(pipeline: Pipeline) -> Pair:
    return Pair(pipeline)


def test_two_topics_become_verdicts_as_the_pure_function_says(pair: Pair) -> None:
    pair.send(
        onprem("same"), cloud("same", read=2),
        onprem("other"), cloud("other", number=2),
        onprem("alone"), cloud("unknown"),
        onprem("absent"), cloud("absent", number=None),
        onprem("late"), cloud("late", read=700),
        onprem("apart"), cloud("apart", read=4_000),
        onprem("skewed", hash_version=1), cloud("skewed"),
        onprem("again"), onprem("again"), cloud("again", partition=1),
        onprem("gone", version=1, action="DELETE"), tombstone("cloud", "gone", read=3),
    )  # fmt: skip
    pair.process()
    assert pair.statuses() == {
        "same": "MATCH", "other": "MISMATCH", "alone": "MISSING_CLOUD", "unknown": "MISSING_ONPREM",
        "absent": "MISSING_CLOUD", "late": "LATE_MATCH", "apart": "LATE_MATCH",
        "skewed": "VERSION_SKEW", "again": "MATCH", "gone": "DELETE_EVENT",
    }  # fmt: skip
    assert pair.verdicts() == pair.expected()
    assert pair.outcomes() == {"accepted": 18, "tombstone": 1}
    assert pair.counters() == {"deletes": 2, "duplicates": 1}


def test_what_can_take_no_part_is_a_dead_letter(pair: Pair) -> None:
    nobody = ProducerRecord(
        b'{"event_id": "e", "hash_onprem": "x", "event_ts": "2024-01-01T10:00:00Z"}'
    )
    pair.send(
        onprem("k"), cloud("k"),
        Message("onprem", ProducerRecord(b"not json", partition=1)),
        Message("onprem", nobody),
        Message("cloud", ProducerRecord(None, None, partition=1)),
        onprem("k", action="TRUNCATE"),
    )  # fmt: skip
    pair.process()
    assert pair.statuses() == {"k": "MATCH"}
    assert pair.outcomes() == {"accepted": 2, "refused": 4}
    letters = pair.pipeline.select("reason_code", "headgate.dead_letters", f"job = '{pair.job}'")
    assert sorted(code for (code,) in letters) == [
        "dq_missing_pk", "dq_missing_pk", "dq_unknown_action", "not_json",
    ]  # fmt: skip
    assert broken(pair.pipeline.certify()) == ()


def test_a_replay_in_a_later_window_changes_nothing_that_was_told(pair: Pair) -> None:
    """Both sides are said again an hour later, the first one further apart than the window."""
    pair.send(onprem("k", version=1, read=2), cloud("k", version=1, read=3))
    pair.process()
    pair.send(onprem("k", version=1, read=4_000), cloud("k", version=1, read=5_000))
    pair.process()
    assert pair.statuses() == pair.last_published() == {"k": "MATCH"}
    assert len(pair.sql("SELECT id FROM lake.dq.results_{t}")) == 1
    assert pair.counters() == {"duplicates": 2}


@pytest.mark.slow
def test_old_news_in_a_later_window_is_not_told_whatever_its_clock_says(pair: Pair) -> None:
    """The clock of the versions runs two hours ahead, so that none is from before its window."""
    ahead = 7_200
    pair.send(onprem("k", version=ahead, read=1), cloud("k", version=ahead, number=None, read=2))
    pair.send(onprem("k", version=ahead + 9, read=3), cloud("k", version=ahead + 9, read=4))
    pair.process()
    pair.send(onprem("k", version=ahead, read=4_000))
    pair.send(cloud("k", version=ahead, number=None, read=4_001))
    pair.process()
    assert pair.statuses() == pair.last_published() == {"k": "MATCH"}
    told = pair.sql("SELECT dq_status FROM lake.dq.results_{t} WHERE settled")
    assert [row["dq_status"] for row in told] == ["MATCH"]
