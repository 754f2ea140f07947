"""No admitted expression raises on any row; types, NULL, literals and names are as we say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.support.expression_frames import (
    ANSI,
    VIEW,
    comparison_key,
    create_rows_view,
    evaluate_by_reference,
    evaluate_on_spark,
)
from tests.support.random_expressions import COLUMNS, HOSTILE_TEXTS, KINDS, random_expr
from tests.support.random_rows import extremes

from headgate.conditions.ast import Expr
from headgate.conditions.literals import RESERVED, spark_identifier, spark_literal
from headgate.conditions.parser import parse_value
from headgate.conditions.spark_sql import to_spark
from headgate.declarations.types import BOOLEAN, DOUBLE, INT, STRING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# py4j closes the sockets of `collect` only when they are garbage.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SEED = 42
RANDOM_EXPRESSIONS = 200
CONDITIONS = Path(__file__).parents[3] / "docs" / "conditions.md"
EXTREMES = [extremes(kind) for kind in COLUMNS.values()]
ROWS = [
    {name: values[at % len(values)] for name, values in zip(COLUMNS, EXTREMES, strict=True)}
    for at in range(max(map(len, EXTREMES)))
]
NULLS = {"x": INT, "s": STRING, "c": BOOLEAN, "d": DOUBLE}
WRITTEN = (
    "CAST(s AS INT) + 1 > 0",
    "i + j * n - 1",
    "-i",
    "abs(i)",
    "abs(n)",
    "m / i",
    "d / 0",
    "i % j",
    "w % 0",
    "m % 0.3",
    "floor(d)",
    "ceil(w)",
    "round(w, 0)",
    "round(p, 3)",
    "CAST(d AS DECIMAL(10, 2))",
    "CAST(w AS DECIMAL(10, 2))",
    "CAST(d AS INT)",
    "CAST(f AS BIGINT)",
    "CAST(w AS INT)",
    "CAST(s AS DATE) = day",
    "CAST(s AS TIMESTAMP) = ts",
    "CAST(s AS TIMESTAMP_LTZ) = tz",
    "CAST(s AS DECIMAL(38, 38))",
    "CAST(ts AS DATE) < DATE '2024-02-01'",
    "CAST(tz AS DATE) < '2024-02-01'",
    "CAST(ts AS STRING)",
    "CAST(tz AS STRING)",
    "CAST(day AS STRING)",
    "datediff(day, ts)",
    "date_add(day, 2147483647)",
    "date_sub(day, -2147483647)",
    "year(ts) + year(day)",
    "second(tz)",
    "unix_timestamp(ts)",
    "seconds_between(tz, ts)",
    "substring(s, -2147483647, 2147483647)",
    "left(s, -1)",
    "f = i OR f > n OR f < w",
    "i IN (1, 2.5, 1e3)",
    "p BETWEEN i AND m",
    "coalesce(i, n, d, m)",
    "CASE WHEN i > 0 THEN i WHEN flag THEN m ELSE p END",
)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> Iterator[SparkSession]:
    """A view whose rows hold every extreme value of every type, and NULL."""
    with create_rows_view(spark, ROWS):
        yield spark


def _expressions() -> list[Expr]:
    rng = Random(SEED)
    written = [parse_value(text, COLUMNS) for text in WRITTEN]
    return written + [random_expr(rng, rng.choice(KINDS), 3) for _ in range(RANDOM_EXPRESSIONS)]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_no_written_expression_raises_and_all_are_as_the_twin_says(
    rows: SparkSession, ansi: str
) -> None:
    expressions = [parse_value(text, COLUMNS) for text in WRITTEN]
    rows.conf.set(ANSI, ansi)
    answers = evaluate_on_spark(rows, expressions)
    differing = {
        text
        for row, line in zip(ROWS, answers, strict=True)
        for text, item, theirs in zip(WRITTEN, expressions, line, strict=True)
        if comparison_key(theirs) != comparison_key(evaluate_by_reference(item, row))
    }
    assert len(answers) == len(ROWS)
    assert differing == set()


def test_the_rows_would_make_plain_sql_raise(rows: SparkSession) -> None:
    rows.conf.set(ANSI, "true")
    for plain in ("i + j", "CAST(s AS INT)", "CAST(d AS INT)", "i % 0", "abs(i)"):
        with pytest.raises(Exception, match=r"OVERFLOW|CAST_INVALID_INPUT|BY_ZERO"):
            rows.sql(f"SELECT bit_xor(xxhash64({plain})) FROM {VIEW}").collect()


def test_spark_gives_each_expression_the_type_that_we_say(rows: SparkSession) -> None:
    expressions = _expressions()
    columns = ", ".join(f"{to_spark(item)} AS c{at}" for at, item in enumerate(expressions))
    fields = rows.sql(f"SELECT {columns} FROM {VIEW} LIMIT 0").schema.fields
    wrong = [
        (to_spark(item), str(item.type), field.dataType.simpleString())
        for item, field in zip(expressions, fields, strict=True)
        if field.dataType.simpleString().replace(",", ", ") != item.type.spark.lower()
    ]
    assert wrong == []


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_the_documented_null_semantics_are_sparks(rows: SparkSession, ansi: str) -> None:
    table = CONDITIONS.read_text().partition("## NULL")[2].partition("## What")[0]
    documented = re.findall(r"^\| `(.+)` \| (\w+) \|$", table, re.MULTILINE)
    assert len(documented) > 40
    columns = ", ".join(
        f"({to_spark(parse_value(text, NULLS))}) <=> {expected}" for text, expected in documented
    )
    nulls = ", ".join(f"CAST(NULL AS {kind.spark}) AS {name}" for name, kind in NULLS.items())
    rows.conf.set(ANSI, ansi)
    answers = rows.sql(f"SELECT {columns} FROM (SELECT {nulls})").collect()[0]
    assert [row for row, right in zip(documented, answers, strict=True) if not right] == []


def test_every_literal_reads_back_as_itself(spark: SparkSession) -> None:
    texts = (*HOSTILE_TEXTS, "x" * 65_536, "".join(map(chr, range(0x20, 0x250))))
    columns = ", ".join(spark_literal(text) for text in texts)
    assert tuple(spark.sql(f"SELECT {columns}").collect()[0]) == texts


def test_a_bare_name_is_read_as_a_column(spark: SparkSession) -> None:
    """Every word of Spark's grammar that we leave bare really can stand bare."""
    words = [row.keyword for row in spark.sql("SELECT keyword FROM sql_keywords()").collect()]
    bare = [word for word in words if word not in RESERVED]
    columns = ", ".join(f"{at} AS `{word}`" for at, word in enumerate(bare))
    conditions = ", ".join(
        f"{spark_identifier(word)} = {at} AND NOT ({spark_identifier(word)} IS NULL)"
        for at, word in enumerate(bare)
    )
    answers = spark.sql(f"SELECT {conditions} FROM (SELECT {columns})").collect()[0]
    assert [word for word, right in zip(bare, answers, strict=True) if not right] == []
