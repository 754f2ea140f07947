from __future__ import annotations

import json
from collections.abc import Generator, Sequence

import pytest
from tests.support.control_plane import ANN, ControlPlaneHarness, filter_document
from tests.support.filter_documents import CANARY, event_value

from headgate.config.reference import MASK
from headgate.core.identity.masking import is_tagged, masked_header
from headgate.core.identity.roles import ROLES, Identity
from headgate.errors import DeclarationError, ForbiddenError, UnavailableError
from headgate.filters.control.service import FilterService
from headgate.filters.preview import Record, Span, shared_out
from headgate.filters.store.model import TopicEnd

VERA = Identity("vera", frozenset({"viewer"}))


class Memory:
    """The last records of a topic, in memory."""

    def __init__(self, values: Sequence[bytes | None]) -> None:
        self._values = values

    def end(self, topic: str) -> TopicEnd:
        return TopicEnd(topic, "t", {"0": len(self._values)})

    def span(self, topic: str, last: int) -> Span:
        end = len(self._values)
        return Span({0: (max(end - last, 0), end)})

    def records(self, topic: str, span: Span) -> Generator[Record]:
        begin, end = span.ranges[0]
        for offset in range(begin, end):
            yield Record(0, offset, 1_700_000_000_000 + offset, self._values[offset])


class Away(Memory):
    def span(self, topic: str, last: int) -> Span:
        raise UnavailableError("the broker is away")


def service_on(harness: ControlPlaneHarness, recent: Memory) -> FilterService:
    return FilterService(harness.store, None, harness.service.targets, recent=recent)


def mixed(n: int) -> list[bytes | None]:
    dealers = ("DEALER-001", "DEALER-002", "DEALER-003")
    return [*(event_value(i, dealers[i % 3]) for i in range(n)), b"{broken", None]


def test_a_new_filter_shows_all_that_it_would_match(harness: ControlPlaneHarness) -> None:
    found = service_on(harness, Memory(mixed(30))).preview(ANN, filter_document())
    assert (found.events, found.refused, found.tombstones) == (30, 1, 1)
    assert (found.matched, found.added, found.removed) == (10, 10, 0)
    assert (found.read, found.unread) == ({"0": (0, 32)}, "")
    assert found.consumers[0].consumer == "one-consumer"


def test_a_changed_filter_shows_what_comes_and_what_goes(harness: ControlPlaneHarness) -> None:
    harness.create_deployed()
    found = service_on(harness, Memory(mixed(30))).preview(
        ANN, filter_document(value="DEALER-002"), samples=3
    )
    assert (found.added, found.removed, found.kept) == (10, 10, 0)
    assert [sample.offset for sample in found.samples_added] == [22, 25, 28]
    assert {sample.header_data["dealerId"] for sample in found.samples_removed} == {"DEALER-001"}  # type: ignore[index]


def test_only_the_last_events_are_looked_at(harness: ControlPlaneHarness) -> None:
    found = service_on(harness, Memory(mixed(30))).preview(ANN, filter_document(), last=11)
    assert found.read == {"0": (21, 32)}
    assert found.events == 9


def test_a_stored_filter_is_asked_for_by_its_id(harness: ControlPlaneHarness) -> None:
    harness.service.create(ANN, filter_document())
    assert service_on(harness, Memory(mixed(3))).preview(ANN, "one").matched == 1


def test_no_sample_shows_what_a_person_may_not_see(harness: ControlPlaneHarness) -> None:
    asked = [
        {"field": "header_data.dealerId", "operator": "equals", "value": "DEALER-001"},
        {"field": "header_data.vin", "operator": "isNotNull"},
        {
            "field": "header_data.amountPaid",
            "operator": "greaterThan",
            "value": 1,
            "valueType": "number",
        },
    ]
    found = service_on(harness, Memory(mixed(6))).preview(ANN, filter_document(conditions=asked))
    shown = found.samples_added[0].header_data
    assert found.added == 2
    assert CANARY not in repr(found)
    assert "450.25" not in repr(found)
    assert shown == {"dealerId": "DEALER-001", "vin": MASK, "amountPaid": MASK, "carId": MASK}


def test_what_no_condition_asks_about_is_masked_however_deep_it_is() -> None:
    text = json.dumps({"a": {"b": [1, {"c": "x", "ownerName": "y"}], "n": None}})
    assert masked_header(text, {"a.b[1].c"}) == {
        "a": {"b": [MASK, {"c": "x", "ownerName": MASK}], "n": None}
    }
    assert masked_header("[1]", ()) is None
    assert masked_header("{", ()) is None


@pytest.mark.parametrize(
    "name", ["vin", "VIN", "carVin", "amountPaid", "owner_name", "emailAddress"]
)
def test_names_that_speak_of_people_vehicles_or_money_are_tagged(name: str) -> None:
    assert is_tagged(name)


@pytest.mark.parametrize("name", ["dealerId", "service", "mileageAtService", "divine"])
def test_other_names_are_not(name: str) -> None:
    assert not is_tagged(name)


