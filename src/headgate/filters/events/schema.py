"""The JSON Schemas of events, for producers that check what they post."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel

from headgate.filters.events.events_model import (
    Entity,
    EntityHeader,
    Event,
    EventHeader,
    ServiceRecord,
)

FOLDER = Path("schemas/event")
SAMPLES = FOLDER / "samples"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
FILES: dict[str, type[BaseModel]] = {
    "event.schema.json": Event,
    "event-header.schema.json": EventHeader,
    "entity-header.schema.json": EntityHeader,
    "service-record.schema.json": ServiceRecord,
    "entity.schema.json": Entity,
}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of what is posted."""
    return {"$schema": DRAFT} | model.model_json_schema(by_alias=True, mode="validation")


def schemas() -> Iterator[tuple[Path, bytes]]:
    """Each file with its content, the same bytes every time."""
    for name, model in FILES.items():
        yield FOLDER / name, orjson.dumps(schema_of(model), option=orjson.OPT_INDENT_2) + b"\n"
