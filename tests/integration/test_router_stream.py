"""The router as a stream: sets change between two batches, or by the tick, and the query goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.integration.test_streaming import Stream
from tests.support.pipeline import Pipeline
from tests.support.router_job import Router, event

from headgate.checks.router_ranges import ranges_of
from headgate.local.process import wait_until
from headgate.store.routing_model import Standing

SECONDS = 240


@pytest.fixture
def router(pipeline: Pipeline) -> Router:
    return Router(pipeline)


@contextmanager
def streaming(router: Router) -> Iterator[Stream]:
    pipeline = router.pipeline
    stream = Stream(pipeline, pipeline.context(pipeline.ask_for("router", "streaming")))
    try:
        yield stream
    finally:
        stream.end()
    assert stream.error is None


def until(router: Router, stream: Stream, true: Callable[[], bool]) -> None:
    assert wait_until(lambda: true() or not stream.alive, SECONDS)
    assert stream.error is None
    assert true()


def stands(router: Router, filter: str, standing: Standing, deployment: str) -> bool:
    seen = router.pipeline.store.routing.seen_filter(filter)
    return seen is not None and (seen.standing, seen.deployment) == (standing, deployment)


def test_on_an_idle_topic_a_filter_is_live_within_seconds_and_the_query_goes_on(
    router: Router,
) -> None:
    with streaming(router) as stream:
        wanted = router.want_dealer(1)
        until(
            router, stream, lambda: stands(router, "dealer-001", Standing.LIVE, wanted.deployment)
        )
        assert router.seen("dealer-001").cutover == {"0": 0, "1": 0}
        router.pipeline.produce(event(n) for n in range(6))
        until(router, stream, lambda: sum(row.read for row in router.ledger()) == 6)
        paused = router.want("dealer-001", paused=True, again=False)
        until(
            router, stream, lambda: stands(router, "dealer-001", Standing.PAUSED, paused.deployment)
        )
        assert router.seen("dealer-001").cutover == {"0": 3, "1": 3}
        queries = router.pipeline.session.streams.active
        assert router.pipeline.store.run(stream.run.job, stream.run.number).restarts == 0
        assert all(query.isActive for query in queries)
    assert router.ids("dealer-001") == sorted(f"event-{n}" for n in range(6))
    assert ranges_of(router.pipeline.store, "dealer-001").holds
