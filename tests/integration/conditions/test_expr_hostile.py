"""Hostile texts as values and as names: each selects exactly itself, and nothing else happens."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.support.expression_frames import seeded_random
from tests.support.hostile_texts import hostile_names, hostile_texts

from headgate.conditions import builder
from headgate.conditions.ast import Column, Expr, Literal
from headgate.conditions.evaluator.evaluate import evaluate
from headgate.conditions.literals import spark_identifier
from headgate.conditions.parser import parse_condition
from headgate.conditions.spark_sql import to_spark
from headgate.declarations.errors import Refusal
from headgate.declarations.types import INT, STRING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# py4j closes the sockets of `collect` only when they are garbage.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
AT_ONCE = 200
QUICK = 20_240_131
VIEW = "hostile_texts"
TEXT = Column("s", STRING)


def _condition(rng: Random, text: str) -> Expr:
    """One that holds of this text alone."""
    value = Literal(text, STRING)
    pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return rng.choice(
        (
            builder.compare("=", TEXT, value),
            builder.compare("<=>", TEXT, value),
            builder.is_in(TEXT, [value]),
            builder.between(TEXT, value, value),
            builder.like(TEXT, Literal(pattern, STRING)),
        )
    )


def _selected(spark: SparkSession, conditions: list[Expr]) -> dict[int, list[int]]:
    """The places of the conditions that hold, by the place of the row."""
    found: dict[int, list[int]] = {}
    for start in range(0, len(conditions), AT_ONCE):
        some = enumerate(conditions[start : start + AT_ONCE], start)
        places = ",\n".join(f"CASE WHEN {to_spark(one)} THEN {at} END" for at, one in some)
        query = f"SELECT place, array_compact(array({places})) AS held FROM {VIEW}"
        for row in spark.sql(f"SELECT * FROM ({query}) WHERE size(held) > 0").collect():
            found.setdefault(row.place, []).extend(row.held)
    return found


def _select_all(spark: SparkSession, rng: Random, count: int) -> dict[int, list[int]]:
    """Which texts each text's condition selects, by their places."""
    texts = hostile_texts(rng, count)
    conditions = [_condition(rng, text) for text in texts]
    frame = spark.createDataFrame(list(enumerate(texts)), "place INT, s STRING").cache()
    frame.createOrReplaceTempView(VIEW)
    try:
        selected = _selected(spark, conditions)
    finally:
        spark.catalog.dropTempView(VIEW)
        frame.unpersist()
    columns = {"s": STRING}
    for text, condition in zip(texts, conditions, strict=True):
        assert evaluate(condition, {"s": text}) is True
        if len(text) < 1_000 and rng.random() < 0.2:
            assert parse_condition(to_spark(condition), columns) == condition
    return selected


def _itself(count: int) -> dict[int, list[int]]:
    return {place: [place] for place in range(count)}


def test_each_hostile_text_selects_exactly_itself(spark: SparkSession) -> None:
    assert _select_all(spark, seeded_random(QUICK), 200) == _itself(200)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_of_ten_thousand_hostile_texts_selects_exactly_itself(spark: SparkSession) -> None:
    assert _select_all(spark, seeded_random(), 10_000) == _itself(10_000)


def _is_name(name: str) -> bool:
    try:
        return bool(spark_identifier(name))
    except Refusal:
        return False


def _misread(spark: SparkSession, rng: Random, count: int) -> list[str]:
    """The names that Spark takes for another column than the one that has the name."""
    names = hostile_names(rng, count)
    known = [name for name in names if _is_name(name)]
    refused = [name for name in names if name not in set(known)]
    assert len(known) > count // 4
    assert all(not name.isprintable() or "${" in name or not name for name in refused)
    parts = (known[start : start + AT_ONCE] for start in range(0, len(known), AT_ONCE))
    return [name for part in parts for name in _misread_of(spark, part)]


def _misread_of(spark: SparkSession, names: list[str]) -> list[str]:
    row = ", ".join(f"{at} AS {spark_identifier(name)}" for at, name in enumerate(names))
    trees = [
        builder.compare("=", Column(name, INT, source), Literal(at, INT))
        for at, name in enumerate(names)
        for source in ("", "t1")
    ]
    found = spark.sql(f"SELECT {', '.join(map(to_spark, trees))} FROM (SELECT {row}) t1")
    right = tuple(found.collect()[0])
    assert len(right) == 2 * len(names)
    columns = dict.fromkeys(names, INT)
    qualified = {f"t1.{name}": INT for name in names}
    for plain, sourced in zip(trees[0::2], trees[1::2], strict=True):
        assert parse_condition(to_spark(plain), columns) == plain
        assert parse_condition(to_spark(sourced), qualified, sources=("t1",)) == sourced
    pairs = zip(names, right[0::2], right[1::2], strict=True)
    return [name for name, plain, sourced in pairs if (plain, sourced) != (True, True)]


def test_each_hostile_name_is_read_as_the_column_it_is(spark: SparkSession) -> None:
    assert _misread(spark, seeded_random(QUICK), 200) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_of_two_thousand_hostile_names_is_read_as_the_column_it_is(
    spark: SparkSession,
) -> None:
    assert _misread(spark, seeded_random(), 2_000) == []
