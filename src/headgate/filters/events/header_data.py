"""`header_data`: the event's header with the service fields copied into it.

Filters see nothing but the header's row. Without the copy, the documents' own filter on `dealerId`
would match nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from headgate.filters.events.events_model import CAR, LONGEST_ID, Event
from headgate.filters.events.exact_json import Json, text_of

SERVICE_FIELDS = (
    *("carId", "serviceDate", "amountPaid", "dealerId", "dealerName", "mileageAtService"),
    *("vin", "serviceType"),
)


def header_data(event: Event, posted: Mapping[str, Json]) -> str:
    """The JSON text of `header_data`, every value as it was posted."""
    head = cast("dict[str, Json]", posted["eventHeader"])
    return text_of({**head, **_service(event, cast("list[Json]", posted["entities"]))})


def _service(event: Event, entities: list[Json]) -> dict[str, Json]:
    if event.service is None:
        return {}
    posted = cast("dict[str, Json]", entities[event.entities.index(event.service)])
    found = {name: posted[name] for name in SERVICE_FIELDS if posted.get(name) is not None}
    vin = _vin_of(event, event.service.car_id)
    return {**({"vin": vin} if vin else {}), **found}


def _vin_of(event: Event, car_id: str) -> str | None:
    """A service names its car by id; the VIN stands on the car, when the event brings it along."""
    for entity in event.entities:
        if entity.entity_header.entity_type == CAR and entity.id == car_id:
            found = (entity.model_extra or {}).get("vin")
            return found if isinstance(found, str) and len(found) <= LONGEST_ID else None
    return None
