"""Tables of the lake judged by the compiled SQL: values that do not fit, masks, aggregates that change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.rule_files import load_rule_file
from tests.support.rule_tables import compile_script

from headgate.core.sql.script import Script
from headgate.quality.compile.resolve import JudgedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ONE = """\
version: 2
metrics: {namespace: dq.test, window: 1 HOUR}
tables:
  - name: one
    pk: id
    sources:
      onprem: {iceberg: a.a, table: t_a, event_time: at,
               columns: {id: {type: BIGINT, sensitive: %(hide)s}, action: STRING, amount: DOUBLE,
                         note: {type: STRING, sensitive: %(hide)s},
                         at: {type: TIMESTAMP(3), sensitive: %(hide)s}}}
    rules:
      - {name: gone, when: "action = 'DELETE'", on_fail: dead_letter}
      - {name: no_note, when: "note IS NULL"}
"""
SECRET = "secret-0815"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "id STRING, action STRING, amount STRING, note STRING, at TIMESTAMP, other STRING"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = spark.newSession()
    found.conf.set("spark.sql.shuffle.partitions", 2)
    yield found
    for name in ("batch_time", "batch_range", "closed_before", "batch_revision"):
        found.sql(f"DROP TEMPORARY VARIABLE IF EXISTS {name}")


def at(minute: int) -> datetime:
    return datetime(2024, 1, 1, 10, minute, tzinfo=UTC)


def row(
    key: str | None, action: str = "UPSERT", amount: str = "1", note: str | None = SECRET
) -> tuple[object, ...]:
    return (key, action, amount, note, at(5), "undeclared-4711")


ROWS = [row("1"), row("2", action="DELETE"), row("abc"), row("4", amount="much"), row(None)]


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
    """The table's views over these rows."""

    def __init__(self, session: SparkSession, folder: Path, hide: bool = False) -> None:
        text = ONE % {"hide": "true" if hide else "false"}
        self.session, self.table = session, load_rule_file(folder, text).tables[0]

    def bind(self, rows: Sequence[tuple[object, ...]]) -> Script:
        given(self.session, rows, COLUMNS).createOrReplaceTempView("t_a_source")
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
    for step in ("clock", "view", "partial view"):
        for statement in found.named(step):
            session.sql(statement)
    session.sql(f"SET VARIABLE batch_time = TIMESTAMP '{NOW.isoformat()}'")
    return found


def test_a_table_refuses_what_does_not_fit_and_letters_each_once(
    session: SparkSession, tmp_path: Path
) -> None:
    judged = Judged(session, tmp_path)
    found = judged.bind(ROWS)
    results = judged.rows("SELECT pk, dq_status, unix_seconds(event_time) FROM dq_results_one")
    assert sorted(results) == [
        ("1", "VALID", at(5).timestamp()),
        ("2", "INVALID", at(5).timestamp()),
    ]
    letters = sorted(letter[:2] for letter in judged.letters(found))
    unlike = "a field does not have its declared type"
    assert letters == [
        ("dq_gone", "gone"),
        ("dq_missing_pk", "the record has no key"),
        ("wrong_type", f"{unlike}; amount is no DOUBLE"),
        ("wrong_type", f"{unlike}; id is no BIGINT"),
    ]
    outcomes = dict(judged.rows(found.one("outcomes")))
    assert outcomes == {"accepted": 1, "refused": 3, "dead_letter": 1}
    assert sum(outcomes.values()) == len(ROWS)


def test_what_is_sensitive_is_shown_nowhere(session: SparkSession, tmp_path: Path) -> None:
    judged = Judged(session, tmp_path, hide=True)
    found = judged.bind([*ROWS, row("4711", action="DELETE")])
    results = judged.rows(
        "SELECT dq_status, pk, row, event_time = window_start FROM dq_results_one"
    )
    assert Counter(result[0] for result in results) == {"VALID": 1, "INVALID": 2}
    assert {result[3] for result in results} == {True}
    letters = judged.letters(found)
    assert len(letters) == 5
    shown = str(results) + str(letters)
    assert [text for text in (SECRET, "4711", '"abc"') if text in shown] == []
    newest = judged.rows("SELECT max(newest) = max(window_start) FROM dq_partials_one")
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
        inserted = scripts[-1].one("partials").partition("BY NAME\n")[2]
        partials = session.sql(f"SELECT * FROM ({inserted}) WHERE kind = 'aggregate'")
        kept = session.createDataFrame(partials.collect(), partials.schema)
        kept.createOrReplaceTempView(f"kept_{number}")
    (reading,) = [sql for sql in scripts[-1].named("reading") if ".dq_aggregates_summed" in sql]
    both = "(SELECT * FROM kept_0 UNION ALL SELECT * FROM kept_1)"
    query = reading.partition(" AS\n")[2].replace("lake.dq.partials_summed", both)
    said = {row.name: row.value for row in session.sql(query).collect()}
    assert said == {"revenue": 40.0, "spread": 1.0, "middle": 10.0, "rows": 4.0}
