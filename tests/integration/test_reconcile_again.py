"""What is told of a key is told once: by duplicates of a conflict, by old news, by clocks that run ahead."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.pipeline import InjectedFaultError, Interruption, Pipeline, ProducerRecord
from tests.support.reconcile_job import EPOCH, MORNING, Message, Pair, cloud, onprem, timestamp_text

from headgate.compile.reconcile.limits import Limits
from headgate.engine.faults import Point
from headgate.jobs import reconcile_sweep


def told(pair: Pair, key: str) -> list[str]:
    """The settled changes of a key, in the order in which they were told."""
    found = pair.sql(
        f"SELECT dq_status FROM lake.dq.results_{{t}} WHERE settled AND pk = '{key}'"
        " ORDER BY processing_time"
    )
    return [str(row["dq_status"]) for row in found]


def all_told(pair: Pair) -> list[tuple[str, ...]]:
    found = pair.sql("SELECT pk, id FROM lake.dq.results_{t} ORDER BY pk, processing_time, id")
    return [tuple(row) for row in found]


def verdict_counts(pair: Pair) -> dict[str, int]:
    counts = pair.pipeline.store.rule_counts(pair.job)
    return {c.rule: c.n for c in counts if not c.rule.startswith("counted_") and c.n}


def test_only_a_change_of_a_verdict_is_told(pipeline: Pipeline) -> None:
    """Duplicates from before the first arrival, and of a version in conflict, in its window and behind it."""
    pair = Pair(pipeline, window="20 SECONDS", grace="10 SECONDS", horizon="60 SECONDS")
    pair.send(onprem("conflict", number=1, read=1), onprem("conflict", number=2, read=2))
    pair.send(cloud("conflict", number=3, read=3))
    pair.send(onprem("plain", read=5), cloud("plain", number=3, read=3))
    pair.send(onprem("near", read=5), cloud("near", number=3, read=3))
    pair.send(onprem("match", read=5), cloud("match", read=3))
    pair.send(onprem("apart", read=30), cloud("apart", read=5))
    pair.process()
    # The window is still at hand.
    pair.send(onprem("near", read=4), onprem("match", read=4), onprem("apart", read=10))
    pair.process()
    # Two batches later it has been let go.
    for later in (250, 260):
        pair.send(onprem("other", version=later), cloud("other", version=later))
        pair.process()
    for _ in range(2):
        pair.send(onprem("conflict", number=2, read=3), onprem("plain", read=4))
        pair.process()
    assert {key: told(pair, key) for key in ("conflict", "plain", "near", "match", "apart")} == {
        "conflict": ["MISMATCH"],
        "plain": ["MISMATCH"],
        "near": ["MISMATCH"],
        "match": ["MATCH"],
        # The sides have met within the window after all: that is another verdict.
        "apart": ["LATE_MATCH", "MATCH"],
    }
    assert pair.last_published() == pair.statuses()
    assert pair.verdicts() == pair.expected(
        Limits(timedelta(seconds=20), timedelta(seconds=10), timedelta(seconds=60))
    )


@pytest.mark.slow
def test_a_duplicate_of_a_version_in_conflict_tells_nothing_again(pipeline: Pipeline) -> None:
    pair = Pair(pipeline)
    pair.send(onprem("other"), cloud("other"), onprem("back"), cloud("back", number=2))
    pair.send(onprem("gone"), cloud("gone"), onprem("skewed"), cloud("skewed"))
    pair.process()
    # The same versions say something else: another hash, a delete, another version of the contract.
    pair.send(cloud("other", number=2, read=5), cloud("back", read=5))
    pair.send(onprem("gone", action="DELETE", read=5), cloud("skewed", hash_version=1, read=5))
    pair.process()
    assert pair.verdicts() == pair.expected()
    assert pair.last_published() == pair.statuses()
    assert told(pair, "other") == ["MATCH", "MISMATCH"]
    assert told(pair, "back") == ["MISMATCH", "MATCH"]
    assert told(pair, "gone") == ["MATCH", "ZOMBIE"]
    assert told(pair, "skewed") == ["MATCH", "VERSION_SKEW"]
    before, counted = all_told(pair), verdict_counts(pair)
    for later in (6, 7):
        pair.send(cloud("other", number=2, read=later), cloud("back", read=later))
        pair.send(onprem("gone", action="DELETE", read=later))
        pair.send(cloud("skewed", hash_version=1, read=later))
        pair.process()
    assert all_told(pair) == before
    assert verdict_counts(pair) == counted
    assert pair.verdicts() == pair.expected()


@pytest.mark.slow
def test_a_plain_match_of_old_versions_is_not_told_where_newer_ones_stand(
    new_pipeline: Callable[..., Pipeline],
) -> None:
    """The newer ones are from a clock that ran ahead: they stand in an earlier window."""
    pair = Pair(new_pipeline())
    pair.send(onprem("k", version=5_000, read=600), cloud("k", version=5_000, number=2, read=601))
    pair.process()
    before = all_told(pair)
    pair.send(onprem("k", version=3_900, read=4_000), cloud("k", version=3_900, read=4_001))
    pair.send(onprem("new", version=3_900, read=4_000), cloud("new", version=3_900, read=4_001))
    pair.process()
    assert [row for row in all_told(pair) if row[0] == "k"] == before
    assert pair.last_published() == pair.statuses() == {"k": "MISMATCH", "new": "MATCH"}
    # After a repair the query knows nothing of the window amid which it begins.
    pair.send(
        onprem("r", version=4_100, read=4_200), cloud("r", version=4_100, number=2, read=4_201)
    )
    pair.process()
    pair.pipeline.process("reconcile", form="repair")
    pair.send(onprem("r", version=4_050, read=4_300), cloud("r", version=4_050, read=4_301))
    pair.process()
    assert told(pair, "r") == ["MISMATCH"]
    assert pair.verdicts() == pair.expected()


@pytest.mark.slow
def test_old_news_behind_the_last_batch_tells_nothing(pipeline: Pipeline) -> None:
    """The batch has records of the earlier window alone; what is newer came with the batch before it."""
    pair = Pair(pipeline)
    pair.send(onprem("k", 3_500))
    pair.process()
    pair.send(onprem("k", 3_700), cloud("k", 3_700))
    pair.process()
    before, counted = all_told(pair), verdict_counts(pair)
    assert told(pair, "k")[-1] == "MATCH"
    pair.send(cloud("k", 3_500, number=None, read=3_550))
    pair.process()
    assert all_told(pair) == before
    assert verdict_counts(pair) == counted
    assert pair.last_published() == pair.statuses() == {"k": "MATCH"}


def test_a_record_from_the_future_waits_from_when_it_was_seen(pipeline: Pipeline) -> None:
    pair, ahead = Pair(pipeline), timedelta(minutes=50)
    stamp = round((datetime.now(UTC) + ahead - EPOCH) / timedelta(milliseconds=1))
    value = {"pk": "k", "hash_cloud": "0" * 64, "hash_version": 2}
    value |= {"cloud_ts": timestamp_text((stamp - MORNING) / 1000)}
    pair.send(Message("cloud", ProducerRecord(json.dumps(value).encode(), b"k", (), 0, stamp)))
    pair.process()
    assert pair.statuses() == {"k": "PENDING"}
    (due,) = pair.sql("SELECT unix_micros(deadline) AS at FROM lake.dq.results_{t}")
    at = EPOCH + timedelta(microseconds=due["at"])
    assert at <= datetime.now(UTC) + Limits().wait


@pytest.mark.slow
def test_more_keys_than_one_sweep_takes_are_swept_in_portions(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed portion is finished by the next run, which goes on with the round."""
    monkeypatch.setattr(reconcile_sweep, "PORTION", 4)
    pair, job = Pair(pipeline), reconcile_sweep.sweep_job(pipeline.name)
    pair.send(*(onprem(f"k{n}") for n in range(10)))

    def break_off() -> None:
        if struck.hits == 3:  # the batch, the first portion, the second
            raise InjectedFaultError

    struck = Interruption(Point.AFTER_PARTIALS, break_off)
    with pytest.raises(InjectedFaultError):
        pair.process(struck)
    assert len(pipeline.store.ledger(job)) == 1
    pair.process()
    rows = pipeline.store.ledger(job)
    assert len(rows) == 3
    assert sum(row.outcomes["swept"] for row in rows) == 10
    assert pair.last_published() == pair.statuses() == {f"k{n}": "MISSING_CLOUD" for n in range(10)}
    before = all_told(pair)
    pair.process()
    assert all_told(pair) == before
    assert len(pipeline.store.ledger(job)) == 3
