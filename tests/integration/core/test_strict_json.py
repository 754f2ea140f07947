"""strict_json and rule_verdict in a session: outcomes, errors, and how Spark plans them."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.dataset_events import events
from tests.support.hostile_records import KINDS
from tests.support.strict_json import (
    RecordCase,
    bind_records,
    mutate_records,
    read_cases,
    render_call,
)
from tests.support.strict_model import Expected, expect, same_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

SEED = 17
COLUMNS = {
    "id": "BIGINT",
    "at": "TIMESTAMP_NTZ",
    "seen": "TIMESTAMP",
    "name": "STRING",
    "amount": "DOUBLE",
    "price": "DECIMAL(10, 2)",
    "flag": "BOOLEAN",
    "n": "INT",
    "day": "DATE",
}
EVENT = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss",
}
VERDICT = """rule_verdict(
  'r0', 'S0', 'ERROR', 'why ' '0', n = 3,
  'r1', 'S1', 'WARN', 'why 1', n >= 2,
  'r2', NULL, 'INFO', 'why 2', n IN (1, 3)
)"""


def select_error(spark: SparkSession, expression: str) -> str:
    """The message with which the analysis of an expression ends."""
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as refused:
        spark.sql(f"SELECT {expression} FROM VALUES (X'7B7D', 'a INT') AS source (value, text)")
    return str(refused.value)


def plan_text(frame: DataFrame) -> str:
    java_frame: Any = frame._jdf
    return str(java_frame.queryExecution().executedPlan().toString())


def test_every_hostile_kind_has_its_documented_reason(spark: SparkSession) -> None:
    print(f"seed {SEED}")
    rng = Random(SEED)
    kinds = [kind for kind in KINDS for _ in range(1 if kind.is_large else 5)]
    bind_records(spark, "hostile", (kind.make(rng) for kind in kinds))
    rows = spark.sql(
        f"SELECT offset, record._reason_code AS code, record._reason AS reason"
        f" FROM (SELECT offset, {render_call(EVENT, TIMES)} AS record FROM hostile)"
    ).collect()
    codes = {row["offset"]: row["code"] for row in rows}
    expected = {number: kind.code or None for number, kind in enumerate(kinds)}
    # A record that was cut within a character is not UTF-8.
    wrong = {
        (kinds[number].name, code, codes[number])
        for number, code in expected.items()
        if codes[number] != code
    }
    assert wrong <= {("cut off", "not_json", "not_utf8")}
    assert all(row["reason"] for row in rows if row["code"])


def check_generated(spark: SparkSession, seed: int, count: int, drift: str) -> None:
    """Compare what strict_json makes of generated records with what the model expects."""
    print(f"seed {seed}")
    rng = Random(seed)
    small = [kind for kind in KINDS if not kind.is_large and "20,000" not in kind.name]
    values = [kind.make(rng) for kind in small for _ in range(count // 400)]
    values += events(seed, count // 5)
    values += mutate_records(rng, count - len(values))
    bind_records(spark, "generated", values)
    shown = ", ".join(f"CAST(record.{name} AS STRING) AS {name}" for name in COLUMNS)
    call = render_call(EVENT, {**TIMES, "drift": drift})
    rows = spark.sql(
        f"SELECT offset, record._reason_code, record._extra, record._missing, {shown}"
        f" FROM (SELECT offset, {call} AS record FROM generated)"
    ).collect()
    wrong = [
        (values[row["offset"]], row.asDict())
        for row in rows
        if not has_outcome(row, expect(values[row["offset"]], COLUMNS, drift == "refuse"))
    ]
    assert wrong == []
    assert len(rows) == count
    accepted = sum(row["_reason_code"] is None for row in rows)
    print(f"{count} records, {accepted} accepted")
    assert count / 5 < accepted < count * 4 / 5


def has_outcome(row: Row, expected: Expected) -> bool:
    found = {name: row[name] for name in expected.row}
    if found.get("amount"):
        # Java and Python write the same DOUBLE differently.
        found["amount"] = repr(float(found["amount"]))
    return (
        row["_reason_code"] == expected.code
        and found == expected.row
        and same_json(row["_extra"], expected.extra)
        and json.loads(row["_missing"] or "[]") == list(expected.missing)
    )


@pytest.mark.parametrize("drift", ["keep", "refuse"])
def test_generated_records_have_their_expected_outcome(spark: SparkSession, drift: str) -> None:
    check_generated(spark, SEED, 10_000, drift)


@pytest.mark.slow
@pytest.mark.parametrize("drift", ["keep", "refuse"])
def test_many_generated_records_have_too(spark: SparkSession, drift: str) -> None:
    for seed in range(5):
        check_generated(spark, 1_000 + seed, 20_000, drift)


def _group(case: RecordCase) -> tuple[str, str]:
    return case.columns, str(sorted(case.options.items()))


def test_sql_gives_the_rows_and_reasons_of_the_shared_cases(spark: SparkSession) -> None:
    wrong: list[str] = []
    for _, group in groupby(sorted(read_cases(), key=_group), key=_group):
        cases = list(group)
        bind_records(spark, "cases", (case.value for case in cases))
        call = render_call(cases[0].columns, cases[0].options)
        rows = spark.sql(f"SELECT offset, {call} AS record FROM cases").collect()
        for row in rows:
            case, record = cases[row["offset"]], row["record"]
            if case.code is not None:
                same = record["_reason_code"] == case.code
                same = same and record["_reason"] == (case.reason or record["_reason"])
            else:
                present = {name for name in record.__fields__ if record[name] is not None}
                same = case.row is not None and present == set(case.row)
            if not same:
                wrong.append(f"{case.name}: {record}")
    assert wrong == []


def test_arguments_that_cannot_be_used_are_named_in_an_error_of_the_analysis(
    spark: SparkSession,
) -> None:
    def error(arguments: str) -> str:
        return select_error(spark, f"strict_json({arguments})")

    assert (
        "options in strict_json is invalid: there is no option 'drfit'; the options are casts, dateFormat, drift"
        in error("value, 'a INT', map('drfit', 'keep')")
    )
    assert "columns in strict_json is invalid: it must be a literal" in error("value, text")
    assert "options in strict_json is invalid: it must be a literal" in error(
        "value, 'a INT', map('drift', text)"
    )
    assert "must be a map of texts" in error("value, 'a INT', map('framed', 1)")
    assert "drift must not be NULL" in error("value, 'a INT', map('drift', CAST(NULL AS STRING))")
    assert "they are not DDL such as" in error("value, 'a BIGIN'")
    assert "it takes two or three" in error("value")
    assert "requires the" in error("5, 'a INT'")

    def verdict_error(arguments: str) -> str:
        return select_error(spark, f"rule_verdict({arguments})")

    assert "a rule takes five of them, and there are 4" in verdict_error("'a', 'b', 'c', 'd'")
    assert "status in rule_verdict is invalid: that of rule 2 must be a text literal" in (
        verdict_error("'a', 'b', 'c', 'd', TRUE, 'e', text, 'c', 'd', TRUE")
    )
    assert "reason in rule_verdict is invalid: that of rule 1 must be a text literal, not 5" in (
        verdict_error("'a', 'b', 'c', 5, TRUE")
    )
    assert "that of rule 1 must not be NULL" in verdict_error("NULL, 'b', 'c', 'd', TRUE")
    assert "there are two rules a" in verdict_error(
        "'a', 'b', 'c', 'd', 1 = 1, 'a', 'x', 'y', 'z', 1 = 2"
    )
    assert "that of the rule a must be BOOLEAN, not STRING" in verdict_error(
        "'a', 'b', 'c', 'd', text"
    )
    assert "that of the rule a is not deterministic" in verdict_error(
        "'a', 'b', 'c', 'd', rand() < 1"
    )


def test_a_tombstone_has_no_row(spark: SparkSession) -> None:
    rows = spark.sql("SELECT strict_json(CAST(NULL AS BINARY), 'a INT') AS record").collect()
    assert [row["record"] for row in rows] == [None]


def test_each_record_is_read_once_in_one_whole_stage(spark: SparkSession, tmp_path: Path) -> None:
    """Were the call deterministic to Spark, it would be copied below the filter and into each field."""
    path = str(tmp_path / "stored.parquet")
    spark.range(10).selectExpr("CAST(to_json(struct(id)) AS BINARY) AS value").write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("stored")
    accepted = spark.sql(
        "SELECT record.id + 1 AS id, record._extra, record._missing"
        f" FROM (SELECT {render_call('id BIGINT, b INT', {})} AS record FROM stored)"
        " WHERE record._reason_code IS NULL AND record.id > 3"
    )
    assert accepted.count() == 6
    plan = plan_text(accepted)
    assert plan.count("strict_json with 2 columns") == 1
    assert (plan.count("*(1) Project"), plan.count("*(1) Filter")) == (2, 1)
    assert len(re.findall(r"\b(?:Project|Filter) ", plan)) == 3


def test_the_same_call_gives_the_same_plan(spark: SparkSession) -> None:
    bind_records(spark, "again", [b'{"id":1}'])
    query = f"SELECT {render_call('id BIGINT', {'drift': 'keep'})} AS record FROM again"
    first, second = spark.sql(query), spark.sql(query)
    assert first.sameSemantics(second)
    assert first.semanticHash() == second.semanticHash()


def test_a_verdict_has_the_first_rule_and_the_names_of_all(spark: SparkSession) -> None:
    rows = "VALUES (0), (1), (2), (3), (CAST(NULL AS INT)) AS rows (n)"
    verdicts = spark.sql(f"SELECT verdict.* FROM (SELECT {VERDICT} AS verdict FROM {rows})")
    assert verdicts.columns == ["status", "reason", "severity", "rules"]
    assert [tuple(row) for row in verdicts.collect()] == [
        (None, None, None, None),
        (None, "why 2", "INFO", ["r2"]),
        ("S1", "why 1", "WARN", ["r1"]),
        ("S0", "why 0", "ERROR", ["r0", "r1", "r2"]),
        (None, None, None, None),
    ]


def test_a_verdict_of_no_rules_is_null(spark: SparkSession) -> None:
    (row,) = spark.sql(
        "SELECT rule_verdict() AS none, rule_verdict('a', 'b', 'c', 'd', NULL) AS null"
    ).collect()
    assert tuple(row) == (None, None)
