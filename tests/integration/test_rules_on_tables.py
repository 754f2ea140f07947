"""Tables of the lake judged by the compiled SQL: a pair of them, values that do not fit, masks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.rule_files import load_rule_file
from tests.support.rule_tables import compile_script

from headgate.compile.rules.model import JudgedTable
from headgate.compile.script import Script

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAIR = """\
version: 2
metrics: {namespace: dq.test, window: 1 HOUR}
tables:
  - name: both
    pk: id
    sources:
      onprem: {iceberg: a.a, table: t_a, event_time: at,
               columns: {id: BIGINT, action: STRING, amount: DOUBLE, h1: STRING, at: TIMESTAMP(3)}}
      cloud: {iceberg: a.b, table: t_b, event_time: at,
              columns: {id: {type: BIGINT, sensitive: %(hide)s}, h2: {type: STRING, sensitive: %(hide)s},
                        at: {type: TIMESTAMP(3), sensitive: %(hide)s}}}
    hash: {onprem_field: h1, cloud_field: h2}
    rules:
      - {name: gone, when: "{t1}.action = 'DELETE'", on_fail: dead_letter}
"""
ONE, TWO, THREE = "a" * 64, "b" * 64, "c" * 64
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONPREM = "id STRING, action STRING, amount STRING, h1 STRING, at TIMESTAMP, note STRING"
CLOUD = "id STRING, h2 STRING, at TIMESTAMP"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = spark.newSession()
    found.conf.set("spark.sql.shuffle.partitions", 2)
    yield found
    for name in ("batch_time", "batch_range", "closed_before", "batch_revision"):
        found.sql(f"DROP TEMPORARY VARIABLE IF EXISTS {name}")


def at(minute: int) -> datetime:
    return datetime(2024, 1, 1, 10, minute, tzinfo=UTC)


def onprem(
    key: str | None, text: str, time: datetime | None, action: str = "UPSERT", amount: str = "1"
) -> tuple[object, ...]:
    return (key, action, amount, text, time, "undeclared-4711")


HERE = [
    onprem("1", THREE, None),
    onprem("1", ONE, at(5)),
    onprem("1", TWO, at(5)),
    onprem("2", ONE, at(1), action="DELETE"),
    onprem("abc", ONE, at(1)),
    onprem("4", ONE, at(1), amount="much"),
    onprem(None, ONE, at(1)),
]
THERE = [("1", TWO, at(9)), ("2", ONE, at(9)), ("3", ONE, at(7))]


def given(session: SparkSession, rows: Sequence[tuple[object, ...]], kinds: str) -> DataFrame:
    """The rows as literals: nothing has to be sent to a worker for them."""
    columns = [column.split() for column in kinds.split(", ")]
    typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in columns)
    texts = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    names = ", ".join(name for name, _ in columns)
    return session.sql(f"SELECT {typed} FROM VALUES {texts} AS given ({names})")


def _literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"


class Judged:
    """The pair's views over these rows."""

    def __init__(self, session: SparkSession, folder: Path, hide: bool = False) -> None:
        text = PAIR % {"hide": "true" if hide else "false"}
        self.session, self.table = session, load_rule_file(folder, text).tables[0]

    def bind(
        self, here: Sequence[tuple[object, ...]], there: Sequence[tuple[object, ...]]
    ) -> Script:
        for view, rows, kinds in (("t_a", here, ONPREM), ("t_b", there, CLOUD)):
            given(self.session, rows, kinds).createOrReplaceTempView(f"{view}_source")
        return bound(self.session, self.table)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.session.sql(query).collect()]

    def letters(self, found: Script) -> list[tuple[Any, ...]]:
        refused = found.one("refuse").partition("BY NAME\n")[2]
        return self.rows(
            f"SELECT reason_code, reason, CAST(kafka_value AS STRING) FROM ({refused})"
        )


def bound(session: SparkSession, judged: JudgedTable) -> Script:
    found = compile_script(judged)
    for step in ("clock", "revision", "view", "partial view"):
        for statement in found.named(step):
            session.sql(statement)
    session.sql(f"SET VARIABLE batch_time = TIMESTAMP '{NOW.isoformat()}'")
    return found


