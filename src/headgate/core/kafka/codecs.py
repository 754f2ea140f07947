"""Encode and decode values by their registered schema: Avro in binary, JSON checked by JSON Schema.

`FramedWriter` registers its schema before the first value; `FramedReader` reads by whatever id a value
bears. UnreadableError makes a dead letter and never contains the value. Needs the extra `registry`.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import fastavro
import jsonschema_rs
import orjson

from headgate.core.kafka.schema_registry import (
    NOT_OF_SCHEMA,
    UNKNOWN_SCHEMA,
    RegistryClient,
    Schema,
    UnreadableError,
    framed,
    unframed,
)
from headgate.errors import DeclarationError, Fault

Value: TypeAlias = Any  # the schema says what it is
_WHOLE = "(whole schema)"
# Its stubs leave the kind of file open.
_avro: Any = fastavro


class Codec(Protocol):
    """Writes and reads values of one schema."""

    def encode(self, value: Value) -> bytes: ...

    def decode(self, payload: bytes) -> Value: ...


def codec_of(schema: Schema) -> Codec:
    """A DeclarationError when the text is no schema of its kind."""
    return AvroCodec(schema.text) if schema.kind == "AVRO" else JsonCodec(schema.text)


class AvroCodec:
    """Binary Avro, without the schema; decimals, dates and times are Python's own."""

    def __init__(self, text: str) -> None:
        try:
            self._schema = _avro.parse_schema(orjson.loads(text))
        except Exception as error:  # fastavro has no common error for what is no schema
            raise _no_schema("Avro", error) from None

    def encode(self, value: Value) -> bytes:
        out = io.BytesIO()
        try:
            _avro.schemaless_writer(out, self._schema, value, strict=True)
        except Exception as error:  # nor for a value that does not fit
            raise UnreadableError(NOT_OF_SCHEMA, _short(error)) from None
        return out.getvalue()

    def decode(self, payload: bytes) -> Value:
        source = io.BytesIO(payload)
        try:
            value: Value = _avro.schemaless_reader(source, self._schema, None)
        except Exception as error:  # nor for bytes that are none
            raise UnreadableError(NOT_OF_SCHEMA, _short(error)) from None
        if source.read(1):
            raise UnreadableError(NOT_OF_SCHEMA, "bytes are left behind the value")
        return value


class _Validator(Protocol):
    def is_valid(self, instance: object) -> bool: ...

    def validate(self, instance: object) -> None: ...


class JsonCodec:
    """JSON text that meets a JSON Schema."""

    def __init__(self, text: str) -> None:
        try:
            schema = cast("dict[str, Any]", orjson.loads(text))
            made = jsonschema_rs.validator_for(schema, retriever=_nothing_from_elsewhere)
        except ValueError as error:
            raise _no_schema("JSON", error) from None
        self._validator = cast("_Validator", made)

    def encode(self, value: Value) -> bytes:
        self._check(value)
        return orjson.dumps(value)

    def decode(self, payload: bytes) -> Value:
        try:
            value: Value = orjson.loads(payload)
        except orjson.JSONDecodeError:
            raise UnreadableError(NOT_OF_SCHEMA, "it is no JSON") from None
        self._check(value)
        return value

    def _check(self, value: Value) -> None:
        if self._validator.is_valid(value):
            return
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            place = "/".join(str(step) for step in error.instance_path)
            rule = "/".join(str(step) for step in error.schema_path)
            raise UnreadableError(NOT_OF_SCHEMA, f"/{place} breaks /{rule}") from None


def _nothing_from_elsewhere(uri: str) -> Value:
    """A schema comes from others: what it refers to is neither fetched nor read from disk."""
    raise ValueError(f"the schema refers to {uri}")


def _no_schema(kind: str, error: Exception) -> DeclarationError:
    said = str(error).strip().partition("\n")[0] or _short(error)
    what = f"this is no {kind} schema: {said}"
    return DeclarationError([Fault("schema registry", None, _WHOLE, what, "Correct the schema.")])


def _short(error: Exception) -> str:
    """What went wrong without what was read: fastavro's words can carry the value."""
    return type(error).__name__


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
