"""The core of the filters' demo on a broker and Spark alone: two people, three dealers, a change, a proof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.pipeline import Pipeline, ProducerRecord
from tests.support.router_job import Router, event

from headgate.core.identity.roles import Identity
from headgate.core.ledger.ops_store import utc_now
from headgate.dead_letters.service import attempts, open_redriving
from headgate.dead_letters.table import Chosen
from headgate.demo.filters.proof import Place, handled, prove
from headgate.errors import ForbiddenError
from headgate.filters.consumers.config import ConsumerConfig, Dealer
from headgate.filters.consumers.consumer import DealerConsumer
from headgate.filters.consumers.sinks import Seen
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.control.service import FilterService
from headgate.filters.git.store import GitStore
from headgate.filters.store.model import Status
from headgate.filters.store.routing import RoutingStore
from headgate.filters.targets.deployment import EngineTarget

ANA = Identity("ana", frozenset({"author", "approver"}))
BEN = Identity("ben", frozenset({"approver"}))
DORA = Identity("dora", frozenset({"deployer"}))
NUMBERS = (1, 2, 3)
SHIPPED = Path(__file__).parents[3] / "schemas" / "v1" / "filters"


class FilterHarness:
    """The control plane over a pipeline's store, and consumers of its topics."""

    def __init__(self, pipeline: Pipeline, folder: Path) -> None:
        self.router, self._folder = Router(pipeline), folder
        self.git = GitStore(folder / "filters.git")
        self.store = pipeline.store
        targets = {"engine": EngineTarget(self.store.part(RoutingStore))}
        self.service = FilterService(self.store, self.git, targets)
        self._reconciler = Reconciler(self.store, self.git, targets)
        self._bootstrap = pipeline.settings.need("bootstrap_servers")

    def document(self, number: int) -> dict[str, Any]:
        """A shipped filter, on this test's topics."""
        found = json.loads((SHIPPED / f"service-by-dealer-00{number}.json").read_text("utf-8"))
        topic = self.router.topic(f"dealer-00{number}")
        return {**found, "source": self.router.pipeline.topic, "outputTopic": topic}

    def approve(self, name: str) -> None:
        self.service.approve(BEN, name, self.service.get(name).revision)

    def settle(self) -> None:
        """The reconciler tells the router, which answers, which the reconciler notes."""
        self._reconciler.step()
        self.router.route()
        self._reconciler.step()

    def consume(self, number: int) -> list[str]:
        """Event ids that the dealer's consumer has handled by now, each once."""
        config = ConsumerConfig(
            dealer=Dealer(id=f"DEALER-00{number}", name="a dealer"),
            topic=self.router.topic(f"dealer-00{number}"),
            group=f"{self.router.pipeline.name}-{number}",
            sinks=("billing",),
        )
        with Seen(self.state(number)) as seen:
            DealerConsumer(config, self._bootstrap, seen).run(lambda: False, once=True)
        return sorted(handled(self.state(number)).elements())

    def state(self, number: int) -> Path:
        return self._folder / f"{number}.db"

    def faults(self, number: int, expected: list[str]) -> tuple[str, ...]:
        topic = self.router.topic(f"dealer-00{number}")
        place = Place(f"service-by-dealer-00{number}", topic, self.state(number))
        source = self.router.pipeline.topic
        return prove(self.store, self._bootstrap, source, place, expected).faults


@pytest.fixture
def harness(pipeline: Pipeline, tmp_path: Path) -> FilterHarness:
    return FilterHarness(pipeline, tmp_path)


def ids(numbers: range, dealer: int) -> list[str]:
    return [f"event-{n}" for n in numbers if n % 4 + 1 == dealer]


def test_from_a_document_to_a_dealers_log_with_two_people_and_a_proof(
    harness: FilterHarness,
) -> None:
    for number in NUMBERS:
        name = harness.service.create(ANA, harness.document(number)).id
        assert harness.service.generate(name).valid
        assert harness.service.validate(name).valid
        with pytest.raises(ForbiddenError):
            harness.service.approve(ANA, name, harness.service.get(name).revision)
        harness.approve(name)
        harness.service.deploy(DORA, name)
    harness.router.pipeline.produce([event(n, f"DEALER-00{n % 4 + 1}") for n in range(40)])
    harness.settle()
    assert {one.status for one in harness.service.list().filters} == {Status.DEPLOYED}

    changed = harness.document(1)
    dear = {"field": "header_data.amountPaid", "operator": "greaterThan", "value": 500}
    changed["conditions"] = [*changed["conditions"], {**dear, "valueType": "number"}]
    first = "service-by-dealer-001"
    harness.service.update(ANA, first, changed, harness.service.get(first).etag)
    harness.approve(first)
    harness.service.deploy(DORA, first)
    harness.router.pipeline.produce(
        [event(n, f"DEALER-00{n % 4 + 1}", amountPaid=n * 10) for n in range(40, 60)]
    )
    harness.settle()
    assert harness.service.get(first).deployed_version == 2

    harness.service.rollback(DORA, first)
    harness.router.pipeline.produce([event(n, f"DEALER-00{n % 4 + 1}") for n in range(60, 80)])
    harness.settle()

    dear_ids = [name for name in ids(range(40, 60), 1) if int(name[6:]) * 10 > 500]
    expected = {
        1: [*ids(range(40), 1), *dear_ids, *ids(range(60, 80), 1)],
        2: ids(range(80), 2),
        3: ids(range(80), 3),
    }
    for number in NUMBERS:
        assert harness.consume(number) == sorted(expected[number])
        assert harness.faults(number, expected[number]) == ()
    assert [commit.author for commit in harness.git.history(first)].count("ana") >= 2


@pytest.mark.slow
def test_a_dead_letter_of_the_router_is_sent_again_and_judged_again(
    harness: FilterHarness, tmp_path: Path
) -> None:
    pipeline = harness.router.pipeline
    harness.router.dealer(1)
    pipeline.produce([event(1), ProducerRecord(b"no event", b"x", partition=0)])
    harness.router.route()
    settings = pipeline.settings.model_copy(update={"home": tmp_path})
    mine = Chosen(job=harness.router.job)
    with open_redriving(settings) as redriving:
        [facts] = redriving.letters.facts(mine, 9)
        plan = redriving.plan(mine)
        report = redriving.carry_out(redriving.begin(plan, "olga", utc_now()), 100)
        assert (report.sent, report.left) == (1, 0)
        harness.router.route()
        newest, oldest = redriving.letters.facts(mine, 9)
        again = redriving.letters.letter(newest.id)
        assert (oldest, again.value, attempts(again.headers)) == (facts, b"no event", 1)
    assert harness.router.outcomes() == {"routed": 1, "refused": 2}
