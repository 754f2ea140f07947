"""Made-up events for three dealers with their expected receivers, sent to the API or to PostgreSQL until all are there.

Who must receive an event is known from the draw alone; nothing here reads a filter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http import HTTPStatus
from random import Random
from typing import Protocol

import httpx

from headgate.errors import OperationError, UnavailableError
from headgate.filters.events.database import EventWriter
from headgate.filters.events.exact_json import Json, text_of
from headgate.filters.events.model import SERVICE_DONE, EntityType, EventType, read_event

DEALERS = {
    "DEALER-001": "Tesla Service Center - San Francisco",
    "DEALER-002": "BMW Service Center - Los Angeles",
    "DEALER-003": "Mercedes Service Center - New York",
}
# Almost the dealers: whoever compares carelessly gives them away.
OTHERS = ("DEALER-004", "DEALER-0011", "dealer-001", "DEALER-00", "DEALER-002 ", "'DEALER-003'")
OTHER_TYPES: dict[EventType, tuple[str, EntityType]] = {
    "CarCreated": ("Car Created", "Car"),
    "LoanCreated": ("Loan Created", "Loan"),
    "LoanPaymentSubmitted": ("Loan Payment Submitted", "LoanPayment"),
}
SERVICES = ("Oil change", "Tires", "Brakes", "Inspection", "Battery")
WORDS = ("Annual maintenance", "Ölwechsel – 5 l", 'brakes "squeal"; it\'s loud', "点検", "")
BEGIN = datetime(2025, 1, 15, 10, tzinfo=UTC)


@dataclass(frozen=True)
class Drawn:
    """An event, and the dealer whose consumer must get it, if one must."""

    id: str
    type: EventType
    body: dict[str, Json]
    dealer: str | None


def draw(count: int, seed: int, prefix: str = "event") -> Iterator[Drawn]:
    """Events; the same seed gives the same ones, and more of them begin with fewer."""
    for number in range(count):
        random = Random(f"{seed}/{number}")
        id = f"{prefix}-{seed}-{number:06d}"
        at = BEGIN + timedelta(seconds=number)
        yield _service(random, id, at) if random.random() < 0.8 else _other(random, id, at)


def _service(random: Random, id: str, at: datetime) -> Drawn:
    dealer = random.choice((*DEALERS, *DEALERS, *OTHERS))
    entity: dict[str, Json] = {
        **_entity(f"SERVICE-{id}", "ServiceRecord", at),
        "carId": f"CAR-{random.randrange(500):04d}",
        "serviceDate": _time(at),
        "amountPaid": Decimal(random.randrange(100_000)).scaleb(-2),
        "dealerId": dealer,
        "dealerName": DEALERS.get(dealer, "Somebody Else's Garage"),
        "mileageAtService": random.randrange(200_000),
        "description": random.choice(WORDS),
    }
    if random.random() < 0.5:
        entity["vin"] = f"VIN{random.randrange(10**14):014d}"
        entity["serviceType"] = random.choice(SERVICES)
    body = _event(id, "Car Service Done", SERVICE_DONE, at, entity)
    return Drawn(id, SERVICE_DONE, body, dealer if dealer in DEALERS else None)


def _other(random: Random, id: str, at: datetime) -> Drawn:
    kind = random.choice(list(OTHER_TYPES))
    name, entity = OTHER_TYPES[kind]
    # It names a dealer all the same: only services are theirs.
    fields = {
        **_entity(f"{entity.upper()}-{id}", entity, at),
        "dealerId": random.choice([*DEALERS]),
    }
    return Drawn(id, kind, _event(id, name, kind, at, fields), None)


def _event(id: str, name: str, kind: EventType, at: datetime, entity: Json) -> dict[str, Json]:
    times = {"createdDate": _time(at), "savedDate": _time(at + timedelta(seconds=1))}
    head = {"uuid": id, "eventName": name, "eventType": kind, **times}
    return {"eventHeader": head, "entities": [entity]}


def _entity(id: str, kind: EntityType, at: datetime) -> dict[str, Json]:
    times = {"createdAt": _time(at), "updatedAt": _time(at)}
    return {"entityHeader": {"entityId": id, "entityType": kind, **times}, "id": id}


def _time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def oracle(events: list[Drawn], seed: int) -> dict[str, Json]:
    """What is drawn, and which ids each dealer's consumer must have handled at the end."""
    return {
        "seed": seed,
        "count": len(events),
        "events": [{"id": e.id, "eventType": e.type, "dealer": e.dealer} for e in events],
        "expected": {d: [e.id for e in events if e.dealer == d] for d in DEALERS},
    }


MOST_AT_ONCE = 100
PARTS_A_SECOND = 10
PAUSE_SECONDS = 0.5
PATH = "/api/v1/events/bulk"


class Target(Protocol):
    """Where events go; says how many are new there. An UnavailableError asks to try again."""

    def send(self, events: Sequence[Drawn]) -> int: ...


@dataclass(frozen=True)
class Sent:
    """`known` were there already: of an earlier try whose answer was lost, or of an earlier run."""

    events: int
    created: int
    known: int
    retries: int
    elapsed_seconds: float


@dataclass(frozen=True)
class ToPostgres:
    """As the API writes them, without the API."""

    writer: EventWriter

    def send(self, events: Sequence[Drawn]) -> int:
        return len(self.writer.write([read_event(event.body) for event in events]))


@dataclass(frozen=True)
class ToApi:
    """As a producer posts them."""

    client: httpx.Client

    def send(self, events: Sequence[Drawn]) -> int:
        body = text_of([event.body for event in events])
        headers = {"Content-Type": "application/json"}
        try:
            answer = self.client.post(PATH, content=body.encode(), headers=headers)
        except httpx.TransportError as error:
            raise UnavailableError("the API does not answer", why=str(error)) from None
        if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise UnavailableError("the API cannot work now", why=answer.text[:200])
        if answer.status_code not in (HTTPStatus.CREATED, HTTPStatus.MULTI_STATUS):
            raise OperationError(f"the API answered {answer.status_code}", why=answer.text[:500])
        return _created(answer)


def _created(answer: httpx.Response) -> int:
    found = answer.json()
    wrong = [r for r in found["results"] if r["status"] == HTTPStatus.UNPROCESSABLE_ENTITY]
    if wrong:
        raise OperationError("the API refused an event", why=str(wrong[0])[:500])
    return int(found["created"])


def send(
    target: Target,
    events: Sequence[Drawn],
    rate: float,
    patience: float,
    advance: Callable[[int], None],
    stop: Callable[[], bool] = lambda: False,
) -> Sent:
    """All events in order; `rate` 0 is as fast as it goes, `patience` the longest outage."""
    size = max(1, min(MOST_AT_ONCE, round(rate / PARTS_A_SECOND))) if rate else MOST_AT_ONCE
    begun = time.monotonic()
    created = done = retries = 0
    while done < len(events) and not stop():
        part = events[done : done + size]
        new, again = _until_there(target, part, patience)
        created, retries, done = created + new, retries + again, done + len(part)
        advance(len(part))
        if rate:
            time.sleep(max(0.0, begun + done / rate - time.monotonic()))
    return Sent(done, created, done - created, retries, time.monotonic() - begun)


def _until_there(target: Target, events: Sequence[Drawn], patience: float) -> tuple[int, int]:
    """How many were new, and how many tries failed before."""
    end, failed = time.monotonic() + patience, 0
    while True:
        try:
            return target.send(events), failed
        except UnavailableError:
            if time.monotonic() > end:
                raise
            failed += 1
            time.sleep(PAUSE_SECONDS)
