"""Calls of strict_json, and records for it: mutants of valid ones, and the shared cases."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.support.dataset_events import compact
from tests.support.hostile_records import encode_event, valid_event

from headgate.conditions.literals import spark_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).parents[2] / "java/spark-functions"
CASE_FILE = PROJECT / "cases/records.jsonl"
UNKNOWN_VALUES = (
    *(1, 1.5, "q", None, [], {}, 12345678901234567890, 1e22, 'é"\\'),
    {"b": 1, "a": [1, {"z": 2, "y": None}]},
)
TOKENS = (
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"0", b"1", b"-", b".", b"e", b"E"),
    *(b"null", b"true", b"\\u0041", b"\\ud83d\\ude00", b"\\udc00", b"\xc3\xa9", b"\xff", b"\n"),
    *(b"1e400", b"1e5", b"999999999999999999999", b'"x":1,', b'"x":{"a":1,"a":2},', b'"id":1,'),
    *(b'"y":{"b":1.50,"a":[1,2.0,"s",null,true]},', b"NaN", b"-0", b"-0.0", b"1.0", b"0.1", b"1E2"),
    *(b'"2024-01-01T00:00:00"', b'"2024-02-29"', b'"1e-900"', b"\x00", b"\\/", b"\\n", b"\\x"),
)
LITERALS = (
    *(b"1.005", b"12345678.99", b"123456789.99", b"1.500", b"1e-2", b"1.5e-3", b"-1.2e2"),
    *(b"2147483647", b"2147483648", b"-9223372036854775808", b"9223372036854775808"),
    *(b"1.7976931348623157e308", b"1.8e308", b"4.9e-324", b"0.1e-400", b"1e23", b"8.5e22"),
    *(b"123456789012345678901234567890", b"0.30000000000000004", b"9007199254740993"),
    *(b'"2024-01-01T10:00:00.123"', b'"2024-1-1T10:00:00"', b'"2024-01-01T10:00:00Z"'),
    *(b'"0000-01-01"', b'"10000-01-01"', b'"-001-01-01"', b'"2024-12-31T23:59:60"'),
    *(b'"2024-12-31T24:00:00"', b'"\\u0032024-01-01T10:00:00"', b'""', b'" "', b"[]", b"{}"),
    *(b'{"a":{"b":{}}}', b"false", b'"a\\u0000b"', b'"\\ud83d\\ude00"'),
)


@dataclass(frozen=True)
class RecordCase:
    """One line of the shared file: a record, how it is read, and its row or its reason code."""

    name: str
    columns: str
    options: Mapping[str, str]
    value: bytes
    row: Mapping[str, Any] | None
    code: str | None
    reason: str | None


def read_cases() -> list[RecordCase]:
    """The shared cases."""
    return [_read_case(json.loads(line)) for line in CASE_FILE.read_text("utf-8").splitlines()]


def _read_case(line: Mapping[str, Any]) -> RecordCase:
    encoded = line.get("base64")
    value = base64.b64decode(encoded) if encoded else line["record"].encode()
    return RecordCase(
        line["name"],
        line["columns"],
        line["options"],
        value,
        line.get("row"),
        line.get("code"),
        line.get("reason"),
    )


def render_call(columns: str, options: Mapping[str, str], value: str = "value") -> str:
    """A call of strict_json as SQL text."""
    pairs = ", ".join(f"{spark_literal(k)}, {spark_literal(v)}" for k, v in options.items())
    mapped = f", map({pairs})" if options else ""
    return f"strict_json({value}, {spark_literal(columns)}{mapped})"


def bind_records(spark: SparkSession, view: str, values: Iterable[bytes]) -> None:
    """Bind records to a view that looks like a Kafka source; the offset is the record's number."""
    schema = "topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY"
    rows = [("t", 0, number, b"k", bytearray(value)) for number, value in enumerate(values)]
    headers = "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers"
    frame = spark.createDataFrame(rows, schema)
    frame.selectExpr("*", "current_timestamp() AS timestamp", headers).createOrReplaceTempView(view)


def mutate_records(rng: Random, count: int) -> list[bytes]:
    """Valid events, a part of them with unknown fields, each with one to three changes."""
    return [_mutate(rng, _valid(rng)) for _ in range(count)]


def _valid(rng: Random) -> bytes:
    if rng.random() < 0.7:
        return encode_event(rng)
    return compact(valid_event(rng, x=rng.choice(UNKNOWN_VALUES)))


def _mutate(rng: Random, record: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(record) + 1)
        kind = rng.random()
        if kind < 0.35:
            record = record[:at] + rng.choice(TOKENS) + record[at:]
        elif kind < 0.6:
            record = record[:at] + record[at + rng.choice((1, 1, 2, 5)) :]
        elif kind < 0.8:
            new = rng.randrange(256) if rng.random() < 0.3 else rng.choice(b'"{}[],:09eE.-+ \\tfn')
            record = record[:at] + bytes([new]) + record[at + 1 :]
        else:
            record = _replace_value(rng, record)
    return record


def _replace_value(rng: Random, record: bytes) -> bytes:
    try:
        fields = json.loads(record)
    except ValueError:
        return record
    if not isinstance(fields, dict) or not fields:
        return record
    fields[rng.choice(list(fields))] = "@@"
    text = json.dumps(fields, separators=(",", ":")).encode()
    return text.replace(b'"@@"', rng.choice((*TOKENS, *LITERALS)))
