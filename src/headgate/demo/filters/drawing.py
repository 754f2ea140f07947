"""Made-up events for three dealers and others, and what must become of them: the oracle.

Who shall get an event is known from the draw alone. Nothing here reads a filter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

from headgate.filters.events.events_model import SERVICE_DONE, EntityType, EventType
from headgate.filters.events.exact_json import Json

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
