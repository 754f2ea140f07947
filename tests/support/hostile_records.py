"""Hostile records by kind, each with its outcome; docs/faults.md has the same table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.support.dataset_events import compact, event

ACCEPTED, REFUSED = "accepted", "refused"
Make = Callable[[Random], bytes]
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class RecordKind:
    """One kind of hostile record; `code` is the reason code when it is refused."""

    name: str
    outcome: str
    code: str
    make: Make

    @property
    def is_large(self) -> bool:
        return "MB" in self.name


def valid_event(rng: Random, **changes: Any) -> dict[str, Any]:
    return {**event(rng, rng.randrange(10**9)), **changes}


def encode_event(rng: Random, **changes: Any) -> bytes:
    return compact(valid_event(rng, **changes))


def encode_with_literal(rng: Random, name: str, literal: bytes) -> bytes:
    """A valid record in which one field has this JSON literal as its value."""
    return encode_event(rng, **{name: "@@"}).replace(b'"@@"', literal)


def nest_objects(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def truncate_event(rng: Random) -> bytes:
    whole = encode_event(rng)
    return whole[: rng.randrange(1, len(whole) - 1)]


def random_bytes(rng: Random) -> bytes:
    return b"\x1f\x8b\x08\xff" + rng.randbytes(rng.randrange(1, 200))


def encode_utf16(encoding: str) -> Make:
    return lambda rng: json.dumps(valid_event(rng)).encode(encoding)


def replace_bytes(old: bytes, new: bytes) -> Make:
    return lambda rng: encode_event(rng, name="@@").replace(old, new)


def choose_value(name: str, *values: Any) -> Make:
    return lambda rng: encode_event(rng, **{name: rng.choice(values)})


def choose_literal(name: str, *literals: bytes) -> Make:
    return lambda rng: encode_with_literal(rng, name, rng.choice(literals))


def append_tail(*tails: bytes) -> Make:
    return lambda rng: encode_event(rng) + rng.choice(tails)


def choose_bytes(*values: bytes) -> Make:
    return lambda rng: rng.choice(values)


REFUSALS: tuple[tuple[str, str, Make], ...] = (
    ("no bytes", "empty", choose_bytes(b"")),
    ("only blanks", "empty", choose_bytes(b" ", b"   ", b"\n", b" \r\n\t ")),
    (
        "plain text",
        "not_json",
        choose_bytes(b"hello", b"<xml/>", b"id,at,name", b"-", b"'", b"nul"),
    ),
    ("cut off", "not_json", truncate_event),
    ("a field without a value", "not_json", choose_literal("n", b"")),
    ("a comma too many", "not_json", replace_bytes(b"}", b",}")),
    ("single quotes", "not_json", lambda rng: encode_event(rng, name="x").replace(b'"', b"'")),
    ("names without quotes", "not_json", replace_bytes(b'"id"', b"id")),
    ("comments", "not_json", replace_bytes(b'"id"', b'/* id */ "id"')),
    ("NaN and infinities", "not_json", choose_literal("amount", b"NaN", b"Infinity", b"-Infinity")),
    (
        "numbers that JSON has not",
        "not_json",
        choose_literal("n", b"007", b"0x10", b"+1", b".5", b"1."),
    ),
    ("an unknown escape", "not_json", replace_bytes(b"@@", b"\\x41")),
    ("a bare control character", "not_json", replace_bytes(b"@@", b"a\nb")),
    ("nested 1,100 deep", "not_json", choose_literal("extra", nest_objects(1_100))),
    ("nested 100,000 deep", "not_json", choose_bytes(nest_objects(100_000), b"[" * 100_000)),
    ("a number of 2,000 digits", "not_json", choose_literal("n", b"9" * 2_000)),
    ("10 MB of noise", "not_json", lambda rng: b"x" * (10 * MEGABYTE)),
    ("10 MB cut off", "not_json", lambda rng: encode_event(rng, name="y" * (10 * MEGABYTE))[:-2]),
    ("a byte order mark", "not_json", lambda rng: b"\xef\xbb\xbf" + encode_event(rng)),
    ("UTF-16 without a mark", "not_json", encode_utf16("utf-16-le")),
    ("UTF-16 with a mark", "not_utf8", encode_utf16("utf-16")),
    ("Latin-1", "not_utf8", replace_bytes(b"@@", b"caf\xe9")),
    ("an overlong encoding", "not_utf8", replace_bytes(b"@@", b"\xc0\xaf")),
    ("a surrogate in UTF-8", "not_utf8", replace_bytes(b"@@", b"\xed\xa0\x80")),
    ("UTF-8 cut within a character", "not_utf8", replace_bytes(b"@@", b"\xf0\x9f\x98")),
    ("compressed bytes", "not_utf8", random_bytes),
    ("an array", "not_an_object", choose_bytes(b"[]", b"[1,2]", b'["x"]')),
    ("an array of records", "not_an_object", lambda rng: b"[" + encode_event(rng) + b"]"),
    ("a single value", "not_an_object", choose_bytes(b"42", b'"text"', b"true", b"null", b"-0.5")),
    ("a field twice", "duplicate_key", lambda rng: encode_event(rng)[:-1] + b',"id":7}'),
    (
        "a field twice, once escaped",
        "duplicate_key",
        lambda r: encode_event(r)[:-1] + b',"\\u0069d":7}',
    ),
    (
        "an unknown field twice",
        "duplicate_key",
        lambda rng: encode_event(rng)[:-1] + b',"x":1,"x":2}',
    ),
    (
        "text after the record",
        "trailing_text",
        append_tail(b" garbage", b"}", b"]", b"\x00", b" #"),
    ),
    ("two records", "trailing_text", lambda rng: encode_event(rng) + b" " + encode_event(rng)),
    (
        "two records with a comma",
        "trailing_text",
        lambda rng: encode_event(rng) + b"," + encode_event(rng),
    ),
    ("brackets that would fit", "trailing_text", append_tail(b"],[{}", b'},{"v":{}')),
    ("half a surrogate pair", "half_surrogate", replace_bytes(b"@@", b"\\ud800")),
    ("the other half", "half_surrogate", replace_bytes(b"@@", b"\\udc00\\ud83d")),
    ("text for a whole number", "wrong_type", choose_value("id", "x", "7", "", " 7 ")),
    ("a fraction for a whole number", "wrong_type", choose_literal("id", b"1.5", b"1e3", b"1.0")),
    ("text for a number", "wrong_type", choose_value("amount", "x", "1.5", "", "NaN", "Infinity")),
    ("a truth value for a number", "wrong_type", choose_value("amount", True, False)),
    ("a number for a truth value", "wrong_type", choose_value("flag", 0, 1, "true", "")),
    ("a number for text", "wrong_type", choose_value("name", 5, 1.5, True)),
    ("a structure for text", "wrong_type", choose_value("name", {"a": 1}, [], ["x"])),
    ("a structure 900 deep for text", "wrong_type", choose_literal("name", nest_objects(900))),
    ("a structure for a number", "wrong_type", choose_value("id", {}, {"id": 1}, [1])),
    (
        "another pattern of time",
        "wrong_type",
        choose_value("at", "2024-01-01 10:00:00", "10:00", "now", ""),
    ),
    (
        "a time of day for a time with a zone",
        "wrong_type",
        choose_value("seen", "12:30", "T12:30", "12:30:00"),
    ),
    (
        "a day that is not",
        "wrong_type",
        choose_value("at", "2024-02-30T10:00:00", "2024-01-01T25:00:00"),
    ),
    ("a number for a time", "wrong_type", choose_value("at", 1_704_103_200, 1.5)),
    ("a number for a time with a zone", "wrong_type", choose_value("seen", 1_704_103_200, 0)),
    ("a number for a date", "wrong_type", choose_value("day", 19_723, 0)),
    ("text for a date", "wrong_type", choose_value("day", "yesterday", "31/12/2024", "")),
    (
        "2⁶³ and beyond",
        "wrong_type",
        choose_literal("id", b"9223372036854775808", b"-" + b"9" * 40),
    ),
    ("2³¹ for an INT", "wrong_type", choose_value("n", 2**31, -(2**31) - 1)),
    (
        "too many digits for a DECIMAL",
        "wrong_type",
        choose_literal("price", b"123456789.01", b"1e20"),
    ),
    ("text for a DECIMAL", "wrong_type", choose_value("price", "1.50", "x", "")),
    ("too fine for a DECIMAL", "wrong_type", choose_literal("price", b"0.005", b"1.999", b"1e-9")),
    (
        "an exponent that no DECIMAL needs",
        "out_of_range",
        choose_literal(
            "price", b"1e-9000000", b"1e9000000", b"1e-2147483647", b"-1.5E-400", b"1e005"
        ),
    ),
    (
        "such an exponent in a text for a DECIMAL",
        "out_of_range",
        choose_literal("price", b'"1e-9000000"', b'"1e2147483647"', '"١e-٩٠٠٠٠٠٠"'.encode()),
    ),
    (
        "such an exponent, its field or digits escaped",
        "out_of_range",
        choose_bytes(
            b'{"id":1,"pri\\u0063e" : 1e-9000000}',
            b'{"\\u0070\\u0072\\u0069\\u0063\\u0065":"1e-9000000"}',
            b'{"price":"\\u0031e-9000000"}',
        ),
    ),
    (
        "a number past the largest DOUBLE",
        "out_of_range",
        choose_literal("amount", b"1e999", b"-1e309"),
    ),
)
ACCEPTANCES: tuple[tuple[str, Make], ...] = (
    ("no field at all", choose_bytes(b"{}", b" { } ")),
    ("only unknown fields", choose_bytes(b'{"x":1}', b'{"ID":1,"_unparsed":"x"}')),
    ("unknown fields nested 900 deep", choose_literal("extra", nest_objects(900))),
    (
        "20,000 unknown fields",
        lambda rng: compact(valid_event(rng) | {f"x{n}": n for n in range(20_000)}),
    ),
    ("10 MB in one field", lambda rng: encode_event(rng, name="y" * (10 * MEGABYTE))),
    ("2 MB of backslashes", lambda rng: encode_event(rng, name="\\" * MEGABYTE)),
    ("an escaped NUL", choose_value("name", "a\x00b")),
    (
        "whole surrogate pairs, escaped",
        lambda rng: json.dumps(valid_event(rng, name="😀😀")).encode(),
    ),
    ("text that looks like an escape", choose_value("name", "\\ud800", "\\\\ud800\\n")),
    ("extreme numbers", choose_value("amount", 1.7976931348623157e308, 5e-324, -0.0)),
    (
        "text that looks like such an exponent",
        choose_value(
            "name", "1e-9000000", '"price":1e-9000000', '{"price" : 1e-2147483647}', "9e12345"
        ),
    ),
    ("a DECIMAL with an exponent", choose_literal("price", b"1.5e2", b"12E-1", b"0e00", b"-1e+07")),
    ("extreme whole numbers", choose_value("id", 2**63 - 1, -(2**63))),
    (
        "quotes, markup, commands",
        choose_value("name", "'; DROP TABLE x; --", "</script>", "${HOME}", "{{7}}"),
    ),
    ("text that runs both ways", choose_value("name", "a\u202eb\u200f", "\ufeff", "\u2028")),
)
KINDS: tuple[RecordKind, ...] = (
    *(RecordKind(name, REFUSED, code, make) for name, code, make in REFUSALS),
    *(RecordKind(name, ACCEPTED, "", make) for name, make in ACCEPTANCES),
)


def render_table() -> str:
    """The table of kinds as docs/faults.md has it."""
    lines = [f"| {k.name} | {k.outcome} | {f'`{k.code}`' if k.code else '–'} |" for k in KINDS]
    return "\n".join(["| kind | outcome | reason code |", "|---|---|---|", *lines])
