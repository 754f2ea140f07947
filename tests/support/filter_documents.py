"""Filter documents, and events for them to match."""

from __future__ import annotations

import json
from typing import Any

DEALER: dict[str, Any] = {
    "id": "service-by-dealer-001",
    "name": "Service Events for Dealer 001",
    "consumerId": "dealer-001-service-consumer",
    "outputTopic": "filtered-service-events-dealer-001",
    "conditions": [
        {"field": "event_type", "operator": "equals", "value": "CarServiceDone"},
        {"field": "header_data.dealerId", "operator": "equals", "value": "DEALER-001"},
    ],
    "enabled": True,
}
# One condition of every operator, and groups in groups.
EVERYTHING: list[dict[str, Any]] = [
    {"field": "event_type", "operator": "equals", "value": "a"},
    {"field": "header_data.amount", "operator": "greaterThan", "value": 1.5, "valueType": "number"},
    {"field": "created_date", "operator": "lessThan", "value": "2025-01-31T12:30:00Z",
     "valueType": "timestamp"},
    {"field": "header_data.a[0].b", "operator": "greaterThanOrEqual", "value": "m"},
    {"field": "__ts_ms", "operator": "lessThanOrEqual", "value": 1_700_000_000_000},
    {"field": "header_data.paid", "operator": "equals", "value": True, "valueType": "boolean"},
    {"any": [
        {"field": "__op", "operator": "in", "values": ["c", "u"]},
        {"not": {"field": "id", "operator": "notIn", "values": ["x"]}},
        {"all": [{"field": "id", "operator": "between", "min": "a", "max": "b"}]},
    ]},
    {"field": "event_name", "operator": "matches", "value": "^Car"},
    {"field": "header_data.vin", "operator": "isNull"},
    {"field": "header_data.carId", "operator": "isNotNull"},
]  # fmt: skip


CANARY = "CANARY-1HGCM82633A004352"


def event_value(n: int, dealer: str, **header: object) -> bytes:
    """A car-service event as JSON, with a canary in its masked fields."""
    more = {"dealerId": dealer, "vin": CANARY, "amountPaid": 450.25, "carId": f"CAR-{CANARY}"}
    return json.dumps(
        {
            "id": f"e{n}",
            "event_name": "Car Service Done",
            "event_type": "CarServiceDone",
            "header_data": json.dumps({**more, **header}),
            "__op": "c",
            "__table": "event_headers",
            "__ts_ms": n,
        }
    ).encode()
