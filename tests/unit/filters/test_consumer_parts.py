"""A dealer's consumer: what it reads, drops, logs, and does once however often it comes."""

from __future__ import annotations

import json
import logging
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from headgate.core.kafka.schema_registry import framed
from headgate.errors import DeclarationError, OperationError, SettingsError, UnavailableError
from headgate.filters.consumers.config import ConsumerConfig, Dealer, load_config
from headgate.filters.consumers.consumer import DealerConsumer, Handler, settings
from headgate.filters.consumers.event import (
    NoEventError,
    Record,
    delivery_of,
    headers_of,
    read_event,
)
from headgate.filters.consumers.sinks import Billing, Crm, Inventory, Seen, sinks_of

ROOT = Path(__file__).parents[3]
DEALER = Dealer("DEALER-001", "Tesla Service Center - San Francisco")
DATA = {
    "carId": "CAR-2025-001",
    "vin": "5YJ3E1EA7KF317000",
    "serviceType": "Tires",
    "serviceDate": "2025-01-15T10:00:00Z",
    "amountPaid": 450.0,
    "dealerId": "DEALER-001",
    "mileageAtService": 15000,
}


def value(id: str = "e1", op: str = "c", **data: object) -> bytes:
    head = {name: found for name, found in {**DATA, **data}.items() if found is not ...}
    row = {"id": id, "event_type": "CarServiceDone", "header_data": json.dumps(head), "__op": op}
    return json.dumps(row).encode()


def record(body: bytes | None, offset: int = 0, origin: str | None = None) -> Record:
    given = [("headgate.origin", origin.encode()), ("headgate.filter", b"f")] if origin else []
    return Record("filtered", 0, offset, body, headers_of(given))


@pytest.fixture
def handler(tmp_path):
    with Seen(tmp_path / "state.db") as seen:
        yield Handler(DEALER, seen, (Crm(), Inventory(), Billing()))


def rows(handler: Handler, table: str) -> list:
    return sorted(handler.seen.database.execute(f"SELECT * FROM {table}").fetchall())


def test_an_event_is_logged_with_all_that_the_documents_list(handler, caplog):
    caplog.set_level(logging.INFO, "headgate.consumer")
    handler.handle([record(value())])
    assert caplog.messages == [
        "Service Event for Tesla Service Center - San Francisco: e1",
        "  Car ID: CAR-2025-001",
        "  Car VIN: 5YJ3E1EA7KF317000",
        "  Service Type: Tires",
        "  Service Date: 2025-01-15T10:00:00Z",
        "  Amount: $450.00",
        "  Mileage: 15000",
    ]


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (..., "not given"),
        (None, "not given"),
        (0, "$0.00"),
        (450, "$450.00"),
        (-3.456, "$-3.46"),
        ("450.1", "$450.10"),
        ("much", "much (no number)"),
        ("NaN", "NaN (no number)"),
        (True, "True (no number)"),
        ({"a": 1}, "{'a': 1} (no number)"),
        ("1e999999", "1e999999 (no number)"),
    ],
)
def test_a_missing_or_odd_amount_is_logged_and_crashes_nothing(handler, caplog, amount, shown):
    caplog.set_level(logging.INFO, "headgate.consumer")
    handler.handle([record(value(amountPaid=amount))])
    assert f"  Amount: {shown}" in caplog.messages
    assert handler.counts.handled == 1


def test_no_value_can_forge_a_line_of_the_log(handler, caplog):
    caplog.set_level(logging.INFO, "headgate.consumer")
    handler.handle([record(value(carId="x\n2026 INFO Service Event for all\x1b[2J"))])
    assert all("\n" not in words and "\x1b" not in words for words in caplog.messages)


