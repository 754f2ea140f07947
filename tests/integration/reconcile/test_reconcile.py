"""Two topics become verdicts in one stream: as the pure function says, each change told once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import pytest
from tests.support.pipeline import Interruption, Pipeline, ProducerRecord
from tests.support.reconcile_job import (
    EPOCH,
    MORNING,
    Message,
    Pair,
    cloud,
    onprem,
    timestamp_text,
    tombstone,
)
from tests.support.streams import stream_job

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Point
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.job.sweep import sweep_job

LIMITS = Limits(timedelta(seconds=20), timedelta(seconds=10), timedelta(seconds=60))
STATUSES = {
    "same": "MATCH", "other": "MISMATCH", "alone": "MISSING_CLOUD", "unknown": "MISSING_ONPREM",
    "absent": "MISSING_CLOUD", "late": "LATE_MATCH", "apart": "LATE_MATCH",
    "skewed": "VERSION_SKEW", "again": "MATCH", "gone": "DELETE_EVENT",
}  # fmt: skip
# Nothing comes twice: every key is judged by the only window that there is.
FIRST = [
    onprem("same"), cloud("same", read=2),
    onprem("other"), cloud("other", number=2),
    onprem("alone"), cloud("unknown"),
    onprem("absent"), cloud("absent", number=None),
    onprem("late"), cloud("late", read=25),
    onprem("skewed", hash_version=1), cloud("skewed"),
    onprem("gone", version=1, action="DELETE"), tombstone("cloud", "gone", read=3),
    onprem("dead", action="DELETE"),
    onprem("zombie", action="DELETE"), cloud("zombie"),
    tombstone("cloud", "removed"),
]  # fmt: skip
SECOND = [
    onprem("again"), onprem("again"), cloud("again", partition=1),
    onprem("conflict", number=1, read=1), onprem("conflict", number=2, read=2),
    cloud("conflict", number=3, read=3),
    onprem("plain", read=5), cloud("plain", number=3, read=3),
    onprem("near", read=5), cloud("near", number=3, read=3),
    onprem("match", read=5), cloud("match", read=3),
    onprem("met", read=30), cloud("met", read=5),
    onprem("replayed", version=1, read=2), cloud("replayed", version=1, read=3),
]  # fmt: skip
REFUSED = [
    Message("onprem", ProducerRecord(b"not json", partition=1)),
    Message(
        "onprem",
        ProducerRecord(
            b'{"event_id": "e", "hash_onprem": "x", "event_ts": "2024-01-01T10:00:00Z"}'
        ),
    ),
    Message("cloud", ProducerRecord(None, None, partition=1)),
    onprem("sound", action="TRUNCATE"),
]
LATER = [
    # The window of the first parts is still at hand.
    [
        onprem("near", read=4), onprem("match", read=4), onprem("met", read=10),
        onprem("sound"), cloud("sound"), *REFUSED,
    ],
    # Both sides of a key come again in a later window, there further apart than is in time.
    [
        onprem("next", version=250), cloud("next", version=250),
        onprem("apart", version=200, read=230), cloud("apart", version=200, read=260),
        onprem("replayed", version=1, read=250), cloud("replayed", version=1, read=290),
    ],
    [onprem("next", version=260), cloud("next", version=260)],
    # Two batches later the window of the first parts has been let go.
    [onprem("conflict", number=2, read=3), onprem("plain", read=4)],
    [onprem("conflict", number=2, read=3), onprem("plain", read=4)],
]  # fmt: skip
# Keys that no batch can settle: `other`, `alone`, `unknown`, `late`, `dead`, `zombie`, `removed`, `met`.
SWEPT = 8
AHEAD = timedelta(minutes=50)
COUNTERS = {
    "deletes": 5,
    # `again` once, both sides of the replay, two keys twice behind their window. One that comes in its
    # window and from before the first arrival takes that one's place, and is not counted.
    "duplicates": 7,
    "late_records": 4,
    "dq_missing_pk": 2,
    "dq_unknown_action": 1,
    "not_json": 1,
}


@dataclass(frozen=True)
class StreamedPair:
    """A pair after its stream: verdicts before the message of `ahead`, its last part.

    `sweep_counts` are of the sweeps behind the first two parts.
    """

    pair: Pair
    sent: Sequence[Message]
    verdicts: Mapping[str, tuple[Any, ...]]
    expected: Mapping[str, tuple[Any, ...]]
    last_published: Mapping[str, str]
    sweep_counts: Mapping[str, int]

    @property
    def statuses(self) -> dict[str, str]:
        return {pk: str(row[1]) for pk, row in self.verdicts.items()}

    @cached_property
    def changes(self) -> Mapping[str, Sequence[Any]]:
        """The changes of each key's verdict, in the order of publication."""
        rows = self.pair.sql(
            "SELECT pk, origin, dq_status, settled, unix_micros(deadline) AS deadline"
            " FROM lake.dq.results_{t} ORDER BY processing_time, dq_status"
        )
        found: defaultdict[str, list[Any]] = defaultdict(list)
        for row in rows:
            found[row["pk"]].append(row)
        return found

    def origins(self, key: str) -> list[tuple[str, str]]:
        return [(row["origin"], row["dq_status"]) for row in self.changes[key]]

    def settled(self, key: str) -> list[str]:
        return [row["dq_status"] for row in self.changes[key] if row["settled"]]


