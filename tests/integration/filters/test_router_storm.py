"""Many filters, many changes, and an engine that is killed at every point of a batch."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from tests.support.pipeline import Pipeline, ProducerRecord
from tests.support.router_job import Router, deduplicate, event
from tests.support.streams import has_standing, stream_router

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Point
from headgate.core.ledger.offset_ranges import gaps, overlaps
from headgate.filters.accounting import ranges_of_all
from headgate.filters.store.model import Standing
from headgate.filters.store.routing import RoutingStore

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
    for number, (point, nth) in enumerate(POINTS):
        produce(pipeline, number)
        witness = tmp_path / str(point)
        command = pipeline.command("job", "run", router.job, fault=f"{point}@{nth}:{witness}")
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
        found = deduplicate(router.output(name))
        assert max(found.values()) == 1
        assert sorted(id for id, _ in found) == sorted(f"event-{n}" for n in expected)
    assert router.outcomes() == {
        "routed": records * 3 // 4,
        "unrouted": records // 4,
        "refused": len(POINTS),
        "tombstone": len(POINTS),
    }
    assert len(router.dead_letters()) == len(POINTS)
    assert [one.breaks for one in ranges_of_all(pipeline.store)] == [(), (), ()]
    assert broken(pipeline.certify()) == ()


def produce(pipeline: Pipeline, number: int) -> None:
    first = number * EACH
    events = (event(n, f"DEALER-{n % 4 + 1:03d}") for n in range(first, first + EACH))
    pipeline.produce(
        [*events, ProducerRecord(b"{", b"x", partition=0), ProducerRecord(None, b"y", partition=1)]
    )


@pytest.fixture
def router(pipeline: Pipeline) -> Router:
    return Router(pipeline)


@pytest.mark.slow
def test_1000_filters_are_live_on_one_query(router: Router) -> None:
    for number in range(1_000):
        router.dealer(number, outputTopic=f"{router.pipeline.name}-shared-{number % 5}")
    with stream_router(router) as stream:
        last = router.pipeline.store.part(RoutingStore).wanted_filter("dealer-999")
        assert last is not None
        stream.wait_for(
            lambda: has_standing(router, "dealer-999", Standing.LIVE, last.deployment),
        )
        router.pipeline.produce(event(n, f"DEALER-{n % 1_200:03d}") for n in range(6_000))
        stream.wait_for(lambda: sum(row.read for row in router.ledger()) == 6_000)
        assert len(stream.context.session.streams.active) <= 1
    assert {one.standing for one in router.pipeline.store.part(RoutingStore).seen()} == {
        Standing.LIVE
    }
    sums = router.pipeline.store.part(RoutingStore).routed_sums(router.job)
    assert sums == {f"dealer-{n:03d}": (5, 0) for n in range(1_000)}
    assert router.outcomes() == {"routed": 5_000, "unrouted": 1_000}
    assert all(one.holds for one in ranges_of_all(router.pipeline.store))


@pytest.mark.slow
def test_a_storm_of_500_changes_in_a_minute_leaves_every_ledger_contiguous(router: Router) -> None:
    for number in range(20):
        router.dealer(number, outputTopic=f"{router.pipeline.name}-shared")
    with stream_router(router) as stream:
        stream.wait_for(lambda: len(router.pipeline.store.part(RoutingStore).seen()) == 20)
        begun, sent = time.monotonic(), 0
        for change in range(500):
            number = change % 20
            kind = (change // 20 + number) % 5
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
                router.pipeline.store.part(RoutingStore).unwant(name)
            if change % 5 == 0:
                router.pipeline.produce(
                    event(n, f"DEALER-{n % 20:03d}") for n in range(sent, sent + 20)
                )
                sent += 20
            time.sleep(max(0.0, begun + change * 0.12 - time.monotonic()))
        assert time.monotonic() - begun < 70
        stream.wait_for(lambda: sum(row.read for row in router.ledger()) == sent)
        generation = router.pipeline.store.part(RoutingStore).generation(router.pipeline.topic)
        assert generation >= 500
        for number in range(20):
            router.dealer(number, outputTopic=f"{router.pipeline.name}-shared")
        wanted = {
            one.filter: one.deployment for one in router.pipeline.store.part(RoutingStore).wanted()
        }
        stream.wait_for(
            lambda: all(has_standing(router, *one) for one in _live(wanted)),
        )
    rows = router.ledger()
    assert (gaps(rows), overlaps(rows)) == ((), ())
    assert len({row.revisions for row in rows}) > 10
    found = ranges_of_all(router.pipeline.store)
    assert [words for one in found for words in one.breaks] == []
    assert router.pipeline.store.run(stream.run.job, stream.run.number).restarts == 0
    assert router.replay()
    again = ranges_of_all(router.pipeline.store)
    assert [
        (one.filter, one.waiting, one.breaks) for one in again if one.waiting or one.breaks
    ] == []
    sums = router.pipeline.store.part(RoutingStore).routed_sums()
    written = router.output_of(f"{router.pipeline.name}-shared")
    assert deduplicate(written).total() == len(written) == sum(n for n, _ in sums.values())


def _live(wanted: dict[str, str]) -> list[tuple[str, Standing, str]]:
    return [(filter, Standing.LIVE, deployment) for filter, deployment in wanted.items()]
