"""The rows of the shipped rule tests, judged by the compiled SQL: the same as `rules test` says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.rule_tables import run_views

from headgate.quality.compile.resolve import JudgedTable, load_judged
from headgate.quality.evaluator import RowVerdict, completed, judge_row, row_values
from headgate.quality.spec.rule_checks import VERDICT_PREFIX
from headgate.quality.spec.rule_tests import RuleTests, load_tests, rule_tests_beside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
KAFKA = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
Given = Mapping[str, Any]


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = spark.newSession()
    yield found
    for name in ("batch_time", "batch_range", "closed_before", "batch_revision"):
        found.sql(f"DROP TEMPORARY VARIABLE IF EXISTS {name}")


def declared(file: str, table: str) -> tuple[JudgedTable, RuleTests]:
    """The table without `unique` rules: what came before a row is not asked here."""
    path = ROOT / file
    judged = load_judged(path, {"TOPIC": "x"})
    tests = load_tests(rule_tests_beside(path), tuple(t.table.name for t in judged.tables)).value
    one = next(t for t in judged.tables if t.table.name == table)
    return replace(one, rules=tuple(rule for rule in one.rules if not rule.unique)), tests


def given_rows(judged: JudgedTable, tests: RuleTests) -> list[Given]:
    """Every row that the tests give, each with a key of its own where rows are joined by key."""
    name, pk = judged.table.name, judged.table.pk
    rows = [
        completed(judged, tests.defaults.get(name, {}), row)
        for test in tests.tests
        if test.table in (None, name)
        for row in test.given
    ]
    if not judged.table.is_pair:
        return [*rows]
    return [
        {side: {**fields, pk: f"K{at}"} for side, fields in row.items()}
        for at, row in enumerate(rows)
    ]


def put(session: SparkSession, view: str, records: Sequence[tuple[int, Given]]) -> None:
    now = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [("t", 0, at, now, None, json.dumps(value).encode(), None) for at, value in records]
    session.createDataFrame(rows, KAFKA).createOrReplaceTempView(f"{view}_source")


def by_spark(
    session: SparkSession, judged: JudgedTable, rows: Sequence[Given], now: datetime
) -> dict[str, tuple[str, str, tuple[str, ...], str | None]]:
    """Status, reason, rules and severity by key, or by offset where there is one source."""
    table = judged.table
    for side, source in table.sources.items():
        sent = [
            (at, row[side] if table.is_pair else row)
            for at, row in enumerate(rows)
            if not table.is_pair or side in row
        ]
        put(session, source.table, sent)
    run_views(session, judged)
    session.sql(f"SET VARIABLE batch_time = TIMESTAMP_LTZ '{now.isoformat(' ')}'")
    by = "pk" if table.is_pair else "CAST(kafka_offset AS STRING)"
    columns = f"{by}, dq_status, dq_reason, dq_rules, dq_severity"
    found = session.sql(f"SELECT {columns} FROM dq_results_{table.name}").collect()
    return {
        key: (
            status,
            why,
            tuple(name for name in rules or () if not name.startswith(VERDICT_PREFIX)),
            severity,
        )
        for key, status, why, rules, severity in found
    }


def by_twin(judged: JudgedTable, row: Given, now: datetime) -> RowVerdict:
    return judge_row(judged, row_values(judged, row), now)


@pytest.mark.parametrize(
    ("file", "table"),
    [("rules.yaml", "customer"), ("rules/taxi.yml", "taxi")],
)
def test_rows_of_rule_tests_are_judged_alike(session: SparkSession, file: str, table: str) -> None:
    judged, tests = declared(file, table)
    rows = given_rows(judged, tests)
    found = by_spark(session, judged, rows, tests.batch_time)
    wanted = {
        f"K{at}" if judged.table.is_pair else str(at): (v.status, v.reason, v.rules, v.severity)
        for at, row in enumerate(rows)
        for v in [by_twin(judged, row, tests.batch_time)]
    }
    assert len(wanted) >= 3
    assert found == wanted
