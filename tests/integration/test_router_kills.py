"""kill -9 of the engine at each point of a router's batch; a topic that is deleted under it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.router import Router, event, once
from tests.integration.spark import Interruption, Pipeline, Sent

from headgate.checks.certificate import broken
from headgate.checks.router_ranges import ranges_of_all
from headgate.engine.faults import Point
from headgate.store.routing_model import Standing

POINTS = (
    (Point.AFTER_INTENT, 1),
    (Point.AFTER_ROUTING, 2),
    (Point.AFTER_DEAD_LETTERS, 2),
    (Point.BEFORE_OUTCOME, 2),
)
EACH = 20


@pytest.mark.slow
def test_an_engine_killed_at_any_point_of_a_batch_loses_nothing_and_repeats_only_what_can_be_told(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    router = Router(pipeline)
    for number in (1, 2, 3):
        router.dealer(number)
    for number, (point, time) in enumerate(POINTS):
        produce(pipeline, number)
        witness = tmp_path / str(point)
        command = pipeline.command("job", "run", router.job, fault=f"{point}@{time}:{witness}")
        _, talk = command.communicate(timeout=180)
        assert command.returncode == -signal.SIGKILL, talk
        assert witness.read_text() == str(point)
    last = pipeline.command("job", "run", router.job)
    _, talk = last.communicate(timeout=180)
    assert last.returncode == 0, talk
    records = len(POINTS) * EACH
    for number in (1, 2, 3):
        name = f"dealer-{number:03d}"
        expected = [n for n in range(records) if n % 4 + 1 == number]
        found = once(router.output(name))
        assert max(found.values()) == 1
        assert sorted(id for id, _ in found) == sorted(f"event-{n}" for n in expected)
    assert router.outcomes() == {
        "routed": records * 3 // 4,
        "unrouted": records // 4,
        "refused": len(POINTS),
        "tombstone": len(POINTS),
    }
    assert len(router.letters()) == len(POINTS)
    assert [one.breaks for one in ranges_of_all(pipeline.store)] == [(), (), ()]
    assert broken(pipeline.certify()) == ()


def produce(pipeline: Pipeline, number: int) -> None:
    first = number * EACH
    events = (event(n, f"DEALER-{n % 4 + 1:03d}") for n in range(first, first + EACH))
    pipeline.produce([*events, Sent(b"{", b"x", partition=0), Sent(None, b"y", partition=1)])


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["before the batch", "during the batch"])
def test_a_filter_whose_topic_is_deleted_is_suspended_alone(
    new_pipeline: Callable[..., Pipeline], late: bool
) -> None:
    router, other = Router(new_pipeline()), Router(new_pipeline())
    for one in (router, other):
        for number in (1, 2, 3):
            one.dealer(number)
        one.pipeline.produce(event(n, f"DEALER-{n % 3 + 1:03d}") for n in range(9))
        one.route()
        one.pipeline.produce(event(n, f"DEALER-{n % 3 + 1:03d}") for n in range(9, 30))
    gone = router.topic("dealer-002")

    def delete() -> None:
        router.topics.delete([gone])

    if not late:
        delete()
    router.route(Interruption(Point.AFTER_INTENT, delete) if late else None)
    other.route()
    for name in ("dealer-001", "dealer-003"):
        mine, theirs = (sorted(once(one.output(name))) for one in (router, other))
        assert mine == theirs
    bad = router.seen("dealer-002")
    assert (bad.standing, sum(bad.cutover.values())) == (Standing.SUSPENDED, 9)
    assert gone in bad.reason
    router.want("dealer-002")
    router.route()
    router.replay("dealer-002")
    assert router.ids("dealer-002") == [id for id in other.ids("dealer-002") if int(id[6:]) >= 9]
    assert [words for one in ranges_of_all(router.pipeline.store) for words in one.breaks] == []
