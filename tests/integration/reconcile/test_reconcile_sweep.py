"""What no batch can say of a key is said between batches: deadlines, and halves in two windows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import pytest
from tests.support.oracle import read_topic
from tests.support.pipeline import InjectedFaultError, Interruption, Pipeline
from tests.support.reconcile_job import MORNING, Pair, cloud, onprem

from headgate.certify.certificate import broken
from headgate.core.engine import batch as protocol
from headgate.core.engine.batch import Point
from headgate.reconcile.job.sweep import sweep_job

NEWEST = """
SELECT pk, dq_status FROM (
  SELECT *, row_number() OVER (PARTITION BY pk ORDER BY onprem_version DESC NULLS LAST,
    cloud_version DESC NULLS LAST, processing_time DESC, settled DESC) AS nth
  FROM lake.dq.results_{t}
) WHERE nth = 1"""


@pytest.fixture
def pair(pipeline: Pipeline) -> Pair:
    return Pair(pipeline, horizon=f"1 HOUR, audit: {{topic: {pipeline.name}-audit}}")


def told(pair: Pair, pk: str) -> list[tuple[Any, ...]]:
    """The story of one key, as its table has it."""
    rows = pair.sql(
        "SELECT origin, dq_status FROM lake.dq.results_{t}"
        f" WHERE pk = '{pk}' ORDER BY processing_time, dq_status"
    )
    return [tuple(row) for row in rows]


def newest(pair: Pair) -> dict[str, str]:
    return {row["pk"]: row["dq_status"] for row in pair.sql(NEWEST)}


@pytest.mark.slow
def test_halves_in_two_windows_are_one_pair(pair: Pair) -> None:
    pair.send(onprem("apart"))
    pair.process()
    pair.send(cloud("apart", read=4_000))
    pair.process()
    assert newest(pair) == pair.statuses() == {"apart": "LATE_MATCH"}
    settled = [status for _, status in told(pair, "apart") if status != "PENDING"]
    assert settled == ["MISSING_CLOUD", "LATE_MATCH"]


@pytest.mark.slow
def test_a_sweep_says_nothing_twice(pair: Pair) -> None:
    pair.send(onprem("alone"), onprem("a"), cloud("a"))
    pair.process()
    before = pair.sql("SELECT id FROM lake.dq.results_{t} ORDER BY id")
    pair.process()
    pair.send(onprem("a"), onprem("alone"))  # replayed in another window of time
    pair.process()
    after = pair.sql("SELECT id FROM lake.dq.results_{t} ORDER BY id")
    assert after == before
    assert newest(pair) == pair.statuses() == {"alone": "MISSING_CLOUD", "a": "MATCH"}


def second(point: Point) -> Interruption:
    """Strikes the second time that the point is met: in the sweep, after its batch."""

    def act() -> None:
        if found.hits == 2:
            raise InjectedFaultError(point)

    found = Interruption(point, act)
    return found


def broken_off(pair: Pair, point: Point, key: str) -> None:
    pair.send(onprem(key), onprem(f"{key}-dead", action="DELETE"))
    with pytest.raises(InjectedFaultError):
        pair.process(second(point))


def check_swept(pair: Pair, rounds: int) -> None:
    """Each key was settled once, and counted once."""
    assert newest(pair) == pair.statuses()
    settled = pair.sql("SELECT id FROM lake.dq.results_{t} WHERE settled")
    assert len({row["id"] for row in settled}) == len(settled) == 2 * rounds
    counts = {c.rule: c.n for c in pair.pipeline.store.rule_counts(sweep_job(pair.name))}
    assert counts == {"verdict_missing_cloud": rounds, "verdict_delete_event": rounds}


@pytest.mark.slow
def test_a_sweep_that_is_broken_off_is_finished_and_says_nothing_twice(pair: Pair) -> None:
    points = (Point.AFTER_PARTIALS, Point.AFTER_PUBLISH)
    for point in points:
        broken_off(pair, point, str(point))
    pair.process()
    check_swept(pair, len(points))
    assert broken(pair.pipeline.certify()) == ()


@pytest.mark.slow
@pytest.mark.parametrize("point", [Point.AFTER_INTENT, Point.AFTER_STAGING, Point.BEFORE_OUTCOME])
def test_a_sweep_broken_off_at_any_point_is_finished(pair: Pair, point: Point) -> None:
    broken_off(pair, point, str(point))
    pair.process()
    check_swept(pair, 1)
    assert broken(pair.pipeline.certify()) == ()


@pytest.mark.slow
def test_a_replay_of_both_sides_in_a_later_window_changes_no_verdict(pair: Pair) -> None:
    """The replay's window has both sides, and they look late there; the key as a whole matched before."""
    pair.send(onprem("k"), cloud("k", read=2))
    pair.process()
    pair.send(cloud("k", version=0, read=3_700), onprem("k", version=0, read=4_500))
    pair.process()
    assert newest(pair) == pair.statuses() == {"k": "MATCH"}
    assert [status for _, status in told(pair, "k") if status != "PENDING"] == ["MATCH"]


@pytest.mark.slow
def test_a_verdict_that_comes_back_at_the_same_versions_is_told_again(pair: Pair) -> None:
    """A row of the cloud that changes without a new version: differs, equals, differs."""
    pair.send(onprem("k", number=1), cloud("k", number=2))
    pair.process()
    pair.send(cloud("k", number=1, read=2))
    pair.process()
    pair.send(cloud("k", number=2, read=3))
    pair.process()
    settled = [status for _, status in told(pair, "k") if status != "PENDING"]
    assert settled == ["MISMATCH", "MATCH", "MISMATCH"]
    assert newest(pair) == pair.statuses() == {"k": "MISMATCH"}
    audit = read_topic(pair.bootstrap, f"{pair.name}-audit")
    sent = [json.loads(record.value or b"") for record in audit]
    assert [(one["status"], one.get("previous")) for one in sent] == [
        ("MISMATCH", None),
        ("MATCH", "MISMATCH"),
        ("MISMATCH", "MATCH"),
    ]
    keys = [(record.header("headgate.id"), record.header("headgate.audit_ts")) for record in audit]
    assert keys == [(one["id"], one["audit_ts"]) for one in sent]
    assert len({id_ for id_, _ in keys}) == 2
    assert len(set(keys)) == 3


class Clock(datetime):
    """The clock of batches, which may be set."""

    ahead = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # pyright: ignore[reportIncompatibleMethodOverride]
        return datetime.now(tz) + cls.ahead


@pytest.mark.slow
def test_a_clock_that_is_set_back_leaves_no_key_waiting(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline lies between the clock's time and that of the last batch."""

    def set_back() -> None:
        Clock.ahead = timedelta()

    monkeypatch.setattr(protocol, "datetime", Clock)
    monkeypatch.setattr(Clock, "ahead", timedelta(hours=1))
    now = (datetime.now(UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() - MORNING / 1000
    pair.send(onprem("k", now))
    pair.process(Interruption(Point.BEFORE_OUTCOME, set_back))
    rows = pair.pipeline.store.ledger()
    assert [row.job for row in rows] == [pair.job, sweep_job(pair.name)]
    assert rows[0].batch_time < rows[1].batch_time
    assert told(pair, "k") == [("batch", "PENDING"), ("sweep", "MISSING_CLOUD")]
    pair.send(cloud("k", now))
    pair.process()
    times = [row.batch_time for row in pair.pipeline.store.ledger()]
    assert times == sorted(times)
    assert newest(pair) == {"k": "MATCH"}
