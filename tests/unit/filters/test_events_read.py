"""Events as producers post them: read exactly, or refused with everything that is wrong."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest

from headgate.demo.filters.events import DEALERS, draw, oracle
from headgate.errors import DeclarationError
from headgate.filters.events.exact_json import NotJsonError, parsed, text_of
from headgate.filters.events.model import SAMPLES, faults_of, read_event, schemas

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / SAMPLES / "service-dealer-001-event.json"


def sample(**changes: object) -> dict:
    """The first sample; `entity__dealerId=…` changes the entity, `header__uuid=…` the header."""
    event = json.loads(SAMPLE.read_text())
    parts = {"header": event["eventHeader"], "entity": event["entities"][0], "event": event}
    for place, value in changes.items():
        part, _, field = place.partition("__")
        if value is ...:
            del parts[part][field]
        else:
            parts[part][field] = value
    return event


def pointers(data: object) -> list[str]:
    return sorted(fault.field for fault in faults_of(data))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_documents_samples_are_events_of_their_dealers(number):
    path = ROOT / SAMPLES / f"service-dealer-00{number}-event.json"
    read = read_event(parsed(path.read_bytes()))
    assert read.event.id == f"service-dealer-00{number}-test"
    dealer = json.loads(read.header_data)["dealerId"]
    assert read.event.service is not None
    assert (dealer, read.event.service.dealer_name) == (
        f"DEALER-00{number}",
        DEALERS[f"DEALER-00{number}"],
    )


def test_header_data_holds_the_header_and_the_service_fields_and_nothing_else():
    read = read_event(parsed(SAMPLE.read_bytes()))
    assert read.header_data == (
        '{"uuid":"service-dealer-001-test","eventName":"Car Service Done",'
        '"eventType":"CarServiceDone","createdDate":"2025-01-15T10:00:00Z",'
        '"savedDate":"2025-01-15T10:00:01Z","carId":"CAR-2025-001",'
        '"serviceDate":"2025-01-15T10:00:00Z","amountPaid":450.00,"dealerId":"DEALER-001",'
        '"dealerName":"Tesla Service Center - San Francisco","mileageAtService":15000}'
    )


def test_a_vin_and_a_type_of_service_are_copied_when_they_are_given():
    data = json.loads(
        read_event(sample(entity__vin="5YJ", entity__serviceType="Tires")).header_data
    )
    assert (data["vin"], data["serviceType"]) == ("5YJ", "Tires")


def test_the_vin_is_taken_from_the_car_when_the_event_brings_it_along():
    event = sample()
    head = {**event["entities"][0]["entityHeader"], "entityType": "Car"}
    for id, vin in (("CAR-2025-009", "OTHER"), ("CAR-2025-001", "5YJ3E1EA")):
        car = {"entityHeader": {**head, "entityId": id}, "id": id, "vin": vin}
        event["entities"].append(car)
    assert json.loads(read_event(event).header_data)["vin"] == "5YJ3E1EA"


def test_numbers_are_kept_as_they_were_written():
    text = SAMPLE.read_text().replace("450.00", "450.10")
    read = read_event(parsed(text.encode()))
    assert '"amountPaid":450.10' in read.text
    assert read.event.service is not None
    assert read.event.service.amount_paid == Decimal("450.10")


def test_everything_that_is_wrong_is_said_at_once_with_its_place():
    event = sample(
        header__uuid="x" * 65,
        header__createdDate="yesterday",
        entity__amountPaid="450.00",
        entity__mileageAtService=-1,
        entity__dealerId=...,
        entity__dealerid="DEALER-001",
    )
    assert pointers(event) == [
        "/entities/0/amountPaid",
        "/entities/0/dealerId",
        "/entities/0/dealerid",
        "/entities/0/mileageAtService",
        "/eventHeader/createdDate",
        "/eventHeader/uuid",
    ]
    with pytest.raises(DeclarationError) as refused:
        read_event(event)
    assert "Did you mean `dealerId`?" in {fault.fix for fault in refused.value.faults}


def test_any_text_of_one_to_64_characters_is_an_id():
    for id in ("x", "é" * 64, "not-a-uuid", "a b/c'\"\\"):
        assert read_event(sample(header__uuid=id)).event.id == id
    assert pointers(sample(header__uuid="")) == ["/eventHeader/uuid"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"header__eventType": "CarServed"}, ["/eventHeader/eventType"]),
        ({"header__savedDate": "2025-01-15T10:00:00"}, ["/eventHeader/savedDate"]),
        ({"header__savedDate": 1736935200}, ["/eventHeader/savedDate"]),
        ({"entity__amountPaid": True}, ["/entities/0/amountPaid"]),
        ({"entity__amountPaid": Decimal("1e40")}, ["/entities/0/amountPaid"]),
        ({"entity__mileageAtService": 1.5}, ["/entities/0/mileageAtService"]),
        ({"entity__id": "ANOTHER"}, ["/entities/0/id"]),
        ({"entity__entityHeader": None}, ["/entities/0/entityHeader"]),
        ({"event__entities": []}, ["/entities"]),
        ({"event__more": 1}, ["/more"]),
        ({"header__eventName": "a\x00b"}, ["/eventHeader/eventName"]),
        ({"entity__description": "\ud800"}, ["/entities/0/description"]),
    ],
)
def test_each_fault_has_its_pointer(changes, expected):
    assert pointers(sample(**changes)) == expected


@pytest.mark.parametrize("body", [None, 1, "text", [], {}, {"entities": {}}, [[[]]]])
def test_what_is_no_event_at_all_is_refused_in_words(body):
    assert list(faults_of(body))


def test_a_service_done_needs_its_service_and_has_one_only():
    event = sample()
    event["entities"].append(event["entities"][0])
    assert pointers(event) == ["/entities/1"]
    event["entities"] = [sample()["entities"][0]]
    event["entities"][0]["entityHeader"]["entityType"] = "Car"
    assert pointers(event) == ["/entities"]


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"NaN", b"[Infinity]", b"[" * 100_000])
def test_what_is_no_json_is_refused_without_a_trace(text):
    with pytest.raises(NotJsonError):
        parsed(text)


def test_what_postgresql_could_not_keep_is_refused_wherever_it_stands():
    event = sample()
    head = {**event["entities"][0]["entityHeader"], "entityType": "Car"}
    deep: object = 1
    for _ in range(60):
        deep = [deep]
    odd = {"huge": Decimal("1e400"), "a\x00b": 1, "deep": deep, "half": {"\udfff": "\udfff"}}
    event["entities"].append({"entityHeader": head, "id": "SERVICE-TEST-001", **odd})
    assert len(pointers(event)) == 4


@pytest.mark.parametrize(
    ("before", "after", "pointer"),
    [
        ("450.00", "1e99999999999999999999", "/entities/0/amountPaid"),
        ("450.00", "9" * 5_000, "/entities/0/amountPaid"),
        ('"mileageAtService":', '"mileageAtService": 1, "mileageAtService":',
         "/entities/0/mileageAtService"),
    ],
)  # fmt: skip
def test_what_json_allows_and_no_event_may_have_is_a_fault_of_that_event(before, after, pointer):
    text = SAMPLE.read_text()
    assert before in text
    events = parsed(f"[{text.replace(before, after)}, {text}]".encode())
    assert isinstance(events, list)
    first, second = events
    assert pointers(first) == [pointer]
    read_event(second)


@pytest.mark.parametrize("offset", ["+23:59", "-16:00", "+16:00"])
def test_an_offset_that_postgresql_does_not_take_is_refused(offset):
    assert pointers(sample(header__createdDate=f"2025-01-15T10:00:00{offset}")) == [
        "/eventHeader/createdDate"
    ]


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+15:00", "9999-12-31T23:00:00-15:00"])
def test_a_moment_outside_of_the_years_1_to_9999_is_refused(time):
    assert pointers(sample(header__savedDate=time)) == ["/eventHeader/savedDate"]


@pytest.mark.parametrize("offset", ["+15:59", "-15:59", "Z", "+05:30"])
def test_other_offsets_are_taken(offset):
    event = sample(header__createdDate=f"2025-01-15T10:00:00{offset}")
    assert pointers(event) == []
    assert read_event(event) is not None


def test_of_many_faults_the_first_hundred_are_listed():
    event = sample()
    event["entities"][0] |= {f"odd{number}": 1 for number in range(90_000)}
    with pytest.raises(DeclarationError) as refused:
        read_event(event)
    assert len(refused.value.faults) == 101
    event["entities"] = [0] * 90_000
    assert pointers(event) == ["/entities"]


def test_more_values_than_are_taken_are_refused_before_they_are_judged():
    with pytest.raises(NotJsonError):
        parsed(b'{"entities":[' + b",".join([b"0"] * 500_000) + b"]}")


def test_text_comes_back_as_it_was():
    value = {"a": [1, Decimal("1.500"), None, True, 'é"\\\u2028'], "": {}}
    assert parsed(text_of(value).encode()) == value


def test_the_schemas_are_up_to_date_and_agree_about_the_samples():
    for path, content in schemas():
        assert (ROOT / path).read_bytes() == content, f"run tools/event_schemas.py for {path}"
    schema = json.loads((ROOT / "schemas/event/event.schema.json").read_bytes())
    for path in (ROOT / SAMPLES).glob("*.json"):
        jsonschema.validate(json.loads(path.read_bytes()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(sample(header__more=1), schema)


def test_drawn_events_are_valid_and_the_oracle_knows_whose_they_are():
    events = list(draw(400, seed=7))
    assert events[:50] == list(draw(50, seed=7))
    for event in events:
        read = read_event(parsed(text_of(event.body).encode()))
        found = json.loads(read.header_data).get("dealerId")
        service = read.event.event_header.event_type == "CarServiceDone"
        assert event.dealer == (found if service and found in DEALERS else None)
    expected = oracle(events, 7)["expected"]
    assert isinstance(expected, dict)
    assert {d: len(ids) for d, ids in expected.items()} == {
        d: sum(e.dealer == d for e in events) for d in DEALERS
    }
    assert all(len(ids) > 30 for ids in expected.values())
    assert sum(event.dealer is None for event in events) > 100
