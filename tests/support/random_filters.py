"""Filters and records by chance: sound ones, odd ones, and values that are nearly each other."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.support.random_expressions import HOSTILE_TEXTS

from headgate.filters.loader import parse_filter
from headgate.filters.spec import Filter

TEXTS = (
    *HOSTILE_TEXTS,
    "a",
    "A",
    "b",
    "ab",
    "",
    "450",
    "450.0",
    "1e3",
    "true",
    "NaN",
    "é",
    "😀",
    "0",
)
TIMES = (
    "2025-01-15T10:00:00Z",
    "2025-01-15T10:00:00.000000Z",
    "2025-01-15 12:00:00+02:00",
    "2025-02-01",
    "2025-01-15T10:00",
)
FIELDS = ("id", "event_name", "event_type", "created_date", "header_data", "__op", "__table")
PATHS = (
    "header_data.a",
    "header_data.b.c",
    "header_data.items[0]",
    "header_data.items[1].x",
    "header_data[0].a",
    "header_data.dealerId",
)
NUMBERS = (0, 1, -1, 450, 450.5, 1000, 1e300, -0.0, 2.5e-7, 9007199254740992)
PATTERNS = ("^a", "b$", "[0-9]+", "^$", "a.b", "é|ß", "^(?:ab)+$", "\\\\", "^.$")
COMPARED = ("equals", "greaterThan", "greaterThanOrEqual", "lessThan", "lessThanOrEqual")
# As they stand in a document; not all of them are what Python writes.
JSON_NUMBERS = (
    *("0", "-0", "1", "450", "450.0", "450.00", "450.5", "1e3", "1E3", "-0.0", "1000", "2.5e-7"),
    *("1e400", "9007199254740993", "123456789012345678901234567890", "0.10", "1" * 39, "1" * 1001),
)


def random_filter(rng: Random, name: str) -> Filter:
    """A sound filter; each has at least one chance to match a random event."""
    return parse_filter(
        {
            "id": name,
            "name": "".join(letter for letter in rng.choice(TEXTS) if letter.isprintable())[:99]
            or "x",
            "consumerId": "by-chance",
            "outputTopic": f"topic-{name}",
            "conditions": [_part(rng, 2) for _ in range(rng.choice((1, 1, 2, 3)))],
            "conditionLogic": rng.choice(("AND", "AND", "OR")),
            "enabled": True,
            "ops": rng.choice((["c"], ["c"], ["c", "u"], ["r"], ["c", "u", "d", "r"])),
        }
    )


def _part(rng: Random, depth: int) -> dict[str, Any]:
    kind = rng.random() if depth else 1
    if kind < 0.12:
        return {"not": _part(rng, depth - 1)}
    if kind < 0.3:
        group = rng.choice(("all", "any"))
        return {group: [_part(rng, depth - 1) for _ in range(rng.randint(1, 3))]}
    return _condition(rng)


def _condition(rng: Random) -> dict[str, Any]:
    field = rng.choice((*FIELDS, *PATHS, *PATHS, "__ts_ms"))
    kind = "number" if field == "__ts_ms" else rng.choice(("string", "string", "number", "boolean"))
    if rng.random() < 0.15 and field != "__ts_ms":
        kind = "timestamp"
    made: dict[str, Any] = {"field": field, "operator": _operator(rng, kind)}
    if made["operator"] in ("isNull", "isNotNull"):
        return made
    made["valueType"] = kind
    match made["operator"]:
        case "in" | "notIn":
            made["values"] = [_value(rng, kind) for _ in range(rng.randint(1, 4))]
        case "between":
            made["min"], made["max"] = _value(rng, kind), _value(rng, kind)
        case "matches":
            made["value"] = rng.choice(PATTERNS)
        case _:
            made["value"] = _value(rng, kind)
    return made


def _operator(rng: Random, kind: str) -> str:
    usual = ["in", "notIn", "isNull", "isNotNull", "equals", "equals", "equals"]
    if kind == "boolean":
        return rng.choice(usual)
    return rng.choice([*usual, *COMPARED, "between", *(["matches"] * (kind == "string"))])


def _value(rng: Random, kind: str) -> Any:
    match kind:
        case "number":
            return rng.choice(NUMBERS)
        case "boolean":
            return rng.choice((True, False))
        case "timestamp":
            return rng.choice(TIMES)
        case _:
            return rng.choice((*TEXTS, *TIMES, "c", "u"))


def random_record(rng: Random) -> bytes | None:
    """The value of a record; one in ten is no event."""
    odd = rng.random()
    if odd < 0.1:
        return rng.choice(ODD_RECORDS)
    fields = {
        "id": json.dumps(rng.choice((*TEXTS[:-1], "e1", "e2")) or "e3"),
        "event_name": _scalar(rng),
        "event_type": _scalar(rng),
        "created_date": json.dumps(rng.choice((*TIMES, "soon", None))),
        "saved_date": json.dumps(rng.choice(TIMES)),
        "header_data": json.dumps(_document(rng), ensure_ascii=rng.random() < 0.5),
        "__op": json.dumps(rng.choice("cccudr")),
        "__table": '"event_headers"',
        "__ts_ms": rng.choice(("1700000000000", "0", "null", '"5"', "450.00")),
    }
    kept = [name for name in fields if name == "id" or rng.random() < 0.95]
    gap = rng.choice(("", " ", "\n"))
    text = ",".join(f'{gap}"{name}":{gap}{fields[name]}' for name in kept)
    return f"{{{text}}}{gap}".encode(errors="replace")


def _scalar(rng: Random) -> str:
    if rng.random() < 0.8:
        return json.dumps(rng.choice(TEXTS), ensure_ascii=rng.random() < 0.5)
    return rng.choice((*JSON_NUMBERS[:6], "true", "false", "null"))


def _document(rng: Random) -> str:
    """The text of header_data: mostly an object, with what the paths ask for."""
    if rng.random() < 0.1:
        return rng.choice(ODD_DOCUMENTS)
    fields = {
        "a": _json(rng, 1),
        "b": rng.choice((f'{{"c":{_json(rng, 1)}}}', _json(rng, 0))),
        "items": f'[{_json(rng, 1)}, {{"x":{_json(rng, 0)}}}]',
        "dealerId": json.dumps(rng.choice(TEXTS)),
    }
    kept = [name for name in fields if rng.random() < 0.8]
    if rng.random() < 0.02:
        kept.append("a")
    text = ", ".join(f'"{name}": {fields[name]}' for name in kept)
    return f"[{{{text}}}]" if rng.random() < 0.1 else f"{{{text}}}"


def _json(rng: Random, depth: int) -> str:
    kind = rng.random()
    if kind < 0.45:
        return json.dumps(rng.choice((*TEXTS, *TIMES)), ensure_ascii=rng.random() < 0.5)
    if kind < 0.75 or not depth:
        return rng.choice((*JSON_NUMBERS, "true", "false", "null"))
    return rng.choice(("{}", "[]", '{"x": 1}', "[1, 2]"))


ODD_DOCUMENTS = (
    *("", " ", "null", "5", '"a"', "{", "[", "{'a': 1}", '{"a": 1} x', '{"a": 1}}', '{"a": NaN}'),
    *('{"a": 01}', '{"a": "\\ud800"}', '{"a": "\\ud83d\\ude00"}', '{"a": 1,}', '\ufeff{"a": 1}'),
    *('{"a": 1, "a": 2}', '{"a": "x\ty"}', '{"a": "\\u0000"}', '{"a": tru}', '{"\\u0061": "a"}'),
    *('{"a": ' + "[" * 999 + "]" * 999 + "}", '{"a": ' + "[" * 1000 + "]" * 1000 + "}"),
    *('{"' + "k" * 50_000 + '": 1, "a": "a"}', '{"' + "k" * 50_001 + '": 1, "a": "a"}'),
)
ODD_RECORDS: tuple[bytes | None, ...] = (
    *(None, b"", b" \n", b"\xff", b'{"id":"\xff"}', b'{"id":"\xed\xa0\x80"}', b"[]", b"5", b"{}"),
    *(b'{"id":"a"} {"id":"b"}', b'{"id":"a"}] x', b'{"id":"a"}}', b'{"id":"a"},{"id":"b"}', b"{"),
    *(b'{"id":{"a":1}}', b'{"id":1e3}', b'{"id":5}', b'{"id":true}', b'{"id":null}', b'{"id":""}'),
    *(b'{"id":"a","id":"a"}', b'{"id":"a","x":{"y":1,"y":1}}', b'{"id":"a","header_data":{"a":1}}'),
    *(b'{"id":"a","__ts_ms":"x"}', b'{"id":"a","__ts_ms":1.5}', b'{"id":"a","__ts_ms":1e3}'),
    *(b'{"id":"a","__ts_ms":9223372036854775808}', b'{"id":"a","__ts_ms":[]}', b"{'id':'a'}"),
    *(
        b'\xef\xbb\xbf{"id":"a"}',
        b'{"id":"\\ud800"}',
        b'{"ID":"a"}',
        b'{"id":"a",}',
        b'nul{"id":1}',
    ),
    ('{"id":"a","x":' + "[" * 998 + "]" * 998 + "}").encode(),
    ('{"id":"a","x":' + "[" * 999 + "]" * 999 + "}").encode(),
)
