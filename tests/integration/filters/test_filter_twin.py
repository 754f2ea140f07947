"""Random filters over random records: what Spark routes is what the Python twin says, as multisets."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.support.expression_frames import ANSI, seeded_random
from tests.support.filter_documents import DEALER
from tests.support.filter_frames import (
    create_router_views,
    refused_by_reference,
    refused_by_spark,
    routed_by_reference,
    routed_by_spark,
)
from tests.support.hostile_texts import hostile_texts
from tests.support.random_filters import ODD_RECORDS, random_filter, random_record
from tests.support.strict_json import mutate_records

from headgate.filters.compile.matcher import Refused
from headgate.filters.compile.spark_sql import CompiledFilter, compile_filter
from headgate.filters.loader import parse_filter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
# The last of a code is the one whose reason is looked at.
REFUSED: dict[bytes | None, str] = {
    None: "tombstone",
    b"\xff": "not_utf8",
    b"": "empty",
    b" \n": "empty",
    b"{'id':'a'}": "not_json",
    b"[]": "not_an_object",
    b'{"id":"a","id":"a"}': "duplicate_key",
    b'{"id":"a","x":{"y":1,"y":1}}': "duplicate_key",
    b'{"id":"a"} {"id":"b"}': "trailing_text",
    b'{"id":"a"}] x': "trailing_text",
    b'{"id":"\\ud800"}': "half_surrogate",
    b'{"id":{}}': "wrong_type",
    b'{"id":"a","__ts_ms":1.5}': "wrong_type",
    b'{"id":1e3,"header_data":{"vin":"secret"}}': "wrong_type",
    b'{"id":"a","x":1e400}': "out_of_range",
    b"{}": "no_id",
    b'{"id":""}': "no_id",
}


def random_set(rng: Random, count: int) -> list[CompiledFilter]:
    return [compile_filter(random_filter(rng, f"f{at}")) for at in range(count)]


def agree(spark: SparkSession, rng: Random, filters: int, records: int) -> int:
    """How many records were sent on, after both sides were found to say the same of all of them."""
    made = random_set(rng, filters)
    values = [*ODD_RECORDS, *(random_record(rng) for _ in range(records))]
    values += mutate_records(rng, records)
    create_router_views(spark, values, made)
    found = routed_by_spark(spark)
    assert found == routed_by_reference(values, made)
    refused = {at: Refused(code == "tombstone") for at, code in refused_by_spark(spark).items()}
    assert refused == refused_by_reference(values)
    return found.total()


def test_what_is_no_event_has_a_reason_of_the_page(spark: SparkSession) -> None:
    create_router_views(spark, list(REFUSED), [])
    assert refused_by_spark(spark) == dict(enumerate(REFUSED.values()))
    rows = spark.sql("SELECT reason_code, reason FROM router_refused").collect()
    reasons = {row[0]: row[1] for row in rows}
    page = (ROOT / "docs/filters.md").read_text()
    table = page.split("| reason | what it is |\n|---|---|\n", 1)[1].split("\n\n", 1)[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(reasons)
    assert reasons["no_id"] == "the event has no id"
    # Readers of dead letters see the reason, and must not see what is in the header.
    assert reasons["wrong_type"].endswith("; id = 1e3; header_data = ***")


def test_spark_routes_what_the_twin_says(spark: SparkSession) -> None:
    assert agree(spark, seeded_random(21), 60, 150) > 100


def test_without_a_filter_records_are_read_and_none_is_sent(spark: SparkSession) -> None:
    create_router_views(spark, ODD_RECORDS, [])
    assert routed_by_spark(spark).total() == 0
    assert refused_by_spark(spark).keys() == refused_by_reference(ODD_RECORDS).keys()


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_thousand_random_filters_route_as_the_twin_says(spark: SparkSession, ansi: str) -> None:
    rng = seeded_random()
    before = spark.conf.get(ANSI)
    spark.conf.set(ANSI, ansi)
    try:
        assert sum(agree(spark, rng, 100, 400) for _ in range(10)) > 10_000
    finally:
        spark.conf.set(ANSI, str(before))


def hostile_filters(texts: list[str], *, joined: bool) -> list[CompiledFilter]:
    """One filter a text, asked by the join or as a condition of its own."""
    made: list[CompiledFilter] = []
    for at, text in enumerate(texts):
        equal = {"field": "header_data.a", "operator": "equals", "value": text}
        one = equal if joined else {"any": [equal, {"field": "__table", "operator": "isNotNull"}]}
        document = {**DEALER, "id": f"h{at}", "outputTopic": f"t{at}", "conditions": [one]}
        made.append(compile_filter(parse_filter(document)))
    return made


def selected(spark: SparkSession, texts: list[str], *, joined: bool) -> set[tuple[int, int]]:
    values = [
        json.dumps({"id": "e", "__op": "c", "header_data": json.dumps({"a": text})}).encode()
        for text in texts
    ]
    create_router_views(spark, values, hostile_filters(texts, joined=joined))
    rows = spark.sql("SELECT offset, filter FROM router_routed").collect()
    return {(row[0], row[1]) for row in rows}


def test_hostile_strings_select_exactly_themselves(spark: SparkSession) -> None:
    texts = hostile_texts(seeded_random(5), 120)
    assert selected(spark, texts, joined=True) == {(at, at) for at in range(len(texts))}


@pytest.mark.slow
def test_thousands_of_hostile_strings_select_exactly_themselves(spark: SparkSession) -> None:
    texts = hostile_texts(seeded_random(), 10_000)
    assert selected(spark, texts, joined=True) == {(at, at) for at in range(len(texts))}
    few = hostile_texts(seeded_random(), 300)
    assert selected(spark, few, joined=False) == {(at, at) for at in range(len(few))}


def test_many_questions_behind_one_key_are_each_asked(spark: SparkSession) -> None:
    """More of them than one CASE holds, beside filters with no question and with no key."""
    service = {"field": "event_type", "operator": "equals", "value": "s"}
    above = [
        {"field": "header_data.n", "operator": "greaterThan", "value": n, "valueType": "number"}
        for n in range(40)
    ]
    sets = [[service], *([service, one] for one in above), [above[5]], [above[7]]]
    made = [
        compile_filter(parse_filter({**DEALER, "id": f"q{at}", "conditions": conditions}))
        for at, conditions in enumerate(sets)
    ]
    values: list[bytes | None] = [
        json.dumps(
            {"id": str(n), "__op": op, "event_type": kind, "header_data": json.dumps({"n": n})}
        ).encode()
        for n in (-1, 0, 3, 20, 39, 40)
        for op in "cu"
        for kind in ("s", "t")
    ]
    create_router_views(spark, values, made)
    found = routed_by_spark(spark)
    assert found == routed_by_reference(values, made)
    assert found.total() > 100