@pytest.mark.parametrize(
    ("dealer", "words"),
    [
        ("DEALER-002", "Received event for wrong dealer: DEALER-002"),
        ("dealer-001", "Received event for wrong dealer: dealer-001"),
        (..., "Received event without a dealer"),
        (None, "Received event without a dealer"),
        (1, "Received event without a dealer"),
    ],
)
def test_a_wrong_or_missing_dealer_is_warned_about_and_dropped(handler, caplog, dealer, words):
    handler.handle([record(value(dealerId=dealer))])
    (warned,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert warned.getMessage().startswith(words)
    assert (handler.counts.wrong_dealer, rows(handler, "effects")) == (1, [])


def test_plain_and_registry_framed_json_are_read_alike():
    assert read_event(framed(17, value())) == read_event(value())


def test_an_absent_header_is_empty_and_one_that_is_an_object_is_taken():
    assert read_event(b'{"id": "a"}').data == {}
    assert read_event(b'{"id": "a", "header_data": null}').data == {}
    assert read_event(b'{"id": "a", "header_data": {"dealerId": "D"}}').dealer == "D"


@pytest.mark.parametrize(
    "body",
    [
        *(None, b"", b"{", b"\x00", b"\x00\x00\x00\x00\x01", b"[]", b"\xff\xfe", b"null"),
        *(b'{"id": ""}', b'{"id": 1}', b'{"id": "a", "header_data": "{"}'),
        *(b'{"id": "a", "header_data": "[]"}', b"[" * 100_000),
    ],
)
def test_what_is_no_event_is_dropped_with_its_place(handler, caplog, body):
    with pytest.raises(NoEventError):
        read_event(body)
    handler.handle([record(body, offset=5)])
    assert "Dropped filtered/0/5" in caplog.text
    assert (handler.counts.received, handler.counts.unreadable) == (1, 1)


def test_a_record_that_comes_again_changes_nothing(handler):
    first = record(value(), 0, "raw/0/17")
    handler.handle([first, replace(first, offset=9)])
    handler.handle([first])
    assert (handler.counts.handled, handler.counts.duplicates) == (1, 2)
    assert rows(handler, "crm_visits") == [("CAR-2025-001", 1, "2025-01-15T10:00:00Z")]
    assert rows(handler, "billing_entries") == [("/raw/0/17/f", "e1", "450.00")]


def test_a_creation_that_the_source_sent_twice_is_one_and_an_update_is_another(handler):
    handler.handle(
        [
            record(value(), 0, "raw/0/17"),
            record(value(), 1, "raw/0/18"),
            record(value(op="u"), 2, "raw/0/19"),
            record(value(op="u"), 3, "raw/0/20"),
        ]
    )
    assert (handler.counts.handled, handler.counts.duplicates) == (3, 1)


def test_the_same_offset_of_a_topic_made_anew_is_another_record(handler):
    old = record(value(), 0, "raw/0/17")
    new = replace(
        record(value("e2"), 0, "raw/0/17"),
        headers={**old.headers, "headgate.source_id": "made-anew"},
    )
    handler.handle([old, new])
    assert handler.counts.handled == 2
    assert delivery_of(old).key != delivery_of(new).key


def test_what_was_handled_is_known_after_a_restart(tmp_path):
    for expected in (1, 0):
        with Seen(tmp_path / "state.db") as seen:
            handler = Handler(DEALER, seen, (Billing(),))
            handler.handle([record(value(), 0, "raw/0/17")])
            assert handler.counts.handled == expected


def test_a_sink_that_fails_leaves_no_trace_of_its_batch(tmp_path):
    class Failing:
        def prepare(self, database):
            pass

        def apply(self, event, delivery, database):
            if event.id == "e2":
                raise ValueError("the CRM is away")

    both = [record(value("e1"), 0, "raw/0/1"), record(value("e2"), 1, "raw/0/2")]
    with Seen(tmp_path / "state.db") as seen:
        failing = Handler(DEALER, seen, (Crm(), Failing()))
        with pytest.raises(OperationError, match="Failing failed at event e2"):
            failing.handle(both)
        assert rows(failing, "effects") == rows(failing, "crm_visits") == []
        again = Handler(DEALER, seen, (Crm(),))
        again.handle(both)
        assert again.counts.handled == 2


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (1, "Tesla Service Center - San Francisco"),
        (2, "BMW Service Center - Los Angeles"),
        (3, "Mercedes Service Center - New York"),
    ],
)
def test_s3_49_the_three_configurations_are_the_documents(number, name):
    config = load_config(ROOT / f"consumers/dealer-00{number}/consumer.yml", {})
    assert config.dealer == Dealer(f"DEALER-00{number}", name)
    assert config.topic == f"filtered-service-events-dealer-00{number}"
    assert config.group == f"dealer-00{number}-service-consumer-group"
    assert "security.protocol" not in settings(config)


