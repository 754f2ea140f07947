"""Values of topics in the registry's wire format, written by one schema and read by whatever id they bear."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.core.kafka.client import RegistryClient, Schema
from headgate.core.kafka.frame import (
    NOT_OF_SCHEMA,
    UNKNOWN_SCHEMA,
    UnreadableError,
    framed,
    unframed,
)
from headgate.core.kafka.registry_codecs import Codec, Value, codec_of
from headgate.errors import DeclarationError


@dataclass(frozen=True)
class Read:
    """A value, and the id of the schema that it was written by."""

    schema_id: int
    value: Value


class FramedWriter:
    """Writes values of one subject; its schema is registered before the first."""

    def __init__(self, client: RegistryClient, subject: str, schema: Schema) -> None:
        self._client, self._subject, self._schema = client, subject, schema
        self._codec = codec_of(schema)

    def write(self, value: Value) -> bytes:
        """An UnreadableError when the value does not fit; nobody could read it."""
        payload = self._codec.encode(value)
        return framed(self._client.register(self._subject, self._schema), payload)


class FramedReader:
    """Reads values by the schemas of their ids, each fetched and prepared once."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._codecs: dict[int, Codec] = {}

    def read(self, value: bytes) -> Read:
        """An UnreadableError is a dead letter; an UnavailableError is the registry's, and passes."""
        found = unframed(value)
        return Read(found.schema_id, self._codec(found.schema_id).decode(found.payload))

    def _codec(self, schema_id: int) -> Codec:
        if schema_id not in self._codecs:
            schema = self._client.schema(schema_id)
            if schema is None:
                raise UnreadableError(UNKNOWN_SCHEMA, f"id {schema_id}")
            try:
                self._codecs[schema_id] = codec_of(schema)
            except DeclarationError as error:
                raise UnreadableError(NOT_OF_SCHEMA, error.why) from None
        return self._codecs[schema_id]


def subject_of(topic: str, part: str = "value") -> str:
    """The subject of a topic's values, as serializers name it."""
    return f"{topic}-{part}"
