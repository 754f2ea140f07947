"""The router as a stream: sets change between two batches, or by the tick, and the query goes on."""

from __future__ import annotations

import pytest
from tests.support.pipeline import Pipeline
from tests.support.router_job import Router, event
from tests.support.streams import has_standing, stream_router

from headgate.filters.accounting import ranges_of
from headgate.filters.store.model import Standing


@pytest.fixture
def router(pipeline: Pipeline) -> Router:
    return Router(pipeline)


def test_on_an_idle_topic_a_filter_is_live_within_seconds_and_the_query_goes_on(
    router: Router,
) -> None:
    with stream_router(router) as stream:
        wanted = router.want_dealer(1)
        stream.wait_for(
            lambda: has_standing(router, "dealer-001", Standing.LIVE, wanted.deployment),
        )
        assert router.seen("dealer-001").cutover == {"0": 0, "1": 0}
        router.pipeline.produce(event(n) for n in range(6))
        stream.wait_for(lambda: sum(row.read for row in router.ledger()) == 6)
        paused = router.want("dealer-001", paused=True, again=False)
        stream.wait_for(
            lambda: has_standing(router, "dealer-001", Standing.PAUSED, paused.deployment),
        )
        assert router.seen("dealer-001").cutover == {"0": 3, "1": 3}
        queries = router.pipeline.session.streams.active
        assert router.pipeline.store.run(stream.run.job, stream.run.number).restarts == 0
        assert all(query.isActive for query in queries)
    assert router.ids("dealer-001") == sorted(f"event-{n}" for n in range(6))
    assert ranges_of(router.pipeline.store, "dealer-001").holds
