"""The router as a stream: sets change between two batches, or by the tick, and the query goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.integration.router import Router, event, once
from tests.integration.spark import Pipeline
from tests.integration.test_streaming import Stream

from headgate.checks.router_ranges import ranges_of, ranges_of_all
from headgate.local.process import wait_until
from headgate.store.coverage import gaps, overlaps
from headgate.store.routing_model import Standing

SECONDS = 60


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
    assert wait_until(lambda: true() or not stream.alive, SECONDS), router.seen
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


@pytest.mark.slow
def test_1000_filters_are_live_on_one_query(router: Router) -> None:
    for number in range(1_000):
        router.dealer(number, outputTopic=f"{router.pipeline.name}-shared-{number % 5}")
    with streaming(router) as stream:
        last = router.pipeline.store.routing.wanted_filter("dealer-999")
        assert last is not None
        until(router, stream, lambda: stands(router, "dealer-999", Standing.LIVE, last.deployment))
        router.pipeline.produce(event(n, f"DEALER-{n % 1_200:03d}") for n in range(6_000))
        until(router, stream, lambda: sum(row.read for row in router.ledger()) == 6_000)
        assert len(stream.context.session.streams.active) <= 1
    assert {one.standing for one in router.pipeline.store.routing.seen()} == {Standing.LIVE}
    sums = router.pipeline.store.routing.routed_sums(router.job)
    assert sums == {f"dealer-{n:03d}": (5, 0) for n in range(1_000)}
    assert router.outcomes() == {"routed": 5_000, "unrouted": 1_000}
    assert all(one.holds for one in ranges_of_all(router.pipeline.store))


@pytest.mark.slow
def test_a_storm_of_500_changes_in_a_minute_leaves_every_ledger_contiguous(router: Router) -> None:
    for number in range(20):
        router.dealer(number, outputTopic=f"{router.pipeline.name}-shared")
    with streaming(router) as stream:
        until(router, stream, lambda: len(router.pipeline.store.routing.seen()) == 20)
        begun, sent = time.monotonic(), 0
        for change in range(500):
            number, kind = change % 20, change % 5
            name = f"dealer-{number:03d}"
            if kind < 2:
                router.dealer(
                    number,
                    outputTopic=f"{router.pipeline.name}-shared",
                    description=f"change {change}",
                )
            elif kind < 4:
                router.want(name, paused=kind == 2, again=False)
            else:
                router.pipeline.store.routing.unwant(name)
            if change % 5 == 0:
                router.pipeline.produce(
                    event(n, f"DEALER-{n % 20:03d}") for n in range(sent, sent + 20)
                )
                sent += 20
            time.sleep(max(0.0, begun + change * 0.12 - time.monotonic()))
        assert time.monotonic() - begun < 70
        until(router, stream, lambda: sum(row.read for row in router.ledger()) == sent)
        generation = router.pipeline.store.routing.generation(router.pipeline.topic)
        assert generation >= 500
    rows = router.ledger()
    assert (gaps(rows), overlaps(rows)) == ((), ())
    assert len({row.revisions for row in rows}) > 10
    found = ranges_of_all(router.pipeline.store)
    assert [words for one in found for words in one.breaks] == []
    assert router.pipeline.store.run(stream.run.job, stream.run.number).restarts == 0
    # What was owed by pauses is made up for; a filter that is halted or off is owed nothing yet.
    for one in found:
        if one.waiting:
            router.replay(one.filter)
    again = ranges_of_all(router.pipeline.store)
    assert [
        (one.filter, one.waiting, one.breaks) for one in again if one.waiting or one.breaks
    ] == []
    sums = router.pipeline.store.routing.routed_sums()
    written = router.output_of(f"{router.pipeline.name}-shared")
    assert once(written).total() == len(written) == sum(n for n, _ in sums.values())