@pytest.fixture(scope="module")
def streamed(new_module_pipeline: Callable[..., Pipeline]) -> StreamedPair:
    """One streaming run that reads eight parts, one after the other."""
    pipeline = new_module_pipeline()
    pipeline.settings = pipeline.settings.model_copy(update={"trigger_seconds": 0.1})
    pair = Pair(pipeline, window="20 SECONDS", grace="10 SECONDS", horizon="60 SECONDS")
    store, sweeps = pipeline.store, sweep_job(pipeline.name)

    def count_swept() -> int:
        return sum(row.outcomes["swept"] for row in store.ledger(sweeps))

    def send_second() -> None:
        """Amid the first batch: so the second one reads both sides of each key."""
        if amid_batch.hits == 1:
            pair.send(*SECOND)

    amid_batch = Interruption(Point.AFTER_STATES, send_second)
    sent = [*FIRST, *SECOND]
    pair.send(*FIRST)
    with stream_job(pipeline, "reconcile", amid_batch) as stream:
        stream.wait_until_read(len(sent))
        stream.wait_for(lambda: count_swept() == SWEPT)
        sweep_counts = {count.rule: count.n for count in store.rule_counts(sweeps)}
        for part in LATER:
            pair.send(*part)
            sent += part
            stream.wait_until_read(len(sent))
        stream.wait_for(lambda: pair.last_published() == pair.statuses())
        found = StreamedPair(
            pair,
            sent,
            pair.verdicts(),
            pair.expected(LIMITS),
            pair.last_published(),
            sweep_counts,
        )
        pair.send(message_from_the_future())
        stream.wait_until_read(len(sent) + 1)
    assert stream.error is None
    return found


def message_from_the_future() -> Message:
    stamp = round((datetime.now(UTC) + AHEAD - EPOCH) / timedelta(milliseconds=1))
    value = {"pk": "ahead", "hash_cloud": "0" * 64, "hash_version": 2}
    value |= {"cloud_ts": timestamp_text((stamp - MORNING) / 1000)}
    return Message("cloud", ProducerRecord(json.dumps(value).encode(), b"ahead", (), 0, stamp))


def test_two_topics_become_verdicts_as_the_pure_function_says(streamed: StreamedPair) -> None:
    assert {key: streamed.statuses[key] for key in STATUSES} == STATUSES
    assert streamed.verdicts == streamed.expected
    assert streamed.last_published == streamed.statuses
    tombstones = 2
    assert streamed.pair.outcomes() == {
        "accepted": len(streamed.sent) + 1 - tombstones - len(REFUSED),
        "tombstone": tombstones,
        "refused": len(REFUSED),
    }
    assert streamed.pair.counters() == COUNTERS


def test_what_can_take_no_part_is_a_dead_letter(streamed: StreamedPair) -> None:
    pair = streamed.pair
    assert streamed.statuses["sound"] == "MATCH"
    letters = pair.pipeline.select("reason_code", "headgate.dead_letters", f"job = '{pair.job}'")
    assert sorted(code for (code,) in letters) == [
        "dq_missing_pk", "dq_missing_pk", "dq_unknown_action", "not_json",
    ]  # fmt: skip
    assert broken(pair.pipeline.certify()) == ()


def test_a_replay_in_a_later_window_changes_nothing_that_was_told(streamed: StreamedPair) -> None:
    assert streamed.statuses["replayed"] == "MATCH"
    assert streamed.origins("replayed") == [("batch", "MATCH")]


def test_only_a_change_of_a_verdict_is_told(streamed: StreamedPair) -> None:
    """Duplicates from before the first arrival, and of a version in conflict, in its window and behind it."""
    keys = ("conflict", "plain", "near", "match", "met")
    assert {key: streamed.settled(key) for key in keys} == {
        "conflict": ["MISMATCH"],
        "plain": ["MISMATCH"],
        "near": ["MISMATCH"],
        "match": ["MATCH"],
        # The sides have met within the window after all: that is another verdict.
        "met": ["LATE_MATCH", "MATCH"],
    }


def test_keys_past_their_deadline_are_settled_without_a_record(streamed: StreamedPair) -> None:
    assert streamed.origins("alone") == [("batch", "PENDING"), ("sweep", "MISSING_CLOUD")]
    assert streamed.origins("same") == [("batch", "MATCH")]
    assert streamed.origins("zombie") == [("batch", "DELETE_PENDING"), ("sweep", "ZOMBIE")]
    assert sum(streamed.sweep_counts.values()) == SWEPT
    assert streamed.sweep_counts == {
        # A batch leaves a mismatch open, since another window may have the version that matches.
        "verdict_mismatch": 1,
        "verdict_missing_cloud": 1,
        "verdict_missing_onprem": 1,
        "verdict_delete_event": 2,
        "verdict_zombie": 1,
        "verdict_late_match": 2,
    }


def test_a_record_from_the_future_waits_from_when_it_was_seen(streamed: StreamedPair) -> None:
    first = streamed.changes["ahead"][0]
    assert first["dq_status"] == "PENDING"
    deadline = EPOCH + timedelta(microseconds=first["deadline"])
    assert deadline <= datetime.now(UTC) + LIMITS.wait


@pytest.mark.slow
def test_old_news_in_a_later_window_is_not_told_whatever_its_clock_says(pipeline: Pipeline) -> None:
    """The clock of the versions runs two hours ahead, so that none is from before its window."""
    pair, ahead = Pair(pipeline), 7_200
    pair.send(onprem("k", version=ahead, read=1), cloud("k", version=ahead, number=None, read=2))
    pair.send(onprem("k", version=ahead + 9, read=3), cloud("k", version=ahead + 9, read=4))
    pair.process()
    pair.send(onprem("k", version=ahead, read=4_000))
    pair.send(cloud("k", version=ahead, number=None, read=4_001))
    pair.process()
    assert pair.statuses() == pair.last_published() == {"k": "MATCH"}
    told = pair.sql("SELECT dq_status FROM lake.dq.results_{t} WHERE settled")
    assert [row["dq_status"] for row in told] == ["MATCH"]
