"""Values in a schema registry's wire format: events are taken out of it, readings put into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import orjson

from headgate.errors import OperationError, SettingsError
from headgate.feeds.registry.frame import UnreadableError, unframed

if TYPE_CHECKING:
    from headgate.feeds.hasher.reading import CloudForm

# The JSON text in a value; None when there is none.
Opened = Callable[[bytes], bytes | None]
Closed = Callable[[Mapping[str, object]], bytes]


def plainly(value: bytes) -> bytes | None:
    """A value that is its own text."""
    return value


def opener(url: str | None) -> Opened:
    """Takes JSON as it stands behind the frame; Avro is read by its schema, which needs a registry."""
    if url is None:
        return _behind_the_frame
    from headgate.feeds.registry.client import RegistryClient
    from headgate.feeds.registry.values import FramedReader

    client = RegistryClient(url)
    reader = FramedReader(client)

    def opened(value: bytes) -> bytes | None:
        try:
            found = unframed(value)
            schema = client.schema(found.schema_id)
            if schema is None or schema.kind == "JSON":
                return found.payload if schema else None
            return orjson.dumps(reader.read(value).value, default=str)
        except (UnreadableError, OperationError):  # a schema in a language that is not read here
            return None

    return opened


def _behind_the_frame(value: bytes) -> bytes | None:
    try:
        return unframed(value).payload
    except UnreadableError:
        return None


def closer(url: str | None, topic: str, form: CloudForm) -> Closed:
    """Puts readings into the frame, under a JSON Schema that is registered before the first."""
    from headgate.feeds.registry.client import RegistryClient, Schema
    from headgate.feeds.registry.values import FramedWriter, subject_of

    if url is None:
        raise SettingsError(
            f"readings for {topic} need a schema registry",
            why="the rule set says `framed: true` of it, and SCHEMA_REGISTRY_URL is not set",
            fix="headgate local up --with registry, or set the variable",
        )
    text = orjson.dumps(form.schema()).decode()
    writer = FramedWriter(RegistryClient(url), subject_of(topic), Schema(text, "JSON"))
    return lambda fields: writer.write(dict(fields))
