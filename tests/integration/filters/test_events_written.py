"""Events in PostgreSQL: all tables in one transaction, each event once, whoever writes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from tests.support.postgres import ROOT, create_database, query_rows

from headgate.core.runtime.ports import any_port
from headgate.demo.filters.events import ToPostgres, draw, send
from headgate.errors import UnavailableError
from headgate.filters.events.database import TABLES, EventWriter, connect
from headgate.filters.events.exact_json import parsed
from headgate.filters.events.model import SAMPLES, Read, read_event


def sample(number: int = 1) -> Read:
    return read_event(
        parsed((ROOT / SAMPLES / f"service-dealer-00{number}-event.json").read_bytes())
    )


@pytest.fixture
def writer(events_place):
    with EventWriter(events_place) as made:
        yield made


def test_a_sample_is_written_to_all_its_tables_exactly(writer, events_place):
    assert writer.write([sample(1)]) == {"service-dealer-001-test"}
    (kept,) = query_rows(
        events_place,
        "SELECT h.id, h.event_name, h.event_type, h.created_date::text, h.saved_date::text,"
        " h.header_data::text, e.event_data->'entities'->0->>'amountPaid', s.event_id"
        " FROM event_headers h JOIN business_events e USING (id)"
        " JOIN service_records s ON s.entity_id = 'SERVICE-TEST-001' WHERE h.id = s.event_id",
    )
    assert kept[:5] == (
        "service-dealer-001-test",
        "Car Service Done",
        "CarServiceDone",
        "2025-01-15 10:00:00+00",
        "2025-01-15 10:00:01+00",
    )
    assert json.loads(kept[5])["dealerId"] == "DEALER-001"
    assert '"amountPaid": 450.00' in kept[5]
    assert kept[6:] == ("450.00", "service-dealer-001-test")


def test_a_request_without_a_sound_event_writes_nothing(writer):
    assert writer.write([]) == frozenset()


def test_an_id_is_written_once_also_within_one_request(writer, events_place):
    assert writer.write([sample(2), sample(2)]) == {"service-dealer-002-test"}
    assert writer.write([sample(2), sample(3)]) == {"service-dealer-003-test"}
    assert writer.write([sample(2), sample(3)]) == frozenset()
    found = query_rows(
        events_place, "SELECT count(*) FROM event_headers WHERE id LIKE 'service-dealer-00%'"
    )
    assert found == [(3,)]


def test_many_writers_of_the_same_events_write_each_once(events_place):
    events = [read_event(event.body) for event in draw(120, seed=11, prefix="race")]
    written: list[str] = []

    def write(step: int) -> None:
        with EventWriter(events_place) as own:
            ordered = events[::step]
            for begin in range(0, len(ordered), 20):
                written.extend(own.write(ordered[begin : begin + 20]))

    threads = [threading.Thread(target=write, args=(step,)) for step in (1, -1, 1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(written) == sorted(read.event.id for read in events)
    counts = query_rows(
        events_place,
        "SELECT (SELECT count(*) FROM business_events WHERE id LIKE 'race-%'),"
        " (SELECT count(*) FROM event_headers WHERE id LIKE 'race-%')",
    )
    assert counts == [(120, 120)]


def test_the_newest_state_of_an_entity_is_kept(writer, events_place):
    def event(id: str, updated: str, model: str) -> Read:
        head = {"entityId": "CAR-9", "entityType": "Car", "createdAt": "2025-01-01T00:00:00Z"}
        times = {"createdDate": updated, "savedDate": updated}
        kind = {"uuid": id, "eventName": "Car Created", "eventType": "CarCreated", **times}
        car = {"entityHeader": {**head, "updatedAt": updated}, "id": "CAR-9", "model": model}
        return read_event({"eventHeader": kind, "entities": [car]})

    early, late = "2025-01-02T00:00:00+02:00", "2025-01-01T23:00:00Z"
    assert len(writer.write([event("car-b", late, "new"), event("car-a", early, "old")])) == 2
    assert writer.write([event("car-c", early, "older")])
    assert query_rows(
        events_place, "SELECT entity_data->>'model', event_id FROM cars WHERE entity_id = 'CAR-9'"
    ) == [("new", "car-b")]


def test_every_type_of_entity_has_its_table(writer, events_place):
    for kind, table in TABLES.items():
        if kind == "ServiceRecord":
            continue
        times = {"createdDate": "2025-01-01T00:00:00Z", "savedDate": "2025-01-01T00:00:00Z"}
        head = {"uuid": f"of-{kind}", "eventName": "x", "eventType": "LoanCreated", **times}
        ages = {"createdAt": "2025-01-01T00:00:00Z", "updatedAt": "2025-01-01T00:00:00Z"}
        entity = {"entityHeader": {"entityId": "E1", "entityType": kind, **ages}, "id": "E1"}
        assert writer.write([read_event({"eventHeader": head, "entities": [entity]})])
        assert (f"of-{kind}",) in query_rows(events_place, f"SELECT event_id FROM {table}")


def test_a_killed_server_loses_nothing_that_was_acknowledged_and_repeats_nothing(postgres):
    events = list(draw(600, seed=3))
    place = create_database(postgres.service, "killed_while_written")
    with EventWriter(place) as writer:
        writer.check()
        killed = []

        def kill_once(sent: int) -> None:
            if not killed:
                postgres.kill()
                killed.append(sent)
                postgres.restart()

        sent = send(ToPostgres(writer), events, 0, 240, kill_once)
    assert killed
    assert (sent.events, sent.created + sent.known) == (600, 600)
    found = query_rows(place, "SELECT id FROM event_headers ORDER BY id")
    assert [id for (id,) in found] == sorted(event.id for event in events)


def test_a_server_that_is_away_is_said_to_be(events_place):
    nowhere = replace(events_place, port=any_port())
    with EventWriter(nowhere) as writer, pytest.raises(UnavailableError, match="does not answer"):
        writer.write([sample(1)])


def test_a_database_that_was_emptied_gets_its_tables_again(postgres):
    place = create_database(postgres.service, "emptied")
    with EventWriter(place) as writer:
        assert writer.write([sample(1)])
        with connect(place) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        with pytest.raises(UnavailableError):
            writer.write([sample(1)])
        assert writer.write([sample(1)])


def test_the_command_draws_the_same_events_again_and_writes_its_oracle_first(
    events_place, tmp_path
):
    environ = os.environ | {
        "HEADGATE_HOME": str(tmp_path / "home"),
        "POSTGRES_HOST": events_place.host,
        "POSTGRES_PORT": str(events_place.port),
        "POSTGRES_DB": events_place.database,
        "POSTGRES_PASSWORD": events_place.password or "",
    }
    oracle = tmp_path / "oracle.json"
    words = ("feed", "events", "--count", "120", "--seed", "41", "--to", "postgres")
    command = (sys.executable, "-m", "headgate.cli.main", "-o", "json", *words)
    told = [
        json.loads(
            subprocess.run(
                (*command, "--oracle", str(oracle)),
                env=environ,
                cwd=ROOT,
                capture_output=True,
                check=True,
            ).stdout
        )
        for _ in range(2)
    ]
    assert [(each["created"], each["known"]) for each in told] == [(120, 0), (0, 120)]
    expected = json.loads(oracle.read_text())["expected"]
    for dealer, ids in expected.items():
        found = query_rows(
            events_place,
            "SELECT id FROM event_headers WHERE id LIKE 'event-41-%'"
            " AND event_type = 'CarServiceDone'"
            f" AND header_data->>'dealerId' = '{dealer}' ORDER BY id",
        )
        assert [id for (id,) in found] == ids
