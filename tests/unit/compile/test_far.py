"""Numbers whose exponents would cost the JSON reader seconds: which records are kept from it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from tests.support.manifests import ORDERS, compile_manifest, load_manifest

from headgate.compile.bronze import refusals
from headgate.compile.dataset import BRONZE_BATCH
from headgate.compile.far import condition, names

DECIMAL = ORDERS.replace(
    "kafka_type: DOUBLE, bronze_type: DOUBLE",
    'kafka_type: "DECIMAL(10, 2)", bronze_type: "DECIMAL(10, 2)"',
)
FAR = (
    *('{"price":1e-9000000}', '{"price" : -1.5E400}', '{"price":1e+100}', '{"a":1,"tip":0e000}'),
    *('{"price":"1e-9000000"}', '{"price":"\\u0031e9"}', '{"price":"١e-٩٠٠٠"}'),
    *('{"pri\\u0063e":1e-9000000}', '{"\\u0070\\u0072\\u0069\\u0063\\u0065":"1e-9000000"}'),
)
NEAR = (
    *('{"price":1.5e-9}', '{"price":12E+99}', '{"price":null}', '{"price":"free entry"}', "{}"),
    *('{"other":1e-9000000}', '{"other":"1e-9000000"}', '{"unprice":1e999}', '{"price":123456}'),
    *('{"name":"\\"price\\":1e-9000000"}', '{"name":"3e-4444-price"}', '{"\\u0061":1.5}'),
)


def pattern(*fields: str) -> re.Pattern[str]:
    return re.compile("".join(re.findall("r'(.*)'", condition(fields))))


@pytest.mark.parametrize("text", FAR)
def test_a_far_exponent_of_a_decimal_field_is_seen(text: str) -> None:
    assert pattern("price", "tip").search(text)


@pytest.mark.parametrize("text", NEAR)
def test_other_numbers_texts_and_fields_are_let_through(text: str) -> None:
    assert pattern("price", "tip").search(text) is None


@pytest.mark.parametrize("name", ["it's", "a$b", "a.b", 'q"q', "back\\slash"])
def test_a_name_with_marks_neither_leaves_its_literal_nor_is_overlooked(name: str) -> None:
    written = name.replace("\\", "\\\\").replace('"', '\\"')
    assert "'" not in "".join(re.findall("r'(.*)'", condition([name])))
    assert pattern(name).search(f'{{"{written}":1e-9000000}}')


@pytest.mark.heavy
@pytest.mark.parametrize("piece", ["\\u0041", '"', "\\", '":', '"price":"1', '"price":1.', " "])
def test_the_time_grows_with_the_text_alone(piece: str) -> None:
    text, begun = piece * (200_000 // len(piece)), time.thread_time()
    pattern("price").search(text)
    assert time.thread_time() - begun < 2


def test_only_records_with_decimals_are_looked_at(tmp_path: Path) -> None:
    dataset, plain = load_manifest(tmp_path, DECIMAL).value, load_manifest(tmp_path).value
    assert (names(dataset), names(plain)) == (["total_amount"], [])
    assert condition(["total_amount"]).splitlines()[1] in refusals(dataset)
    assert "THEN kafka_text\n" in compile_manifest(tmp_path, DECIMAL).template(BRONZE_BATCH).text
    assert "from_json(\n  kafka_text,\n" in compile_manifest(tmp_path).template(BRONZE_BATCH).text
