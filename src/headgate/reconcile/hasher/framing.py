"""Values in a schema registry's wire format: events are taken out of it, readings put into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import orjson

from headgate.core.kafka.frame import BYTES, MAGIC
from headgate.errors import SettingsError

if TYPE_CHECKING:
    from headgate.reconcile.hasher.reading import CloudForm

# The JSON text in a value; None when there is none.
Opened = Callable[[bytes], bytes | None]
Closed = Callable[[Mapping[str, object]], bytes]


def plainly(value: bytes) -> bytes | None:
    """A value that is its own text."""
    return value


def behind_the_frame(value: bytes) -> bytes | None:
    """What the job reads of a framed value: all behind the five bytes, whatever schema they name.

    Neither asks a registry; else a schema that only one of them knows would leave a key unanswered.
    """
    is_framed = len(value) >= BYTES and value[0] == MAGIC
    return value[BYTES:] if is_framed else None


def closer(url: str | None, topic: str, form: CloudForm) -> Closed:
    """Puts readings into the frame, under a JSON Schema that is registered before the first."""
    from headgate.core.kafka.client import RegistryClient, Schema
    from headgate.core.kafka.values import FramedWriter, subject_of

    if url is None:
        raise SettingsError(
            f"readings for {topic} need a schema registry",
            why="the rule set says `framed: true` of it, and SCHEMA_REGISTRY_URL is not set",
            fix="headgate local up --with registry, or set the variable",
        )
    text = orjson.dumps(form.schema()).decode()
    writer = FramedWriter(RegistryClient(url), subject_of(topic), Schema(text, "JSON"))
    return lambda fields: writer.write(dict(fields))
