"""No admitted expression raises on any row, and both ANSI modes give the same answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.unit.expr.random_exprs import COLUMNS, HOSTILE_TEXTS, KINDS, random_expr

from headgate.expr.keywords import RESERVED
from headgate.expr.literals import spark_identifier, spark_literal
from headgate.expr.parse import parse_value
from headgate.expr.spark import to_spark
from headgate.expr.tree import Expr
from headgate.spec.types import BOOLEAN, DOUBLE, INT, STRING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# py4j closes the sockets of `collect` only when they are garbage.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SEED = 42
RANDOM_EXPRESSIONS = 200
AT_ONCE = 20
VIEW = "hostile_rows"
CONDITIONS = Path(__file__).parents[2] / "docs" / "conditions.md"
NULLS = {"x": INT, "s": STRING, "c": BOOLEAN, "d": DOUBLE}
EXTREMES: dict[str, tuple[str, ...]] = {
    "INT": ("0", "1", "-1", "2147483647", "-2147483648"),
    "BIGINT": ("0L", "7L", "9223372036854775807", "-9223372036854775808"),
    "DOUBLE": (
        "0D",
        "-0D",
        "0.1D",
        "1e308D",
        "-1e308D",
        "4.9e-324D",
        "DOUBLE('NaN')",
        "DOUBLE('Infinity')",
        "DOUBLE('-Infinity')",
    ),
    "FLOAT": ("FLOAT(0.1)", "FLOAT('NaN')", "FLOAT('-Infinity')", "FLOAT(3.4e38D)"),
    "DECIMAL": ("0", "1", "-1"),
    "STRING": tuple(spark_literal(text) for text in (*HOSTILE_TEXTS, "x" * 65_536)),
    "DATE": (
        "DATE '2024-02-29'",
        "DATE '0001-01-01'",
        "DATE '9999-12-31'",
        "date_from_unix_date(2147483647)",
        "date_from_unix_date(-2147483648)",
    ),
    "TIMESTAMP": (
        "TIMESTAMP_NTZ '2024-01-01 00:00:00.000001'",
        "TIMESTAMP_NTZ '0001-01-01 00:00:00'",
        "TIMESTAMP_NTZ '+294247-01-10 04:00:54.775807'",
        "TIMESTAMP_NTZ '-290308-12-21 19:59:06'",
    ),
    "TIMESTAMP_LTZ": (
        "timestamp_micros(0)",
        "timestamp_micros(9223372036854775807)",
        "timestamp_micros(-9223372036854775808)",
    ),
    "BOOLEAN": ("TRUE", "FALSE"),
}
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
    lists = [_values(name) for name in COLUMNS]
    count = max(map(len, lists))
    lines = [
        ", ".join([str(at), *(values[at % len(values)] for values in lists)]) for at in range(count)
    ]
    names = ", ".join(["row_number", *(spark_identifier(name) for name in COLUMNS)])
    text = ",\n".join(f"({line})" for line in lines)
    frame = spark.sql(f"SELECT * FROM VALUES {text} AS rows({names})").cache()
    frame.createOrReplaceTempView(VIEW)
    yield spark
    spark.catalog.dropTempView(VIEW)
    frame.unpersist()
    spark.conf.unset("spark.sql.ansi.enabled")


def _values(name: str) -> list[str]:
    kind = COLUMNS[name]
    nines = "9" * ((kind.precision or 0) - (kind.scale or 0)) + "." + "9" * (kind.scale or 0)
    extra = (nines, f"-{nines}") if kind.name == "DECIMAL" else ()
    plain = "TIMESTAMP_LTZ" if kind.name == "TIMESTAMP_LTZ" else kind.spark
    return [f"CAST({value} AS {plain})" for value in (*EXTREMES[kind.name], *extra, "NULL")]


def _hashes(spark: SparkSession, expressions: list[Expr]) -> list[int]:
    """One number for all the values of each expression, which makes Spark compute them all."""
    found: list[int] = []
    for start in range(0, len(expressions), AT_ONCE):
        columns = ",\n".join(
            f"bit_xor(xxhash64(row_number, {to_spark(expression)}))"
            for expression in expressions[start : start + AT_ONCE]
        )
        found += spark.sql(f"SELECT {columns} FROM {VIEW}").collect()[0]
    return found


def _expressions() -> list[Expr]:
    rng = Random(SEED)
    written = [parse_value(text, COLUMNS) for text in WRITTEN]
    return written + [random_expr(rng, rng.choice(KINDS), 3) for _ in range(RANDOM_EXPRESSIONS)]


def test_no_expression_raises_and_both_ansi_modes_agree(rows: SparkSession) -> None:
    expressions = _expressions()
    answers: dict[str, list[int]] = {}
    for ansi in ("true", "false"):
        rows.conf.set("spark.sql.ansi.enabled", ansi)
        answers[ansi] = _hashes(rows, expressions)
    differing = [
        to_spark(expression)
        for expression, strict, lax in zip(
            expressions, answers["true"], answers["false"], strict=True
        )
        if strict != lax
    ]
    assert differing == []


def test_the_rows_would_make_plain_sql_raise(rows: SparkSession) -> None:
    rows.conf.set("spark.sql.ansi.enabled", "true")
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
    rows.conf.set("spark.sql.ansi.enabled", ansi)
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
