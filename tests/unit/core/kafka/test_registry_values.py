"""The registry's frame, Avro and JSON Schema: what is written is read back, and hostile bytes are refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.kafka.codecs import FramedReader, FramedWriter, codec_of, subject_of
from headgate.core.kafka.schema_registry import (
    LARGEST_ID,
    RegistryClient,
    Schema,
    UnreadableError,
    framed,
    unframed,
)
from headgate.errors import DeclarationError

AVRO = Schema(
    json.dumps(
        {
            "type": "record",
            "name": "Hash",
            "fields": [
                {"name": "pk", "type": "string"},
                {"name": "hash", "type": ["null", "string"], "default": None},
                {
                    "name": "amount",
                    "type": {
                        "type": "bytes",
                        "logicalType": "decimal",
                        "precision": 10,
                        "scale": 2,
                    },
                },
                {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            ],
        }
    )
)
JSON = Schema(
    json.dumps(
        {
            "type": "object",
            "properties": {"pk": {"type": "string"}, "n": {"type": "integer"}},
            "required": ["pk"],
        }
    ),
    "JSON",
)
AVRO_VALUE = {
    "pk": "é|",
    "hash": None,
    "amount": Decimal("12.50"),
    "at": datetime(2024, 1, 31, 12, 30, 0, 123000, UTC),
}


class KnownSchemas(RegistryClient):
    """A registry that knows these schemas, and counts how often it is asked."""

    def __init__(self, *schemas: Schema) -> None:
        super().__init__("http://registry.invalid")
        self.known = dict(enumerate(schemas, start=1))
        self.asked = 0

    def schema(self, schema_id: int) -> Schema | None:
        self.asked += 1
        return self.known.get(schema_id)

    def register(self, subject: str, schema: Schema) -> int:
        return next(at for at, known in self.known.items() if known == schema)


@given(st.integers(0, LARGEST_ID), st.binary())
def test_a_frame_is_read_back(schema_id: int, payload: bytes) -> None:
    found = unframed(framed(schema_id, payload))
    assert (found.schema_id, found.payload) == (schema_id, payload)


def test_a_frame_is_a_zero_byte_and_four_bytes_of_the_id() -> None:
    assert framed(258, b"x") == b"\x00\x00\x00\x01\x02x"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "it has 0 bytes, a frame has 5"),
        (b"\x00\x00\x00\x01", "it has 4 bytes, a frame has 5"),
        (b'{"pk": "a"}', "its first byte is 123, not 0"),
        (b"\x01\x00\x00\x00\x01x", "its first byte is 1, not 0"),
        (b"\x00\xff\xff\xff\xffx", "its id is negative"),
    ],
)
def test_what_has_no_frame_is_a_dead_letter(value: bytes, why: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        unframed(value)
    assert (refused.value.code, refused.value.why) == ("not_framed", why)


@pytest.mark.parametrize(("schema", "value"), [(AVRO, AVRO_VALUE), (JSON, {"pk": "a", "n": 5})])
def test_a_value_is_read_by_the_schema_of_its_id(schema: Schema, value: object) -> None:
    registry = KnownSchemas(JSON, AVRO)
    sent = FramedWriter(registry, subject_of("topic2"), schema).write(value)
    read = FramedReader(registry).read(sent)
    assert (read.value, registry.known[read.schema_id]) == (value, schema)


def test_a_schema_is_asked_for_once() -> None:
    registry = KnownSchemas(JSON)
    reader, sent = FramedReader(registry), framed(1, b'{"pk": "a"}')
    assert [reader.read(sent).value for _ in range(5)] == [{"pk": "a"}] * 5
    assert registry.asked == 1


def test_an_unknown_id_is_a_dead_letter_with_a_reason_of_its_own() -> None:
    with pytest.raises(UnreadableError) as refused:
        FramedReader(KnownSchemas()).read(framed(77, b"x"))
    assert (refused.value.code, refused.value.why) == ("unknown_schema", "id 77")


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b'{"n": 5}', b'{"pk": "a", "n": "secret"}', b'{"pk": "a"} x', b"\xff\xfe"],
)
def test_json_that_breaks_its_schema_is_a_dead_letter_without_its_values(payload: bytes) -> None:
    with pytest.raises(UnreadableError) as refused:
        codec_of(JSON).decode(payload)
    assert refused.value.code == "not_of_schema"
    assert "secret" not in str(refused.value)


def outcome(payload: bytes) -> str:
    try:
        return "read" if codec_of(AVRO).decode(payload) else "nothing"
    except UnreadableError as refused:
        return refused.code


@given(st.binary(max_size=60))
def test_no_bytes_make_the_avro_reader_fail_otherwise(payload: bytes) -> None:
    assert outcome(payload) in ("read", "not_of_schema")


def test_avro_with_bytes_behind_it_is_refused() -> None:
    codec = codec_of(AVRO)
    with pytest.raises(UnreadableError, match="bytes are left"):
        codec.decode(codec.encode(AVRO_VALUE) + b"x")


@pytest.mark.parametrize("value", [{}, {"pk": 5}, {**AVRO_VALUE, "more": 1}, None, "x"])
def test_a_value_that_does_not_fit_is_not_written(value: object) -> None:
    with pytest.raises(UnreadableError):
        codec_of(AVRO).encode(value)


@pytest.mark.parametrize(
    "schema",
    [
        Schema("[", "JSON"),
        Schema('{"type": "nonsense"}', "JSON"),
        Schema('{"$ref": "file:///etc/passwd"}', "JSON"),
        Schema('{"$ref": "http://somewhere.invalid/x"}', "JSON"),
        Schema("["),
        Schema('{"type": "recor"}'),
    ],
)
def test_what_is_no_schema_is_refused_and_nothing_is_fetched(schema: Schema) -> None:
    with pytest.raises(DeclarationError):
        codec_of(schema)
