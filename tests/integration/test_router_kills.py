"""A filter's topic that is deleted before or during a batch: the others go on as if nothing were."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.router import Router, event, once
from tests.integration.spark import Interruption, Pipeline

from headgate.checks.router_ranges import ranges_of_all
from headgate.engine.faults import Point
from headgate.store.routing_model import Standing


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
    assert [run.subject for run in router.replay()] == ["dealer-002"]
    assert router.ids("dealer-002") == [id for id in other.ids("dealer-002") if int(id[6:]) >= 9]
    assert [words for one in ranges_of_all(router.pipeline.store) for words in one.breaks] == []
