"""The usual shape of a record: what it takes in, and what it leaves to the slow way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.compile.manifests import ORDERS, declare

from headgate.compile.bronze import json_type, sound
from headgate.compile.shape import usual_shape

USUAL = (
    '{"order_id":"a","created_at":"2024-01-01T00:00:00","total_amount":1.5}',
    '{"order_id": "a", "created_at": "2024-01-01T00:00:00", "total_amount": -0.30000000000000004}',
    '{"order_id":null,"created_at":null,"total_amount":null}',
    '{"order_id":"Zoë","total_amount":1e-05}',
    "{}",
)
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


@pytest.fixture
def shape(tmp_path: Path) -> re.Pattern[str]:
    columns = declare(tmp_path).value.columns
    # Python 3.11 knows possessive repeats too, but it writes the end of the text otherwise.
    return re.compile(
        "".join(usual_shape([(c, json_type(c)) for c in columns])).replace(r"\z", r"\Z")
    )


@pytest.mark.parametrize("text", USUAL)
def test_usual_records_have_it(shape: re.Pattern[str], text: str) -> None:
    assert shape.search(text)


@pytest.mark.parametrize("text", UNUSUAL)
def test_whatever_needs_a_closer_look_has_not(shape: re.Pattern[str], text: str) -> None:
    assert not shape.search(text)


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
    column = declare(tmp_path, manifest).value.column("total_amount")
    shape = re.compile("".join(usual_shape([(column, json_type(column))])).replace(r"\z", r"\Z"))
    assert all(shape.search(f'{{"total_amount":{text}}}') for text in usual)
    assert not any(shape.search(f'{{"total_amount":{text}}}') for text in unusual)


def test_a_name_that_needs_escapes_has_no_quick_way(tmp_path: Path) -> None:
    manifest = ORDERS.replace("{name: total_amount,", "{name: total-amount,")
    manifest = manifest.replace('"total_amount > 0"', '"`total-amount` > 0"')
    assert sound(declare(tmp_path, manifest).value) == ""


def test_a_value_that_its_bronze_type_cannot_hold_is_not_sound(tmp_path: Path) -> None:
    manifest = ORDERS.replace(
        "kafka_type: DOUBLE, bronze_type: DOUBLE", "kafka_type: BIGINT, bronze_type: INT"
    )
    lost = "NOT (total_amount IS NOT NULL AND try_cast(total_amount AS INT) IS NULL)"
    assert lost in sound(declare(tmp_path, manifest).value)
