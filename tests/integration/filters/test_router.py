"""The router on real parts: records in, every filter's topic out, and the ledger's account of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.pipeline import (
    InjectedFaultError,
    Pipeline,
    ProducerRecord,
    create_topic,
    fail_at,
)
from tests.support.router_job import RoutedRecord, Router, deduplicate, event
from tests.support.run_requests import REPAIR

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Faults, Point
from headgate.errors import BatchRefusedError
from headgate.filters.accounting import ranges_of_all
from headgate.filters.compile.matcher import Event, event_of, output_of
from headgate.filters.store.model import Owing, Seen, Standing
from headgate.filters.store.routing import RoutingStore

FILTERS = Path("schemas/v1/filters")
GOLDEN = Path("tests/golden/router/output.jsonl")


@pytest.fixture
def router(pipeline: Pipeline) -> Router:
    return Router(pipeline)


def breaks(router: Router) -> list[str]:
    """Where the ranges of any filter do not join up."""
    return [words for one in ranges_of_all(router.pipeline.store) for words in one.breaks]


def lanes(router: Router, filter: str) -> list[tuple[int, int, str]]:
    """What the filter has judged of partition 0: from, to, and the job."""
    ranges = router.pipeline.store.part(RoutingStore).routed(filter).ranges
    return [
        (one.start, one.end, one.job.partition("-")[0]) for one in ranges if one.partition == "0"
    ]


def test_the_dealers_documents_send_each_its_own_events_and_every_record_is_accounted_for(
    router: Router,
) -> None:
    names = [router.declare(own(router, path)) for path in sorted(FILTERS.glob("*.json"))]
    first = [event(n, f"DEALER-{n % 3 + 1:03d}", note="Zoë's 5 € “car”\n") for n in range(3)]
    router.pipeline.produce(
        [
            *first,
            *(event(n, f"DEALER-{n % 4 + 1:03d}") for n in range(4, 40)),
            event(40, "DEALER-001", op="u"),
            event(41, "DEALER-001", kind="CarSold"),
            ProducerRecord(b"no event", b"x", partition=0),
            ProducerRecord(None, b"y", partition=1),
        ]
    )
    router.route()
    for number, name in enumerate(names):
        expected = [number, *(n for n in range(4, 40) if n % 4 == number)]
        assert router.ids(name) == sorted(f"event-{n}" for n in expected)
    golden = [line for name in names for line in told(name, router.output(name))]
    assert golden == GOLDEN.read_text("utf-8").splitlines()
    assert router.outcomes() == {"routed": 30, "unrouted": 11, "refused": 1, "tombstone": 1}
    sums = router.pipeline.store.part(RoutingStore).routed_sums(router.job)
    assert sums == dict.fromkeys(names, (10, 0))
    seen, headers = router.seen(names[0]), router.output(names[0])[0].headers
    assert headers["headgate.origin"].startswith(f"{router.pipeline.topic}/0/")
    assert headers["headgate.source_id"] == seen.source_id
    by = (headers["headgate.filter"], headers["headgate.revision"], headers["headgate.set"])
    assert by == (names[0], seen.revision, seen.set_id)
    (letter,) = router.dead_letters()
    assert (letter.code, letter.value) == ("not_json", b"no event")
    certificate = router.pipeline.certify()
    assert broken(certificate) == ()
    assert [account.title for account in certificate.rules] == [
        f"filters on {router.pipeline.topic}"
    ]


def own(router: Router, path: Path) -> dict[str, Any]:
    """A shipped document on the topics of this test."""
    document = json.loads(path.read_text())
    topics = {"source": router.pipeline.topic, "outputTopic": router.topic(document["id"])}
    return {**document, **topics}


def told(filter: str, records: list[RoutedRecord]) -> list[str]:
    """The bytes of the first events, as the golden file has them."""
    return [
        json.dumps(
            {
                "filter": filter,
                "key": one.id,
                "value": (one.value or b"").decode(),
                "headers": sorted(one.headers),
            },
            ensure_ascii=False,
        )
        for one in records
        if one.id in ("event-0", "event-1", "event-2")
    ]


ALL = [{"field": "event_type", "operator": "isNotNull"}]
BAD = ProducerRecord(b"{", b"bad", partition=0)


@dataclass
class Timeline:
    """One router's topic in six blocks of ten events; what was observed on the way."""

    router: Router
    first: Seen
    second: Seen
    updated_ranges: list[tuple[int, int, str]]
    first_outcomes: dict[str, int]
    sent_while_paused: int
    sent_before_replay: int
    replayed: list[str]