def test_what_is_certain_is_said_without_any_event(harness: ControlPlaneHarness) -> None:
    harness.create_deployed("one")
    same = service_on(harness, Memory([])).preview(ANN, filter_document("two"))
    assert [(remark.kind, remark.other) for remark in same.remarks] == [("equal", "one")]
    narrow = [
        *filter_document()["conditions"],
        {"field": "event_type", "operator": "equals", "value": "CarServiceDone"},
    ]
    inside = service_on(harness, Memory([])).preview(ANN, filter_document("two", conditions=narrow))
    assert [(remark.kind, remark.other) for remark in inside.remarks] == [("contained", "one")]


def test_a_broker_that_is_away_leaves_the_rest_of_the_answer(harness: ControlPlaneHarness) -> None:
    harness.create_deployed("one")
    found = service_on(harness, Away([])).preview(ANN, filter_document("two"))
    assert found.unread == "the broker is away"
    assert (found.events, [remark.kind for remark in found.remarks]) == (0, ["equal"])


def test_readers_of_the_same_topic_are_named(harness: ControlPlaneHarness) -> None:
    harness.create_deployed("one")
    shared = filter_document("two", outputTopic="filtered-one")
    found = service_on(harness, Memory([])).preview(ANN, shared)
    assert {(one.consumer, one.filters) for one in found.consumers} == {
        ("two-consumer", ("two", "one")),
        ("one-consumer", ("two", "one")),
    }


def test_a_document_with_faults_has_no_preview(harness: ControlPlaneHarness) -> None:
    with pytest.raises(DeclarationError):
        service_on(harness, Memory([])).preview(ANN, {"id": "x"})


def whole_vin(service: FilterService, by: Identity, wanted: int) -> str:
    """A masked value found by halves, from counts alone."""
    letters, known = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-", ""
    for _ in range(wanted):
        for letter in letters:
            begins = {
                "field": "header_data.vin",
                "operator": "matches",
                "value": f"^{known}{letter}",
            }
            one = {"field": "id", "operator": "equals", "value": "e0"}
            if service.preview(by, filter_document(conditions=[one, begins]), samples=0).matched:
                known += letter
                break
    return known


@pytest.mark.parametrize("role", [role for role in ROLES if role not in ("producer",)])
def test_counts_tell_no_masked_value_to_those_who_may_not_see_it(
    harness: ControlPlaneHarness, role: str
) -> None:
    by = Identity("vera", frozenset({role}))
    service = service_on(harness, Memory([event_value(0, "DEALER-001")]))
    if role in ("operator", "auditor", "admin"):
        assert whole_vin(service, by, 3) == CANARY[:3]
    else:
        with pytest.raises(ForbiddenError, match=r"header_data\.vin"):
            whole_vin(service, by, 3)


@pytest.mark.parametrize(
    "field",
    ["header_data", "header_data.vin", "header_data.car.VIN", "header_data.owner.x[0].y",
     "header_data.items[0].price", "header_data.items[0][1].amountPaid"],
)  # fmt: skip
@pytest.mark.parametrize("inside", ["all", "any", "not"])
def test_a_masked_field_is_found_however_deep_it_stands(
    harness: ControlPlaneHarness, field: str, inside: str
) -> None:
    asked = {"field": field, "operator": "equals", "value": "x"}
    part = {inside: asked if inside == "not" else [asked, *filter_document()["conditions"]]}
    with pytest.raises(ForbiddenError):
        service_on(harness, Memory([])).preview(VERA, filter_document(conditions=[part]))


def test_a_stored_filter_is_dry_run_by_everybody(harness: ControlPlaneHarness) -> None:
    """Its conditions are its author's, under their name: nobody asks freely this way."""
    about = [{"field": "header_data.vin", "operator": "isNotNull"}]
    harness.service.create(ANN, filter_document(conditions=about))
    assert service_on(harness, Memory(mixed(3))).preview(VERA, "one").matched == 3


@pytest.mark.parametrize("by", [ANN, VERA], ids=lambda one: one.name)
def test_only_topics_that_filters_read_are_looked_at(
    harness: ControlPlaneHarness, by: Identity
) -> None:
    service = service_on(harness, Memory(mixed(3)))
    with pytest.raises(DeclarationError) as refused:
        service.preview(by, filter_document(source="payments"))
    assert refused.value.faults[0].field == "/source"
    harness.service.create(ANN, filter_document("two", source="payments"))
    assert service.preview(by, filter_document(source="payments")).matched == 1


def test_partitions_give_evenly_and_more_where_others_have_too_few() -> None:
    assert shared_out({0: 100, 1: 100, 2: 100}, 30) == {0: 10, 1: 10, 2: 10}
    assert shared_out({0: 1, 1: 100, 2: 4}, 30) == {0: 1, 1: 25, 2: 4}
    assert shared_out({0: 1, 1: 0}, 30) == {0: 1, 1: 0}
    assert sum(shared_out({0: 50, 1: 50, 2: 50}, 100).values()) == 100
