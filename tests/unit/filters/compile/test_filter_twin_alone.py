"""The router in Python: how records are read, what is written, and that the quick form is the twin."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from tests.support.filter_documents import DEALER
from tests.support.hostile_texts import hostile_texts
from tests.support.random_filters import ODD_RECORDS, random_record

from headgate.filters.compile.matcher import Event, Refused, event_of, matcher, output_of
from headgate.filters.compile.spark_sql import CompiledFilter, compile_filter
from headgate.filters.loader import parse_filter

ROOT = Path(__file__).parents[4]
GOLDEN = ROOT / "tests" / "golden" / "filters"
# As Debezium wrote it, but for the control character and the quotes.
SEEN = (
    b'{"id":"one","event_name":"Car \\u001f \\"Service\\" \xc3\xa9 \\uD83D\\uDE00","event_type":'
    b'"CarServiceDone","created_date":"2025-01-15T10:00:00.123456Z","saved_date":null,'
    b'"header_data":"{\\"a\\": null, \\"dealerId\\": \\"DEALER-001\\", \\"amountPaid\\": 450.00}",'
    b'"__op":"c","__table":"event_headers","__ts_ms":1794839142006}'
)


def filter_on(**condition: Any) -> CompiledFilter:
    return compile_filter(parse_filter({**DEALER, "conditions": [condition]}))


def event(header: str, **columns: Any) -> Event:
    read = event_of(json.dumps({"id": "e", "__op": "c", "header_data": header, **columns}).encode())
    assert isinstance(read, Event)
    return read


def asked(header: str, **condition: Any) -> bool:
    return matcher(filter_on(**condition))(event(header))


def test_an_event_has_the_columns_of_the_record() -> None:
    read = event_of(SEEN)
    assert isinstance(read, Event)
    assert read.columns["event_name"] == 'Car \x1f "Service" é 😀'
    assert read.columns["saved_date"] is None
    assert read.columns["__ts_ms"] == 1_794_839_142_006


def test_what_is_written_is_what_it_was() -> None:
    read = event_of(SEEN)
    assert isinstance(read, Event)
    key, value = output_of(read)
    assert key == b"one"
    assert value == (GOLDEN / "output.json").read_bytes().rstrip(b"\n")
    assert list(json.loads(value)) == [
        *("id", "event_name", "event_type", "created_date", "saved_date", "header_data"),
        *("__op", "__table"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        *(b"", b"\xff", b"{'id':'a'}", b"[]", b"{}", b'{"id":""}', b'{"id":{}}'),
        *(b'{"id":"a"} {"id":"b"}', b'{"id":"a"}] x', b'{"id":"a","id":"a"}'),
        *(b'{"id":"\\ud800"}', b'{"id":"a","x":1e400}', b'{"id":"a","__ts_ms":1.5}'),
        b'{"id":"a","header_data":{"a":1}}',
    ],
)
def test_what_is_no_event_is_refused(value: bytes) -> None:
    assert event_of(value) == Refused()


def test_a_record_without_a_value_is_a_tombstone() -> None:
    assert event_of(None) == Refused(is_tombstone=True)


@pytest.mark.parametrize("value", ODD_RECORDS, ids=range(len(ODD_RECORDS)))
def test_reading_never_raises(value: bytes | None) -> None:
    assert event_of(value)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ('{"a": "x"}', "x"),
        ('{"a": 450.00}', "450"),
        ('{"a": 0.10}', "0.1"),
        ('{"a": -0}', "0"),
        ('{"a": 100}', "100"),
        ('{"a": true}', "true"),
        ('{"a": "\\u0000"}', "\x00"),
        ('{"a": "\\ud800"}', "?"),
        ('{"a": 1} x', "1"),
    ],
)
def test_a_value_is_compared_by_its_text(header: str, text: str) -> None:
    assert asked(header, field="header_data.a", operator="equals", value=text)


@pytest.mark.parametrize(
    "header", ['{"a": 1e3}', '{"a": {}}', '{"a": []}', '{"a": null}', "{}", "no", '{"a":1,"a":1}']
)
def test_what_has_no_text_is_neither_equal_nor_unequal(header: str) -> None:
    for operator in ("in", "notIn"):
        assert not asked(header, field="header_data.a", operator=operator, values=["1000"])


@pytest.mark.parametrize(
    ("header", "there"),
    [('{"a": 1e3}', True), ('{"a": {}}', True), ('{"a": ""}', True), ('{"a": null}', False)],
)
def test_what_is_there_is_not_null(header: str, there: bool) -> None:
    assert asked(header, field="header_data.a", operator="isNotNull") is there
    assert asked(header, field="header_data.a", operator="isNull") is not there


@pytest.mark.parametrize(
    ("header", "holds"),
    [
        ('{"a": 1e3}', True),
        ('{"a": "1000"}', True),
        ('{"a": 999.99}', False),
        ('{"a": 1e400}', True),
        ('{"a": true}', False),
        ('{"a": "x"}', False),
        ('{"a": [1000]}', False),
    ],
)
def test_numbers_are_compared_as_numbers(header: str, holds: bool) -> None:
    number = {"operator": "greaterThanOrEqual", "value": 1000, "valueType": "number"}
    assert asked(header, field="header_data.a", **number) is holds


@pytest.mark.heavy
def test_a_hostile_string_selects_exactly_itself() -> None:
    texts = hostile_texts(Random(3), 200)
    events = [event(json.dumps({"a": text})) for text in texts]
    for text in texts:
        takes = matcher(filter_on(field="header_data.a", operator="equals", value=text))
        assert [other for other, seen in zip(texts, events, strict=True) if takes(seen)] == [text]


def test_the_usual_reading_is_the_careful_reading() -> None:
    rng = Random(17)
    values = [*ODD_RECORDS, SEEN, *(random_record(rng) for _ in range(400))]
    values += [orjson.dumps(read.columns) for v in values if isinstance(read := event_of(v), Event)]
    # A blank behind it changes nothing, and is not usual.
    assert [event_of(v) for v in values] == [event_of(v and v + b" ") for v in values]


def test_the_table_of_the_page_is_what_the_twin_says() -> None:
    page = (ROOT / "docs" / "filters.md").read_text()
    table = page.split("| `a` `isNull` |\n", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    questions: list[dict[str, Any]] = [
        {"operator": "equals", "value": "1000"},
        {"operator": "notIn", "values": ["x"]},
        {"operator": "greaterThan", "value": 999, "valueType": "number"},
        {"operator": "isNull"},
    ]
    assert len(table) == 7
    for row in table:
        first, *said = [cell.strip() for cell in row.strip("|").split("|")]
        headers = re.findall("`([^`]*)`", first) or ["no JSON"]
        for header in headers:
            found = [asked(header, field="header_data.a", **one) for one in questions]
            assert found == [word == "yes" for word in said], header
