"""A row is one too many by the rows before it, however the topic is cut; the twin says the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.support.rule_tables import LAKE, TOPIC, compile_script, load_rule_table

from headgate.core.sql.script import Script
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.evaluator import judge_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEED = 20240601
START = datetime(2024, 1, 1, tzinfo=UTC)
HORIZON = timedelta(seconds=5)
RULE = "{name: twice, type: unique, fields: [amount], horizon: 5 SECONDS}"
KEYS = "rule STRING, key STRING, event_time TIMESTAMP, batch_time TIMESTAMP"
KAFKA = (
    "'t' AS topic, 0 AS partition, CAST(at AS BIGINT) AS offset, TIMESTAMP '2024-01-01' AS timestamp,"
    " CAST(NULL AS BINARY) AS key, CAST(value AS BINARY) AS value,"
    " CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers"
)
Row = tuple[float | None, float]  # the amount, which is the key, and the second


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = spark.newSession()
    found.conf.set("spark.sql.shuffle.partitions", 2)
    yield found
    for name in ("batch_time", "batch_range", "closed_before", "batch_revision"):
        found.sql(f"DROP TEMPORARY VARIABLE IF EXISTS {name}")


def drawn(count: int) -> list[Row]:
    """Few keys, some of none, in no order of time."""
    rng = Random(SEED)
    print(f"seed {SEED}")
    return [(rng.choice([None, 1.0, 2.0, 3.0]), float(rng.randrange(60))) for _ in range(count)]


def time_of(row: Row) -> datetime:
    return START + timedelta(seconds=row[1])


def wanted(rows: Sequence[Row]) -> list[bool]:
    """By comparing each row with every row before it."""
    return [
        row[0] is not None
        and any(row[0] == other[0] and abs(row[1] - other[1]) <= 5 for other in rows[:place])
        for place, row in enumerate(rows)
    ]


def by_twin(judged: JudgedTable, rows: Sequence[Row]) -> list[bool]:
    values = [{"id": "x", "amount": row[0], "at": time_of(row)} for row in rows]
    return [bool(verdict.rules) for verdict in judge_rows(judged, values, START)]


def bound(session: SparkSession, judged: JudgedTable, source: DataFrame, time: datetime) -> Script:
    """The file's views over these rows; keys of earlier batches stand in a view."""
    found = compile_script(judged)
    source.createOrReplaceTempView("things_seen_source")
    for step in ("clock", "revision", "view"):
        for statement in found.named(step):
            session.sql(statement.replace("lake.dq.keys_things", "earlier_keys"))
    session.sql(f"SET VARIABLE batch_time = TIMESTAMP '{time.isoformat()}'")
    return found


class Batches:
    """Batches of one partition, each judged with the keys of those before."""

    def __init__(self, session: SparkSession, judged: JudgedTable, count: int) -> None:
        self.session, self.judged, self.count = session, judged, count
        self.keys: list[tuple[object, ...]] = []

    def judge(self, rows: Sequence[Row], first: int) -> list[bool]:
        sent = [(first + place, row) for place, row in enumerate(rows)]
        records = ", ".join(f"({at}, '{_value(at, row)}')" for at, row in sent)
        self.session.createDataFrame(self.keys, KEYS).createOrReplaceTempView("earlier_keys")
        source = self.session.sql(f"SELECT {KAFKA} FROM VALUES {records} AS sent (at, value)")
        found = bound(self.session, self.judged, source, START + timedelta(days=first + 1))
        query = "SELECT kafka_offset, dq_rules FROM dq_results_things"
        said = {row[0]: bool(row[1]) for row in self.session.sql(query).collect()}
        if first + len(rows) == self.count:
            return [said[at] for at, _ in sent]
        remembered = found.one("keys").partition("BY NAME\n")[2]
        columns = "rule, key, event_time, batch_time"
        self.keys += map(tuple, self.session.sql(f"SELECT {columns} FROM ({remembered})").collect())
        return [said[at] for at, _ in sent]


def _value(at: int, row: Row) -> str:
    return json.dumps({"id": f"k{at}", "amount": row[0], "at": time_of(row).isoformat()})


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "cuts", [[0, 80], pytest.param([0], marks=SLOW), pytest.param([0, 7, 8, 120], marks=SLOW)]
)
def test_the_rows_before_decide_wherever_the_topic_is_cut(
    session: SparkSession, tmp_path: Path, cuts: list[int]
) -> None:
    judged, rows = load_rule_table(tmp_path, RULE, TOPIC), drawn(150)
    batches, said = Batches(session, judged, len(rows)), list[bool]()
    for start, end in zip(cuts, [*cuts[1:], len(rows)], strict=True):
        said += batches.judge(rows[start:end], start)
    assert said == wanted(rows) == by_twin(judged, rows)
    assert 10 < sum(said) < len(rows)


def test_the_rows_of_a_table_are_taken_in_the_order_of_time(
    session: SparkSession, tmp_path: Path
) -> None:
    judged, rows = load_rule_table(tmp_path, RULE, LAKE), drawn(150)
    given = [(f"k{at}", "n", row[0], time_of(row)) for at, row in enumerate(rows)]
    source = session.createDataFrame(given, "id STRING, name STRING, amount DOUBLE, at TIMESTAMP")
    bound(session, judged, source, START)
    query = "SELECT dq_rules IS NOT NULL, count(*) FROM dq_results_things GROUP BY ALL"
    found = dict(map(tuple, session.sql(query).collect()))
    expected = sum(wanted(sorted(rows, key=lambda row: row[1])))
    assert found == {True: expected, False: len(rows) - expected}
    assert sum(by_twin(judged, rows)) == expected
