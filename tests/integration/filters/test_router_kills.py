"""A filter's topic that is deleted before or during a batch: the others go on as if nothing were."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.pipeline import InjectedFaultError, Interruption, Pipeline, create_topic, fail_at
from tests.support.router_job import Router, deduplicate, event
from tests.support.run_requests import REPAIR

from headgate.core.engine.batch import Point
from headgate.filters.accounting import ranges_of_all
from headgate.filters.store.model import Owing, Standing
from headgate.filters.store.routing import RoutingStore


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
        mine, theirs = (sorted(deduplicate(one.output(name))) for one in (router, other))
        assert mine == theirs
    bad = router.seen("dealer-002")
    assert (bad.standing, sum(bad.cutover.values())) == (Standing.SUSPENDED, 9)
    assert gone in bad.reason
    router.want("dealer-002")
    router.route()
    assert [run.subject for run in router.replay()] == ["dealer-002"]
    assert router.ids("dealer-002") == [id for id in other.ids("dealer-002") if int(id[6:]) >= 9]
    assert [words for one in ranges_of_all(router.pipeline.store) for words in one.breaks] == []


@pytest.mark.slow
def test_a_replay_that_was_killed_judges_nothing_of_a_topic_that_was_made_again(
    pipeline: Pipeline,
) -> None:
    router, store = Router(pipeline), pipeline.store
    pipeline.produce(event(n) for n in range(10))
    router.route()
    router.dealer(1, backfill="earliest")
    router.route()
    run = store.claim("replay-dealer-001", 1, "this test")
    with pytest.raises(InjectedFaultError):
        pipeline.carry_out(run, fail_at(Point.AFTER_INTENT))
    assert len(store.open_intents(run.job)) == 1
    router.topics.delete([pipeline.topic])
    create_topic(str(pipeline.settings.bootstrap_servers), pipeline.topic, 2, 1_048_588)
    pipeline.produce(event(n) for n in range(100, 112))
    router.route(request=REPAIR)
    router.route()
    pipeline.carry_out(run)
    assert store.open_intents(run.job) == ()
    assert router.ids("dealer-001") == sorted(f"event-{n}" for n in range(100, 112))
    owed = {one.state for one in store.part(RoutingStore).owed("dealer-001")}
    assert owed <= {Owing.GIVEN_UP, Owing.DONE}
    assert [words for one in ranges_of_all(store) for words in one.breaks] == []
