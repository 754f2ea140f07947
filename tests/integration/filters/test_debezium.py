"""PostgreSQL → Debezium → the topic that filters judge, a kill on the way, and the chain up to a consumer."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest
from confluent_kafka import Consumer, Message
from tests.support.api_client import FILTER, FILTERS, ONE, create_role_keys, open_api_client
from tests.support.postgres import ROOT, settings_of
from tests.support.router_job import Router
from tests.support.services import RunningBroker

from headgate.cli.connect import EVENTS_REFERRED, specs_of
from headgate.core.kafka.connect_rest import ConnectRest
from headgate.demo.filters.events import ToPostgres, draw, send
from headgate.demo.filters.proof import handled
from headgate.filters.api import events
from headgate.filters.consumers.config import ConsumerConfig, Dealer
from headgate.filters.consumers.consumer import DealerConsumer
from headgate.filters.consumers.sinks import Seen
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.events.database import EventWriter, Place, events_connector, migrate
from headgate.filters.events.database import connect as connect_database
from headgate.filters.events.exact_json import parsed
from headgate.filters.events.model import SAMPLES, read_event
from headgate.local.connect import ConnectServer
from headgate.local.postgres import PostgresServer
from headgate.local.service import Running

TOPIC, EVENTS = "raw-event-headers", "/api/v1/events"
SECONDS = 240.0
TIME = re.compile(rb'"__ts_ms":\d{13}\}$')


@dataclass
class Chain:
    """A PostgreSQL, a worker and the broker between them; reads the topic as it grows."""

    place: Place
    server: Running[PostgresServer]
    worker: Running[ConnectServer]
    writer: EventWriter
    consumer: Consumer
    seen: list[Message] = field(default_factory=list)

    def sample(self, number: int) -> None:
        text = (ROOT / SAMPLES / f"service-dealer-00{number}-event.json").read_bytes()
        assert self.writer.write([read_event(parsed(text))])

    def change(self, statement: str) -> None:
        with connect_database(self.place) as connection:
            connection.execute(statement.encode())

    def until(self, enough: Callable[[list[Message]], bool]) -> list[Message]:
        end = time.monotonic() + SECONDS
        while not enough(self.seen) and time.monotonic() < end:
            self.seen += [m for m in self.consumer.consume(500, 0.2) if m.error() is None]
        assert enough(self.seen), [m.key() for m in self.seen]
        return self.seen

    def of(self, id: str, count: int) -> list[dict]:
        """The rows of one event, in order: its key gives them one partition."""

        def found() -> list[Message]:
            return [m for m in self.seen if m.key() == id.encode()]

        self.until(lambda _: len(found()) >= count)
        return [json.loads(m.value() or b"") for m in found()]


@pytest.fixture(scope="module")
def chain(
    broker: RunningBroker,
    postgres: Running[PostgresServer],
    connect: Running[ConnectServer],
    events_place: Place,
) -> Iterator[Chain]:
    """One event is written before the connector is deployed: its snapshot brings it."""
    assert migrate(events_place) == (1,)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "test-debezium",
            "auto.offset.reset": "earliest",
        }
    )
    connector = events_connector(events_place, TOPIC, EVENTS_REFERRED)
    broker.topics.create(specs_of(connector))
    rest = ConnectRest(connect.service.url)
    with EventWriter(events_place) as writer:
        made = Chain(events_place, postgres, connect, writer, consumer)
        made.sample(1)
        assert rest.faults({**connector.config, "name": connector.name}, "events") == ()
        rest.put(connector.name, connector.config)
        rest.wait_running(connector.name, SECONDS)
        consumer.subscribe([TOPIC])
        try:
            yield made
        finally:
            consumer.close()
            rest.delete(connector.name)


def test_a_posted_event_arrives_with_exactly_these_bytes(chain):
    chain.of("service-dealer-001-test", 1)  # the snapshot is done
    chain.sample(2)
    chain.of("service-dealer-002-test", 1)
    (message,) = [m for m in chain.seen if m.key() == b"service-dealer-002-test"]
    assert TIME.search(message.value())
    assert TIME.sub(b'"__ts_ms":0}', message.value()) == (
        rb'{"id":"service-dealer-002-test","event_name":"Car Service Done",'
        rb'"event_type":"CarServiceDone","created_date":"2025-01-16T10:00:00.000000Z",'
        rb'"saved_date":"2025-01-16T10:00:01.000000Z","header_data":'
        rb'"{\"uuid\": \"service-dealer-002-test\", \"carId\": \"CAR-2025-002\",'
        rb" \"dealerId\": \"DEALER-002\", \"eventName\": \"Car Service Done\","
        rb" \"eventType\": \"CarServiceDone\", \"savedDate\": \"2025-01-16T10:00:01Z\","
        rb" \"amountPaid\": 525.00, \"dealerName\": \"BMW Service Center - Los Angeles\","
        rb" \"createdDate\": \"2025-01-16T10:00:00Z\","
        rb" \"serviceDate\": \"2025-01-16T10:00:00Z\", \"mileageAtService\": 25000}"
        rb'","__op":"c","__table":"event_headers","__ts_ms":0}'
    )


def test_rows_from_before_the_connector_are_snapshots(chain):
    (row,) = chain.of("service-dealer-001-test", 1)
    assert (row["__op"], row["__table"]) == ("r", "event_headers")
    assert json.loads(row["header_data"])["dealerId"] == "DEALER-001"


def test_updates_and_deletes_bring_the_whole_row_and_no_tombstone(chain):
    chain.sample(3)
    id = "service-dealer-003-test"
    chain.change(f"UPDATE event_headers SET event_name = 'Mended' WHERE id = '{id}'")
    chain.change(f"DELETE FROM event_headers WHERE id = '{id}'")
    rows = chain.of(id, 3)
    assert [row["__op"] for row in rows] == ["c", "u", "d"]
    assert [row["event_name"] for row in rows] == ["Car Service Done", "Mended", "Mended"]
    assert len({row["header_data"] for row in rows}) == 1
    assert all(set(row) == set(rows[0]) for row in rows)
    assert None not in [m.value() for m in chain.seen]


def test_a_large_header_comes_whole_with_an_update_that_leaves_it_alone(chain):
    """PostgreSQL keeps large values apart and does not log those that an update leaves alone."""
    chain.change(
        "INSERT INTO business_events VALUES ('large', 'n', 'CarServiceDone', now(), now(), '{}');"
        "INSERT INTO event_headers SELECT 'large', 'n', 'CarServiceDone', now(), now(),"
        " jsonb_build_object('t', (SELECT string_agg(md5(n::text), '')"
        " FROM generate_series(1, 2000) n));"
        "UPDATE event_headers SET event_name = 'm' WHERE id = 'large'"
    )
    created, updated = chain.of("large", 2)
    assert (created["__op"], updated["__op"]) == ("c", "u")
    assert len(created["header_data"]) > 64_000
    assert updated["header_data"] == created["header_data"]


def test_the_password_stands_in_no_answer_and_in_no_log(chain):
    password = chain.server.service.password
    rest = ConnectRest(chain.worker.service.url)
    config = rest.config("events-source") or {}
    assert config["database.password"] == EVENTS_REFERRED
    assert password not in json.dumps(dict(config))
    assert password not in chain.worker.service.log.read_text()


def test_a_killed_postgresql_heals_by_itself_and_nothing_is_missing(chain):
    drawn = list(draw(400, seed=21, prefix="pg"))
    killed = []

    def kill_once(_sent: int) -> None:
        if not killed:
            chain.server.kill()
            killed.append(True)
            chain.server.restart()

    send(ToPostgres(chain.writer), drawn, 0, 240, kill_once)
    arrived = chain.until(lambda seen: {e.id.encode() for e in drawn} <= {m.key() for m in seen})
    assert killed
    ours = [m.key() for m in arrived if m.key().startswith(b"pg-")]
    assert set(ours) == {event.id.encode() for event in drawn}
    state = ConnectRest(chain.worker.service.url).state("events-source")
    assert state is not None
    assert state.runs


def test_an_event_posted_to_the_api_reaches_the_consumer_of_its_filter(chain, pipeline, tmp_path):
    posted = {f"api-{n}": f"DEALER-04{n % 2}" for n in range(4)}
    source = pipeline.settings.model_copy(update={"topic": TOPIC})
    router = Router(replace(pipeline, name=TOPIC, settings=source))
    wanted = {"field": "header_data.dealerId", "operator": "equals", "value": "DEALER-041"}
    document = {
        **FILTER,
        "source": TOPIC,
        "outputTopic": router.topic("dealer-041"),
        "conditions": [wanted],
    }
    text = (ROOT / SAMPLES / "service-dealer-001-event.json").read_text("utf-8")
    with open_api_client(pipeline.settings.root, **settings_of(chain.place)) as app:
        api = create_role_keys(app)
        reconciler = Reconciler(app.store, None, app.service.targets)
        revision = api("POST", FILTERS, "ann", json=document).json()["revision"]
        approved = api("POST", f"{ONE}/approve", "bob", json={"revision": revision})
        assert approved.json()["status"] == "approved"
        assert api("POST", f"{ONE}/deploy", "dan").status_code == 202
        reconciler.step()
        for id, dealer in posted.items():
            event = text.replace("service-dealer-001-test", id).replace("DEALER-001", dealer)
            answer = api(
                "POST", EVENTS, "paul", {"Content-Type": "application/json"}, content=event
            )
            assert answer.status_code == 201, answer.text
        events.close(app.app)
        chain.until(lambda seen: {id.encode() for id in posted} <= {m.key() for m in seen})
        router.route()
        reconciler.step()
        assert api("GET", ONE, "vera").json()["status"] == "deployed"
    config = ConsumerConfig(
        dealer=Dealer("DEALER-041", "a dealer"),
        topic=document["outputTopic"],
        group="chain",
        sinks=("billing",),
    )
    with Seen(tmp_path / "seen.db") as seen:
        bootstrap = source.need("bootstrap_servers")
        DealerConsumer(config, bootstrap, seen).run(lambda: False, once=True)
    assert dict(handled(tmp_path / "seen.db")) == {"api-1": 1, "api-3": 1}


@pytest.mark.slow
def test_a_killed_worker_goes_on_where_it_stood(chain):
    before = list(draw(200, seed=22, prefix="w1"))
    send(ToPostgres(chain.writer), before, 0, 240, lambda _: None)
    chain.worker.kill()
    during = list(draw(200, seed=23, prefix="w2"))
    send(ToPostgres(chain.writer), during, 0, 240, lambda _: None)
    chain.worker.restart()
    wanted = {event.id.encode() for event in (*before, *during)}
    arrived = chain.until(lambda seen: wanted <= {m.key() for m in seen})
    rows = [json.loads(m.value()) for m in arrived if m.key() in wanted]
    assert {row["__op"] for row in rows} == {"c"}