def test_a_pair_of_tables_refuses_what_does_not_fit_and_letters_each_once(
    session: SparkSession, tmp_path: Path
) -> None:
    judged = Judged(session, tmp_path)
    found = judged.bind(HERE, THERE)
    said = "pk, dq_status, hash_onprem, unix_seconds(event_time)"
    assert Counter(judged.rows(f"SELECT {said} FROM dq_results_both")) == Counter(
        [
            ("1", "MATCH", TWO, at(5).timestamp()),
            ("2", "INVALID", ONE, at(1).timestamp()),
            ("3", "MISSING_ONPREM", None, at(7).timestamp()),
        ]
    )
    letters = sorted(letter[:2] for letter in judged.letters(found))
    unlike = "a field does not have its declared type"
    assert letters == [
        ("dq_gone", "gone"),
        ("dq_missing_pk", "the record has no key"),
        ("wrong_type", f"{unlike}; amount is no DOUBLE"),
        ("wrong_type", f"{unlike}; id is no BIGINT"),
    ]
    outcomes = dict(judged.rows(found.one("outcomes")))
    assert outcomes == {"newest": 4, "superseded": 2, "refused": 3, "dead_letter": 1}
    assert sum(outcomes.values()) == len(HERE) + len(THERE)

    judged.bind(HERE[::-1], THERE[::-1])
    assert judged.rows("SELECT hash_onprem FROM dq_results_both WHERE pk = '1'") == [(TWO,)]


def test_what_is_sensitive_on_either_side_is_shown_nowhere(
    session: SparkSession, tmp_path: Path
) -> None:
    judged = Judged(session, tmp_path, hide=True)
    found = judged.bind([*HERE, onprem("4711", THREE, at(1), action="DELETE")], THERE)
    results = judged.rows(
        "SELECT dq_status, pk, hash_onprem, hash_cloud, row, event_time = window_start"
        " FROM dq_results_both"
    )
    assert Counter(row[0] for row in results) == {"MATCH": 1, "INVALID": 2, "MISSING_ONPREM": 1}
    assert {row[2] for row in results} == {"***", None}
    assert {row[5] for row in results} == {True}
    letters = judged.letters(found)
    assert len(letters) == 5
    shown = str(results) + str(letters)
    assert [text for text in (ONE, TWO, THREE, "4711", '"abc"') if text in shown] == []
    newest = judged.rows("SELECT max(newest) = max(window_start) FROM dq_partials_both")
    assert newest == [(True,)]


AGGREGATED = """\
version: 2
metrics: {namespace: dq.test, window: 1 HOUR}
tables:
  - name: summed
    pk: id
    sources:
      onprem: {iceberg: a.a, table: t_s, event_time: at,
               columns: {id: STRING, fare: DOUBLE, total: DOUBLE, vendor: STRING, at: TIMESTAMP(3)}}
    aggregates:
%s
"""
BEFORE = (
    "{name: revenue, measure: sum, field: fare, min: 0}",
    "{name: spread, measure: distinct_count, field: fare, max: 100}",
    "{name: middle, measure: quantile, field: fare, quantile: 0.5, max: 50}",
    "{name: rows, measure: row_count, min: 2}",
)
AFTER = (
    "{name: revenue, measure: sum, field: total, min: 0}",
    "{name: spread, measure: quantile, field: fare, quantile: 0.5, max: 100}",
    "{name: middle, measure: quantile, field: total, quantile: 0.5, max: 50}",
    "{name: rows, measure: row_count, min: 3}",
)


def test_partials_of_a_changed_aggregate_are_not_merged_with_its_new_ones(
    session: SparkSession, tmp_path: Path
) -> None:
    kinds = "id STRING, fare DOUBLE, total DOUBLE, vendor STRING, at TIMESTAMP"
    rows = [("a", 1.0, 10.0, "v", at(1)), ("b", 3.0, 30.0, "w", at(2))]
    given(session, rows, kinds).createOrReplaceTempView("t_s_source")
    scripts: list[Script] = []
    for number, aggregates in enumerate((BEFORE, AFTER)):
        lines = "\n".join(f"      - {aggregate}" for aggregate in aggregates)
        scripts.append(bound(session, load_rule_file(tmp_path, AGGREGATED % lines).tables[0]))
        partials = session.table("dq_aggregate_partials_summed")
        kept = session.createDataFrame(partials.collect(), partials.schema)
        kept.createOrReplaceTempView(f"kept_{number}")
    (reading,) = [sql for sql in scripts[-1].named("reading") if ".dq_aggregates_summed" in sql]
    both = "(SELECT * FROM kept_0 UNION ALL SELECT * FROM kept_1)"
    query = reading.partition(" AS\n")[2].replace("lake.dq.partials_summed", both)
    said = {row.name: row.value for row in session.sql(query).collect()}
    assert said == {"revenue": 40.0, "spread": 1.0, "middle": 10.0, "rows": 4.0}
