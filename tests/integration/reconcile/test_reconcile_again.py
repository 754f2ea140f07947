"""What is told of a key is told once: by duplicates of a conflict, by old news, by clocks that run ahead."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.pipeline import InjectedFaultError, Interruption, Pipeline
from tests.support.reconcile_job import Pair, cloud, onprem
from tests.support.run_requests import REPAIR

from headgate.core.engine.batch import Point
from headgate.reconcile.job import sweep


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
    pair.pipeline.process("reconcile", request=REPAIR)
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


@pytest.mark.slow
def test_more_keys_than_one_sweep_takes_are_swept_in_portions(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed portion is finished by the next run, which goes on with the round."""
    monkeypatch.setattr(sweep, "SHARD_KEYS", 4)
    pair, job = Pair(pipeline), sweep.sweep_job(pipeline.name)
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