def test_the_documents_variables_count_more_than_the_file():
    environ = {
        "KAFKA_BOOTSTRAP_SERVERS": "cloud:9092",
        "KAFKA_TOPIC": "t",
        "CONSUMER_GROUP_ID": "g",
        "KAFKA_API_KEY": "key",
        "KAFKA_API_SECRET": "canary",
    }
    config = load_config(ROOT / "consumers/dealer-001/consumer.yml", environ)
    assert (config.bootstrap, config.topic, config.group) == ("cloud:9092", "t", "g")
    found = settings(config)
    assert (found["security.protocol"], found["sasl.mechanisms"]) == ("SASL_SSL", "PLAIN")
    assert (found["sasl.username"], found["sasl.password"]) == ("key", "canary")
    assert "canary" not in repr(config)


def test_a_faulty_configuration_is_refused_with_its_lines(tmp_path):
    file = tmp_path / "consumer.yml"
    file.write_text("dealer: {id: D}\ntopics: t\n")
    with pytest.raises(DeclarationError) as refused:
        load_config(file, {})
    assert {fault.field for fault in refused.value.faults} >= {"dealer.name", "topics", "group"}


def test_a_sink_is_known_by_its_name_or_named_as_a_class():
    assert [type(sink) for sink in sinks_of(("crm", "tests.unit.filters.test_consumer_parts:Crm"))]
    with pytest.raises(SettingsError, match="there is no sink bilging"):
        sinks_of(("bilging",))
    with pytest.raises(SettingsError, match="cannot be loaded"):
        sinks_of(("nowhere.at_all:Sink",))


def test_a_state_that_cannot_be_used_is_said_to_be_and_keeps_nothing(tmp_path):
    with pytest.raises(UnavailableError, match="cannot be used"):
        Seen(Path("/dev/null/state.db"))
    with Seen(tmp_path / "state.db") as seen:
        handler = Handler(DEALER, seen, (Crm(),))
        seen.database.execute("PRAGMA query_only = ON")
        with pytest.raises(UnavailableError, match="cannot be used"):
            handler.handle([record(value())])
        seen.database.execute("PRAGMA query_only = OFF")
        assert rows(handler, "effects") == []
        handler.handle([record(value())])
        assert rows(handler, "effects") != []


# A broker that is away, or refuses


def _closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _consumer(tmp_path: Path, seen: Seen, patience: float = 2.0) -> DealerConsumer:
    config = ConsumerConfig(dealer=DEALER, topic="t", group="g", sinks=("crm",))
    return DealerConsumer(config, f"127.0.0.1:{_closed_port()}", seen, patience)


def test_a_broker_that_is_away_is_said_and_once_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        Seen(tmp_path / "seen.db") as seen,
        caplog.at_level(logging.WARNING),
        pytest.raises(UnavailableError, match="got no partition of t within 2 s") as raised,
    ):
        _consumer(tmp_path, seen).run(lambda: False, once=True)
    assert raised.value.fix
    said = [record.getMessage() for record in caplog.records if "trying again" in record.message]
    assert said
    assert len(said) == len(set(said))


@pytest.mark.parametrize(
    "code",
    [KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED],
)
def test_credentials_that_are_refused_end_the_consumer_in_words(tmp_path: Path, code: int) -> None:
    with Seen(tmp_path / "seen.db") as seen:
        consumer = _consumer(tmp_path, seen)
        consumer._note(KafkaError(code), ("t", 0))
        with pytest.raises(OperationError, match="refuses the group g") as raised:
            consumer.run(lambda: False)
    assert "key and secret" in str(raised.value.fix)
