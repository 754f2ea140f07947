"""X4: Spark SQL gives every vector's hash, in both ANSI modes, in two time zones and two locales."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.hash_vector_tables import VectorTable, write_tables

from headgate.hashing.contract import contract_of
from headgate.hashing.python import row_hash
from headgate.hashing.spark import row_hash_sql
from headgate.hashing.typed_json import VECTORS_FILE, Vector, read_vectors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parents[3]
# Hours that there are twice or not at all, a zone that is no whole hours off, and letters i of its own.
AMERICA, NEPAL = "America/New_York", "Asia/Kathmandu"


@pytest.fixture(scope="module")
def vectors() -> dict[int, Vector]:
    """Those that a table can hold."""
    return {vector.id: vector for vector in read_vectors(ROOT / VECTORS_FILE) if vector.spark}


@pytest.fixture(scope="module")
def tables(
    vectors: dict[int, Vector], tmp_path_factory: pytest.TempPathFactory
) -> list[VectorTable]:
    return list(write_tables(list(vectors.values()), tmp_path_factory.mktemp("vectors")))


@contextmanager
def locale(session: SparkSession, language: str, country: str) -> Iterator[None]:
    """The JVM's own locale, and back."""
    java: Any = session._jvm.java.util.Locale  # pyright: ignore
    usual = java.getDefault()
    java.setDefault(java(language, country))
    try:
        yield
    finally:
        java.setDefault(usual)


def hashed(session: SparkSession, table: VectorTable) -> DataFrame:
    rows = session.read.schema(table.schema).parquet(str(table.file))
    new, old = (contract_of("vectors", table.types, version) for version in (2, 1))
    told = [row_hash_sql(new, table.spark), row_hash_sql(old, table.spark)]
    return rows.selectExpr("_id", f"{told[0]} AS v2", f"{told[1]} AS v1")


def differences(
    session: SparkSession, tables: list[VectorTable], vectors: dict[int, Vector]
) -> tuple[int, list[str]]:
    """How many rows came back, and those with other hashes than their vectors; one query for all."""
    frames = [hashed(session, table) for table in tables]
    rows = reduce(lambda one, other: one.unionAll(other), frames).collect()
    wrong = [
        f"vector {row['_id']} ({vectors[row['_id']].trap})"
        for row in rows
        if (row["v2"], row["v1"]) != (vectors[row["_id"]].v2, vectors[row["_id"]].v1)
    ]
    return len(rows), wrong


def in_mode(spark: SparkSession, ansi: bool, zone: str, compiled: bool = True) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    session.conf.set("spark.sql.session.timeZone", zone)
    session.conf.set("spark.sql.codegen.wholeStage", str(compiled).lower())
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if compiled else "NO_CODEGEN")
    return session


@pytest.mark.parametrize(
    ("ansi", "zone", "compiled"),
    [
        pytest.param(True, "UTC", True, id="ansi, UTC"),
        pytest.param(False, AMERICA, False, id="not ansi, New York, interpreted"),
        pytest.param(True, NEPAL, False, id="ansi, Kathmandu, interpreted"),
        pytest.param(False, "UTC", True, id="not ansi, UTC", marks=pytest.mark.slow),
        pytest.param(True, AMERICA, True, id="ansi, New York", marks=pytest.mark.slow),
        pytest.param(False, AMERICA, True, id="not ansi, New York", marks=pytest.mark.slow),
    ],
)
def test_x4_spark_makes_every_vector(
    spark: SparkSession,
    tables: list[VectorTable],
    vectors: dict[int, Vector],
    ansi: bool,
    zone: str,
    compiled: bool,
) -> None:
    count, wrong = differences(in_mode(spark, ansi, zone, compiled), tables, vectors)
    assert count == len(vectors) >= 2_000
    assert wrong == []


@pytest.mark.slow
def test_x4_spark_makes_every_vector_in_a_turkish_locale(
    spark: SparkSession, tables: list[VectorTable], vectors: dict[int, Vector]
) -> None:
    with locale(spark, "tr", "TR"):
        count, wrong = differences(in_mode(spark, True, NEPAL), tables, vectors)
    assert (count, wrong) == (len(vectors), [])


@pytest.mark.parametrize("ansi", [True, False])
def test_values_at_the_edges_of_their_types_never_raise(spark: SparkSession, ansi: bool) -> None:
    session = in_mode(spark, ansi, AMERICA)
    types = {
        "a": "timestamp(us)", "b": "timestamp(us)", "c": "date", "d": "integer", "e": "decimal(30)",
        "f": "double(15)", "g": "uuid", "h": "string", "i": "decimal(2)",
    }  # fmt: skip
    columns = {
        "a": "timestamp_ntz", "b": "timestamp", "c": "date", "d": "bigint", "e": "decimal(38,0)",
        "f": "double", "g": "string", "h": "string", "i": "decimal(38,38)",
    }  # fmt: skip
    rows = session.sql(
        """SELECT TIMESTAMP_NTZ '-290308-12-21 19:59:05.224192' AS a, timestamp_micros(-9223372036854775808L) AS b,
             DATE '-9999-01-01' AS c, -9223372036854775808L AS d, CAST(repeat('9', 38) AS DECIMAL(38, 0)) AS e,
             DOUBLE('1.7976931348623157E308') AS f, 'no uuid; n;' AS g, CAST(X'FF00FE' AS STRING) AS h,
             CAST(concat('0.', repeat('9', 38)) AS DECIMAL(38, 38)) AS i
           UNION ALL SELECT CAST(NULL AS TIMESTAMP_NTZ), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL"""
    )
    contract = contract_of("edges", types)
    found = {row[0] for row in rows.selectExpr(row_hash_sql(contract, columns)).collect()}
    assert len(found) == 2
    assert row_hash(contract, dict.fromkeys(types)) in found
