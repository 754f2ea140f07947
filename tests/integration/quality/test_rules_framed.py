"""Framed JSON in Spark: read behind its five bytes; what has no frame is a dead letter, never an error."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pydantic import TypeAdapter
from tests.support.rule_tables import run_views

from headgate.core.kafka.schema_registry import framed
from headgate.declarations.errors import Declared
from headgate.quality.compile.file import compile_table
from headgate.quality.compile.resolve import JudgedTable, judged
from headgate.quality.spec.rule_set import RuleSet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULE = {"name": "negative", "when": "amount < 0"}
VALUES = {
    framed(1, b'{"id": "a", "amount": 1.5}'): None,
    framed(2**31 - 1, b'{"id": "b", "amount": -1}'): None,
    framed(1, b'{"amount": 1}'): "dq_missing_pk",
    framed(1, b""): "empty",
    framed(1, b"[1]"): "not_an_object",
    framed(1, b"\xff"): "not_utf8",
    b'{"id": "c", "amount": 1}': "not_framed",
    b"\x01\x00\x00\x00\x01{}": "not_framed",
    b"\x00\x00\x00\x01": "not_framed",
    b"\x00": "not_framed",
    b"": "not_framed",
}


def framed_table(*, framed_values: bool) -> JudgedTable:
    columns = {"id": "STRING", "amount": "DOUBLE"}
    source = {"topic": "t", "table": "framed_events", "columns": columns, "framed": framed_values}
    table = {"name": "framed", "pk": "id", "sources": {"onprem": source}, "rules": [RULE]}
    rules = TypeAdapter(RuleSet).validate_python({"version": 2, "tables": [table]})
    (found,) = judged(Declared(rules, "framed.yml", {}))
    return found


def script(*, framed_values: bool) -> str:
    return compile_table(framed_table(framed_values=framed_values), "framed.yml").text


@pytest.mark.parametrize("ansi", [True, False])
def test_each_value_is_a_row_or_a_dead_letter_with_its_reason(
    spark: SparkSession, ansi: bool
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    now = datetime(2024, 1, 1, tzinfo=UTC)
    records = [("t", 0, at, now, None, bytearray(v), None) for at, v in enumerate(VALUES)]
    shape = (
        "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY,"
        " headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    )
    session.createDataFrame(records, shape).createOrReplaceTempView("framed_events_source")
    run_views(session, framed_table(framed_values=True))
    found = session.sql("SELECT kafka_value, _reason_code FROM framed_events_read").collect()
    assert {bytes(row[0]): row[1] for row in found} == VALUES
    rows = session.sql("SELECT pk, dq_status FROM dq_results_framed ORDER BY pk").collect()
    assert [tuple(row) for row in rows] == [("a", "VALID"), ("b", "INVALID")]


def test_a_source_without_frames_is_compiled_as_ever() -> None:
    plain = script(framed_values=False)
    assert "'framed'" not in plain
    assert "'framed', 'true'" in script(framed_values=True)
