"""The router on real parts: records in, every filter's topic out, and the ledger's account of it."""

from __future__ import annotations

import json

import pytest
from tests.integration.router import Router, event
from tests.integration.spark import Pipeline, Sent


@pytest.fixture
def router(pipeline: Pipeline) -> Router:
    return Router(pipeline)


def test_each_dealer_gets_its_own_events_and_every_record_is_accounted_for(router: Router) -> None:
    names = [router.dealer(number) for number in (1, 2, 3)]
    router.pipeline.produce(
        [
            *(event(n, f"DEALER-{n % 4 + 1:03d}") for n in range(40)),
            event(40, "DEALER-001", op="u"),
            event(41, "DEALER-001", kind="CarSold"),
            Sent(b"no event", b"x", partition=0),
            Sent(None, b"y", partition=1),
        ]
    )
    router.route()
    for number, name in enumerate(names):
        assert router.ids(name) == sorted(f"event-{n}" for n in range(40) if n % 4 == number)
    assert router.outcomes() == {"routed": 30, "unrouted": 12, "refused": 1, "tombstone": 1}
    sums = router.pipeline.store.routing.routed_sums(router.job)
    assert sums == dict.fromkeys(names, (10, 0))
    first = router.output(names[0])[0]
    assert json.loads(first.value or b"")["__table"] == "event_headers"
    assert first.headers["headgate.filter"] == "dealer-001"
    assert first.headers["headgate.revision"] == router.seen("dealer-001").revision
    assert first.headers["headgate.set"] == router.seen("dealer-001").set_id
    assert first.headers["headgate.origin"].startswith(f"{router.pipeline.topic}/0/")
