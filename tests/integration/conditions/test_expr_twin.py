"""A compiled condition in Spark, its Python twin and DuckDB say the same of every row."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import sqlglot
from sqlglot import exp
from tests.support.expression_frames import (
    ANSI,
    comparison_key,
    create_rows_view,
    evaluate_by_reference,
    evaluate_on_spark,
    seeded_random,
)
from tests.support.random_expressions import (
    COLUMNS,
    KINDS,
    PLAIN,
    every_form,
    random_expr,
    random_logic,
)
from tests.support.random_rows import Row, random_rows

from headgate.conditions.ast import Expr
from headgate.conditions.evaluator.functions import lower, upper
from headgate.conditions.spark_sql import to_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# py4j closes the sockets of `collect` only when they are garbage.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
AT_ONCE = 200
QUICK = 20_240_131
_DUCKDB = {"STRING": "VARCHAR"}


def _expressions(rng: Random, count: int) -> list[Expr]:
    return [random_expr(rng, rng.choice(KINDS), rng.randint(1, 4)) for _ in range(count)]


def _differences(
    spark: SparkSession, expressions: list[Expr], rows: list[Row]
) -> list[tuple[object, ...]]:
    expected = [[evaluate_by_reference(item, row) for item in expressions] for row in rows]
    found: list[tuple[object, ...]] = []
    for ansi in ("true", "false"):
        spark.conf.set(ANSI, ansi)
        answers = evaluate_on_spark(spark, expressions)
        assert len(answers) == len(rows)
        found += [
            (ansi, to_spark(item), row, theirs, ours)
            for row, line, mine in zip(rows, answers, expected, strict=True)
            for item, theirs, ours in zip(expressions, line, mine, strict=True)
            if comparison_key(theirs) != comparison_key(ours)
        ]
    return found


def _compare(spark: SparkSession, batches: list[list[Expr]], rng: Random, count: int) -> int:
    pairs = 0
    for expressions in batches:
        rows = random_rows(rng, count)
        with create_rows_view(spark, rows):
            assert _differences(spark, expressions, rows)[:10] == []
        pairs += len(rows) * len(expressions)
    return pairs


def test_spark_and_the_twin_agree_in_both_ansi_modes(spark: SparkSession) -> None:
    rng = seeded_random(QUICK)
    expressions = [*_expressions(rng, 60), *rng.sample(every_form(), 60)]
    assert _compare(spark, [expressions], rng, count=40) == 4_800


def _in_duckdb(condition: Expr, texts: dict[str, str]) -> str:
    """The condition as DuckDB's SQL, its texts handed in: its parser stops at a NUL."""

    def handed_in(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Literal) or not node.is_string:
            return node
        name = f"text{len(texts)}"
        texts[name] = node.this
        return exp.Placeholder(this=name)

    return sqlglot.parse_one(to_spark(condition), read="spark").transform(handed_in).sql("duckdb")


def _duckdb_answers(conditions: list[Expr], rows: list[Row]) -> list[list[Any]]:
    import duckdb

    kinds = {name: COLUMNS[name] for name in PLAIN}
    declared = ", ".join(f"{name} {_DUCKDB.get(kind.name, kind)}" for name, kind in kinds.items())
    texts: dict[str, str] = {}
    columns = ", ".join(_in_duckdb(item, texts) for item in conditions)
    query = f"SELECT {columns} FROM rows ORDER BY place"
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE rows (place INT, {declared})")
        database.executemany(
            f"INSERT INTO rows VALUES ({', '.join('?' * (len(PLAIN) + 1))})",
            [[at, *(row[name] for name in PLAIN)] for at, row in enumerate(rows)],
        )
        return [list(row) for row in database.execute(query, texts).fetchall()]


def _judge_logic(spark: SparkSession, rng: Random, conditions: int, count: int) -> int:
    """Comparison, logic and NULL in Spark, the twin and DuckDB."""
    rows = random_rows(rng, count)
    trees = [random_logic(rng, rng.randint(0, 3)) for _ in range(conditions)]
    expected = [[evaluate_by_reference(item, row) for item in trees] for row in rows]
    assert {True, False, None} == {answer for line in expected for answer in line}
    wrong = [
        (to_spark(item), row, theirs, ours)
        for row, line, mine in zip(rows, _duckdb_answers(trees, rows), expected, strict=True)
        for item, theirs, ours in zip(trees, line, mine, strict=True)
        if theirs is not ours
    ]
    assert wrong[:10] == []
    with create_rows_view(spark, rows):
        assert _differences(spark, trees, rows)[:10] == []
    return len(rows) * len(trees)


def test_duckdb_agrees_on_comparison_logic_and_null(spark: SparkSession) -> None:
    assert _judge_logic(spark, seeded_random(QUICK), conditions=60, count=40) == 2_400


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_duckdb_agrees_on_fifty_thousand_pairs(spark: SparkSession) -> None:
    rng = seeded_random()
    assert sum(_judge_logic(spark, rng, AT_ONCE, count=50) for _ in range(5)) == 50_000


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_spark_and_the_twin_agree_on_fifty_thousand_pairs(spark: SparkSession) -> None:
    rng = seeded_random()
    forms = every_form()
    batches = [forms[start : start + AT_ONCE] for start in range(0, len(forms), AT_ONCE)]
    batches += [_expressions(rng, AT_ONCE) for _ in range(4)]
    assert _compare(spark, batches, rng, count=60) >= 50_000


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_upper_and_lower_case_of_every_character_are_the_twins(spark: SparkSession) -> None:
    """Also around a sigma, whose lower case depends on what is beside it."""
    surrogates = range(0xD800, 0xE000)
    characters = [(chr(code),) for code in range(0x110000) if code not in surrogates]
    forms = ("{}", "a{}Σ", "{}Σ", "aΣ{}b", "aΣ{}")
    texts = [form.replace("{}", "', s, '") for form in forms]
    columns = [f"{name}(concat('{text}'))" for name in ("upper", "lower") for text in texts]
    frame = spark.createDataFrame(characters, "s STRING")
    wrong = [
        hex(ord(row.s))
        for row in frame.selectExpr("s", *columns).collect()
        if list(row)[1:]
        != [case(form.replace("{}", row.s)) for case in (upper, lower) for form in forms]
    ]
    assert len(characters) == 0x110000 - len(surrogates)
    assert wrong == []
