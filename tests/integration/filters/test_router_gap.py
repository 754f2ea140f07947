"""Events that expired before the router read them: refused, then gone on without, and named for good."""

from __future__ import annotations

import pytest
from tests.support.pipeline import InjectedFaultError, Interruption, Pipeline, fail_at
from tests.support.router_job import Router, event
from tests.support.run_requests import ACCEPT_GAP
from tests.support.streams import delete_records_before, group_offsets

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Point
from headgate.core.kafka.offsets import ExpiredError
from headgate.core.ledger.model import Intent
from headgate.errors import UsageError
from headgate.filters.accounting import ranges_of_all
from headgate.filters.store.model import Standing

# Ten events are read, five a partition; of the next ten, these are gone before they are.
GONE = {0: 8, 1: 6}
LOST = frozenset({10, 12, 14, 11})


@pytest.fixture
def router(pipeline: Pipeline) -> Router:
    router = Router(pipeline)
    router.dealer(1)
    pipeline.produce(event(n) for n in range(10))
    router.route()
    pipeline.produce(event(n) for n in range(10, 20))
    return router


def arrived(router: Router) -> list[int]:
    """The events on the filter's topic, each as often as it stands there."""
    return sorted(int(id.removeprefix("event-")) for id in router.ids("dealer-001"))


def kept(last: int) -> list[int]:
    return [n for n in range(last) if n not in LOST]


def breaks(router: Router) -> list[str]:
    return [words for one in ranges_of_all(router.pipeline.store) for words in one.breaks]


def gaps(router: Router) -> list[int]:
    return [row.gaps for row in router.ledger() if row.is_accepted_gap]


def test_expired_events_are_refused_then_accepted_and_the_certificate_names_them(
    router: Router,
) -> None:
    delete_records_before(router.pipeline, GONE)
    with pytest.raises(ExpiredError, match=r"4 records of .* expired before") as refused:
        router.route()
    assert "partition 0: offsets 5 to 7, partition 1: offsets 5 to 5" in refused.value.why
    assert f"headgate job accept-gap {router.job}" in refused.value.fix
    assert arrived(router) == list(range(10))
    router.route(request=ACCEPT_GAP)
    gap = router.ledger()[-1]
    assert (gap.read, gap.gaps, gap.is_accepted_gap) == (0, 4, True)
    router.route()
    router.pipeline.produce(event(n) for n in range(20, 30))
    router.route()
    assert arrived(router) == kept(30)
    assert breaks(router) == []
    assert group_offsets(router.pipeline, router.job) == {"0": 15, "1": 15}
    with pytest.raises(UsageError, match=r"no record of .* expired"):
        router.route(request=ACCEPT_GAP)
    certificate = router.pipeline.certify()
    assert certificate.holds, broken(certificate)


@pytest.mark.slow
@pytest.mark.parametrize("again", [True, False], ids=["accepted again", "simply run again"])
@pytest.mark.parametrize("point", [Point.AFTER_INTENT, Point.BEFORE_OUTCOME])
def test_a_killed_acceptance_is_finished_by_whatever_run_comes_next(
    router: Router, point: Point, again: bool
) -> None:
    delete_records_before(router.pipeline, GONE)
    killed = fail_at(point)
    with pytest.raises(InjectedFaultError):
        router.route(killed, request=ACCEPT_GAP)
    assert killed.hits == 1
    assert [intent.is_accepted_gap for intent in open_intents(router)] == [True]
    if again:
        router.route(request=ACCEPT_GAP.model_copy(update={"accepted_by": "ben"}))
    router.route()
    assert open_intents(router) == ()
    assert gaps(router) == [4]
    assert arrived(router) == kept(20)
    assert breaks(router) == []


@pytest.mark.slow
def test_an_acceptance_that_was_killed_before_its_checkpoint_is_followed(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_records_before(router.pipeline, GONE)
    with monkeypatch.context() as patch:
        patch.setattr("headgate.filters.router.job.repair_checkpoint", struck)
        with pytest.raises(InjectedFaultError):
            router.route(request=ACCEPT_GAP)
    assert (open_intents(router), gaps(router)) == ((), [4])
    router.route()
    assert arrived(router) == kept(20)
    assert gaps(router) == [4]
    assert breaks(router) == []


@pytest.mark.slow
def test_a_batch_that_was_announced_and_has_expired_since_is_given_up(router: Router) -> None:
    with pytest.raises(InjectedFaultError):
        router.route(fail_at(Point.AFTER_INTENT))
    assert len(open_intents(router)) == 1
    delete_records_before(router.pipeline, GONE)
    with pytest.raises(ExpiredError):
        router.route()
    router.route(request=ACCEPT_GAP)
    router.route()
    assert open_intents(router) == ()
    assert gaps(router) == [4]
    assert router.seen("dealer-001").standing is Standing.LIVE
    assert arrived(router) == kept(20)
    assert breaks(router) == []


@pytest.mark.slow
def test_a_batch_that_was_sent_and_not_settled_has_expired_since(router: Router) -> None:
    """Its events stand on the topics; what is left of it is sent again under the same origins."""
    with pytest.raises(InjectedFaultError):
        router.route(fail_at(Point.AFTER_ROUTING))
    assert arrived(router) == list(range(20))
    delete_records_before(router.pipeline, GONE)
    router.route(request=ACCEPT_GAP)
    router.route()
    assert open_intents(router) == ()
    assert sorted(set(arrived(router))) == list(range(20))
    assert gaps(router) == [4]
    assert breaks(router) == []


@pytest.mark.slow
def test_events_that_expire_under_a_batch_end_it_in_words(router: Router) -> None:
    vanish = Interruption(Point.AFTER_INTENT, lambda: delete_records_before(router.pipeline, GONE))
    with pytest.raises(ExpiredError, match=r"4 records of .* expired before"):
        router.route(vanish)
    assert vanish.hits == 1
    router.route(request=ACCEPT_GAP)
    router.route()
    assert arrived(router) == kept(20)
    assert breaks(router) == []


def struck(*_: object) -> None:
    raise InjectedFaultError(Point.BEFORE_OUTCOME)


def open_intents(router: Router) -> tuple[Intent, ...]:
    return router.pipeline.store.open_intents(router.job)
