"""The usual shape of a record: what it takes in, and what it leaves to the slow way."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest
from tests.support.manifests import ORDERS, load_manifest

from headgate.compile.bronze import json_type
from headgate.compile.bronze import shape as shape_of
from headgate.compile.shape import usual_shape
from headgate.spec.dataset import Column
from headgate.spec.types import DOUBLE, JSON, STRING

USUAL = (
    '{"order_id":"a","created_at":"2024-01-01T00:00:00","total_amount":1.5}',
    '{"order_id": "a", "created_at": "2024-01-01T00:00:00", "total_amount": -0.30000000000000004}',
    '{"order_id":null,"created_at":null,"total_amount":null}',
    '{"order_id":"Zoë","created_at":null,"total_amount":1e-05}',
)
PARTIAL = ('{"order_id":"Zoë","total_amount":1e-05}', '{"total_amount":1.5}', "{}")
UNUSUAL = (
    '{"total_amount":1.5,"order_id":"a"}',
    '{"order_id":"a","order_id":"b"}',
    '{"order_id":"a"} {}',
    '{"order_id":"a"}\n',
    '{"order_id":"\\ud800"}',
    '{"order_id":5}',
    '{"order_id":{"a":1}}',
    '{"order_id":"a","unknown":1}',
    '{"total_amount":1e999}',
    '{"total_amount":' + "9" * 400 + "}",
    '{"total_amount":"1.5"}',
)


def compiled(columns: Iterable[Column], optional: Collection[str] = ()) -> re.Pattern[str]:
    parts = usual_shape([(column, json_type(column)) for column in columns], optional)
    # Python 3.11 knows possessive repeats too, but it writes the end of the text otherwise.
    return re.compile("".join(parts).replace(r"\z", r"\Z"))


@pytest.fixture
def shape(tmp_path: Path) -> re.Pattern[str]:
    return compiled(load_manifest(tmp_path).value.columns)


@pytest.fixture
def partial(tmp_path: Path) -> re.Pattern[str]:
    columns = load_manifest(tmp_path).value.columns
    return compiled(columns, [column.name for column in columns])


@pytest.mark.parametrize("text", USUAL)
def test_usual_records_have_it(shape: re.Pattern[str], partial: re.Pattern[str], text: str) -> None:
    assert shape.search(text)
    assert partial.search(text)


@pytest.mark.parametrize("text", PARTIAL)
def test_a_record_that_lacks_fields_has_the_partial_shape_only(
    shape: re.Pattern[str], partial: re.Pattern[str], text: str
) -> None:
    assert not shape.search(text)
    assert partial.search(text)


@pytest.mark.parametrize("text", UNUSUAL)
def test_whatever_needs_a_closer_look_has_not(
    shape: re.Pattern[str], partial: re.Pattern[str], text: str
) -> None:
    assert not shape.search(text)
    assert not partial.search(text)


@pytest.mark.parametrize(
    ("kind", "usual", "unusual"),
    [
        ('"DECIMAL(4, 2)"', ("1.25", "-12.5", "0"), ("123", "1.255", "1e1")),
        ('"DECIMAL(2, 2)"', ("0.25", "0"), ("1.25",)),
        ('"DECIMAL(3, 0)"', ("123",), ("1.5", "1234")),
    ],
)
def test_a_decimal_has_no_more_digits_than_it_holds(
    tmp_path: Path, kind: str, usual: tuple[str, ...], unusual: tuple[str, ...]
) -> None:
    manifest = ORDERS.replace(
        "kafka_type: DOUBLE, bronze_type: DOUBLE", f"kafka_type: {kind}, bronze_type: {kind}"
    )
    column = load_manifest(tmp_path, manifest).value.column("total_amount")
    shape = compiled([column])
    assert all(shape.search(f'{{"total_amount":{text}}}') for text in usual)
    assert not any(shape.search(f'{{"total_amount":{text}}}') for text in unusual)


@pytest.mark.parametrize("value", ["null", '"a"', "-1.5", "[1, 2]", '{"a":{"b":["c",true]}}'])
def test_any_plain_json_value_of_few_levels_has_it(value: str) -> None:
    shape = compiled([Column("tags", JSON, STRING, "tags", STRING)])
    assert shape.search(f'{{"tags":{value}}}')
    assert not shape.search(f'{{"tags":{value}}} {{}}')


@pytest.mark.parametrize("value", ['"\\u0041"', "[[[[[1]]]]]", "1e999", '{"a":1', '["\\ud800"]'])
def test_a_json_value_that_needs_a_closer_look_has_not(value: str) -> None:
    assert not compiled([Column("tags", JSON, STRING, "tags", STRING)]).search(
        f'{{"tags":{value}}}'
    )


@pytest.mark.parametrize(("name", "quick"), [("a-b (c)", True), ("prix €", True), ("it's", False)])
def test_a_name_that_cannot_stand_in_the_literal_has_no_quick_way(name: str, quick: bool) -> None:
    column = Column(name, STRING, STRING, "x", STRING)
    parts = usual_shape([(column, STRING)])
    assert bool(parts) == quick
    assert not quick or compiled([column]).search(f'{{"{name}":"x"}}')


def test_only_fields_that_came_by_themselves_may_be_left_out(tmp_path: Path) -> None:
    columns = (*load_manifest(tmp_path).value.columns, Column("tip", DOUBLE, DOUBLE, "tip", DOUBLE))
    shape = compiled(columns, ["tip"])
    assert shape.search(USUAL[0])
    assert shape.search(USUAL[0].replace("}", ',"tip":1.0}'))
    assert not shape.search('{"order_id":"a","tip":1.0}')


def test_a_value_that_its_bronze_type_cannot_hold_is_not_sound(tmp_path: Path) -> None:
    manifest = ORDERS.replace(
        "kafka_type: DOUBLE, bronze_type: DOUBLE", "kafka_type: BIGINT, bronze_type: INT"
    )
    lost = "OR total_amount IS NOT NULL AND try_cast(total_amount AS INT) IS NULL"
    assert lost in shape_of(load_manifest(tmp_path, manifest).value)