def block(number: int) -> list[ProducerRecord]:
    """Ten events of two dealers in turn, five a partition."""
    return [event(n, f"DEALER-{n // 2 % 2 + 1:03d}") for n in range(number * 10, number * 10 + 10)]


def ids_of(events: Iterable[int]) -> list[str]:
    return sorted(f"event-{n}" for n in events)


@pytest.fixture(scope="module")
def timeline(module_pipeline: Pipeline) -> Timeline:
    """Filters are deployed before and after the first run, backfilled, updated, paused and resumed.

    One that is deployed among the records of the router's first batch is live after it; what it owes of
    that batch is replayed.
    """
    router = Router(module_pipeline)

    def route(number: int) -> None:
        module_pipeline.produce(block(number))
        router.route()

    module_pipeline.produce([*block(0), BAD])
    router.deploy("before-start", ALL)
    route(1)
    first_outcomes = router.outcomes()
    router.deploy("after-start", ALL)
    router.deploy("backfilled", ALL, backfill="earliest")
    router.dealer(1)
    route(2)
    first = router.seen("dealer-001")
    other = [{"field": "header_data.dealerId", "operator": "equals", "value": "DEALER-002"}]
    router.deploy("dealer-001", other)
    route(3)
    second = router.seen("dealer-001")
    ranges = router.pipeline.store.part(RoutingStore).routed("dealer-001").ranges
    updated_ranges = [(r.start, r.end, r.revision) for r in ranges if r.partition == "0"]
    router.want("dealer-001", paused=True, again=False)
    route(4)
    assert router.seen("dealer-001").standing is Standing.PAUSED
    sent_while_paused = len(router.ids("dealer-001"))
    router.want("dealer-001", again=False)
    route(5)
    sent_before_replay = len(router.ids("dealer-001"))
    return Timeline(
        router,
        first,
        second,
        updated_ranges,
        first_outcomes,
        sent_while_paused,
        sent_before_replay,
        sorted(run.subject for run in router.replay()),
    )


def test_an_update_judges_from_a_batch_boundary_on(timeline: Timeline) -> None:
    first, second = timeline.first, timeline.second
    # Partition 0 has the bad record too.
    assert (first.cutover, second.cutover) == ({"0": 11, "1": 10}, {"0": 16, "1": 15})
    assert second.revision != first.revision
    assert timeline.updated_ranges == [(11, 16, first.revision), (16, 21, second.revision)]


def test_what_a_paused_filter_missed_is_caught_up(timeline: Timeline) -> None:
    router = timeline.router
    assert (timeline.sent_while_paused, timeline.sent_before_replay) == (12, 18)
    expected = [n for n in range(20, 60) if n // 2 % 2 == (n >= 30)]
    assert router.ids("dealer-001") == ids_of(expected)
    assert lanes(router, "dealer-001") == [
        (11, 16, "router"),
        (16, 21, "router"),
        (21, 26, "replay"),
        (26, 31, "router"),
    ]


def test_a_backfill_hands_over_to_live_traffic_without_gap_or_repeat(timeline: Timeline) -> None:
    router = timeline.router
    assert timeline.first_outcomes == {"unrouted": 20, "refused": 1}
    assert timeline.replayed == ["backfilled", "before-start", "dealer-001"]
    assert router.ids("backfilled") == ids_of(range(60))
    assert [one.state for one in router.pipeline.store.part(RoutingStore).owed("backfilled")] == [
        Owing.DONE
    ]
    replayed, *live = lanes(router, "backfilled")
    assert replayed == (0, 11, "replay")
    assert {job for _, _, job in live} == {"router"}
    assert len(router.dead_letters()) == 1


def test_without_a_backfill_nothing_from_before_the_deployment_is_sent_whatever_comes_first(
    timeline: Timeline,
) -> None:
    assert timeline.router.ids("before-start") == ids_of(range(10, 60))
    assert timeline.router.ids("after-start") == ids_of(range(20, 60))


def test_the_ranges_of_every_filter_join_up_and_the_certificate_holds(timeline: Timeline) -> None:
    assert breaks(timeline.router) == []
    assert broken(timeline.router.pipeline.certify()) == ()


def test_a_filter_that_raises_is_suspended_alone_and_the_others_write_what_they_should(
    router: Router, tmp_path: Path
) -> None:
    events = [event(n, f"DEALER-{n % 3 + 1:03d}") for n in range(30)]
    for number in (1, 2, 3):
        router.dealer(number)
    router.pipeline.produce(events)
    witness = tmp_path / "witness"
    router.route(Faults(f"filter-raises@dealer-002:{witness}"))
    assert witness.read_text() == "filter-raises"
    for number in (0, 2):
        written = sorted((one.key, one.value) for one in router.output(f"dealer-{number + 1:03d}"))
        assert written == sorted(_sent(one) for one in events[number::3])
    assert router.ids("dealer-002") == []
    bad = router.seen("dealer-002")
    assert (bad.standing, set(bad.cutover.values())) == (Standing.SUSPENDED, {0})
    assert "a fault" in bad.reason
    assert router.outcomes() == {"routed": 20, "unrouted": 10}
    assert breaks(router) == []


def _sent(record: ProducerRecord) -> tuple[bytes, bytes]:
    """What the twin says that the router writes."""
    found = event_of(record.value)
    assert isinstance(found, Event)
    return output_of(found)


def test_a_batch_that_breaks_off_is_judged_again_by_the_set_it_was_announced_under(
    router: Router,
) -> None:
    router.dealer(1)
    router.pipeline.produce(event(n) for n in range(10))
    with pytest.raises(InjectedFaultError):
        router.route(fail_at(Point.AFTER_ROUTING))
    assert len(router.ids("dealer-001")) == 10
    router.pipeline.store.part(RoutingStore).unwant("dealer-001")
    router.route()
    found = router.output("dealer-001")
    assert len(found) == 20
    assert len({one.origin for one in found}) == 10
    assert len({one.headers["headgate.set"] for one in found}) == 1
    assert deduplicate(found).total() == 10
    assert router.seen("dealer-001").standing is Standing.OFF
    assert router.pipeline.store.part(RoutingStore).routed("dealer-001").n == 10
    assert breaks(router) == []


def test_what_is_too_large_is_a_dead_letter_and_a_filter_that_cannot_be_taken_up_says_why(
    router: Router,
) -> None:
    bootstrap = str(router.pipeline.settings.bootstrap_servers)
    create_topic(bootstrap, router.topic("dealer-001"), 1, 2_000)
    router.dealer(1)
    router.deploy("all", [{"field": "event_type", "operator": "isNotNull"}])
    bad = replace(router.want_dealer(2), revision="0" * 64, content='{"id": "dealer-002"}')
    router.pipeline.store.part(RoutingStore).want(bad)
    router.pipeline.produce([event(0), event(1, note="x" * 3_000), event(2)])
    router.route()
    assert router.ids("dealer-001") == ["event-0", "event-2"]
    assert router.ids("all") == ["event-0", "event-1", "event-2"]
    sums = router.pipeline.store.part(RoutingStore).routed_sums(router.job)
    assert sums == {"all": (3, 0), "dealer-001": (2, 1)}
    assert router.outcomes() == {"routed": 3}
    (letter,) = router.dead_letters()
    assert letter.code == "record_too_large"
    assert "filter dealer-001" in letter.reason
    assert "takes 2000" in letter.reason
    assert router.topics.found(router.topic("dealer-001")).partitions == 1
    assert router.topics.found(router.topic("all")).partitions == 3
    failed = router.seen("dealer-002")
    assert (failed.standing, failed.cutover) == (Standing.FAILED, {})
    assert "not valid" in failed.reason
    assert broken(router.pipeline.certify()) == ()


@pytest.mark.slow
def test_a_lost_checkpoint_is_refused_and_mended_from_the_ledger(router: Router) -> None:
    router.dealer(1)
    router.pipeline.produce(event(n) for n in range(6))
    router.route()
    shutil.rmtree(Path(router.pipeline.settings.checkpoints) / router.job)
    router.pipeline.produce(event(n) for n in range(6, 10))
    with pytest.raises(BatchRefusedError, match="checkpoint"):
        router.route()
    router.route(request=REPAIR)
    router.route()
    assert router.ids("dealer-001") == sorted(f"event-{n}" for n in range(10))
    assert len(router.output("dealer-001")) == 10
    assert breaks(router) == []
