"""The compiled SQL counts what independent SQL counts, for random rules, for many, in both ANSI modes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter
from tests.support.random_rules import COLUMNS, RandomRule, random_rows, random_rules
from tests.support.rule_tables import compile_script

from headgate.declarations.errors import Declared
from headgate.errors import DeclarationError
from headgate.quality.compile.resolve import JudgedTable, judged
from headgate.quality.spec.rule_set import RuleSet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 20240517
ANSI = "spark.sql.ansi.enabled"
ROWS = 2_000
_PLACE = re.compile(r"tables\[0\]\.rules\[(\d+)\]")


@dataclass(frozen=True)
class Counts:
    """How often each rule held and gave the status, and the totals of the severities."""

    held: Counter[str]
    given: Counter[str]
    totals: dict[str, int]


def rule_set(asked: Sequence[RandomRule]) -> Declared[RuleSet]:
    source = {"iceberg": "a.b", "table": "drawn", "columns": COLUMNS, "event_time": "moment"}
    table = {"name": "drawn", "pk": "id", "sources": {"onprem": source}}
    plain = {"version": 2, "tables": [{**table, "rules": [one.rule for one in asked]}]}
    return Declared(TypeAdapter(RuleSet).validate_python(plain), "drawn.yml", {})


def accepted(asked: list[RandomRule]) -> tuple[JudgedTable, list[RandomRule], list[RandomRule]]:
    """The judged table, its rules, and those that were refused because they can match no row."""
    try:
        return judged(rule_set(asked))[0], asked, []
    except DeclarationError as error:
        faults = error.faults
    places = {int(found[1]) for fault in faults if (found := _PLACE.match(fault.field or ""))}
    never = {
        int(found[1])
        for fault in faults
        if "can match no row" in fault.what and (found := _PLACE.match(fault.field or ""))
    }
    kept = [one for at, one in enumerate(asked) if at not in places]
    return judged(rule_set(kept))[0], kept, [asked[at] for at in sorted(never)]


def by_compiled_sql(spark: SparkSession, table: JudgedTable, rows: Path) -> Counts:
    script = compile_script(table)
    spark.read.parquet(str(rows)).createOrReplaceTempView("drawn_source")
    for step in ("clock", "view", "partial view"):
        for statement in script.named(step):
            spark.sql(statement)
    counted = (
        "SELECT kind, name, severity, sum(n), sum(matched) FROM dq_partials_drawn GROUP BY ALL"
    )
    held: Counter[str] = Counter()
    given: Counter[str] = Counter()
    for kind, name, _, n, times in spark.sql(counted).collect():
        if kind == "rule":
            held[name], given[name] = times, n
    totals = "sum(dq_error_total), sum(dq_warn_total), sum(dq_info_total)"
    (sums,) = spark.sql(f"SELECT {totals} FROM dq_metrics_drawn").collect()
    return Counts(+held, +given, dict(zip(("ERROR", "WARN", "INFO"), sums, strict=True)))


def by_independent_sql(asked: Sequence[RandomRule], rows: Path) -> Counts:
    """One COUNT_IF for each rule, and a CASE for the first: by DuckDB, from the test's own text."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute(f"CREATE TABLE drawn AS SELECT * FROM '{rows}'")
        each = ", ".join(f"count_if({one.bad})" for one in asked)
        counted = _one(db, f"SELECT {each} FROM drawn")
        first = " ".join(f"WHEN {one.bad} THEN {at}" for at, one in enumerate(asked))
        query = f"SELECT CASE {first} END AS at, count(*) FROM drawn GROUP BY 1"
        firsts = {at: n for at, n in db.execute(query).fetchall() if at is not None}
    names = [one.rule["name"] for one in asked]
    totals = {
        severity: sum(n for at, n in firsts.items() if asked[at].severity == severity)
        for severity in ("ERROR", "WARN", "INFO")
    }
    held = Counter(dict(zip(names, counted, strict=True)))
    return Counts(+held, Counter({names[at]: n for at, n in firsts.items()}), totals)


def _one(db: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    found = db.execute(query).fetchone()
    assert found
    return found


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    found = spark.newSession()
    yield found
    for name in ("batch_time", "batch_range", "closed_before", "batch_revision"):
        found.sql(f"DROP TEMPORARY VARIABLE IF EXISTS {name}")


def compared(session: SparkSession, folder: Path, seed: int, rules: int, *, ansi: bool) -> int:
    """How many rules were compared; a refused one must match no row."""
    print(f"seed {seed}, {rules} rules, ansi {ansi}")  # for whoever sees it fail
    draws = Random(seed)
    rows = folder / f"rows_{seed}.parquet"
    pq.write_table(random_rows(draws, ROWS), rows)
    table, kept, refused = accepted(random_rules(draws, rules))
    session.conf.set(ANSI, str(ansi).lower())
    assert by_compiled_sql(session, table, rows) == by_independent_sql(kept, rows)
    if refused:
        assert not by_independent_sql(refused, rows).held
    return len(kept)


@pytest.mark.parametrize("ansi", [True, False])
def test_counts_are_those_of_independent_sql(
    session: SparkSession, tmp_path: Path, ansi: bool
) -> None:
    assert compared(session, tmp_path, SEED + ansi, 60, ansi=ansi) > 50


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_counts_of_ten_thousand_rules_are_those_of_independent_sql(
    session: SparkSession, tmp_path: Path, part: int
) -> None:
    seeds = range(SEED + 100 * part, SEED + 100 * part + 10)
    done = [compared(session, tmp_path, seed, 108, ansi=seed % 2 == 0) for seed in seeds]
    assert sum(done) >= 1_000


@pytest.mark.slow
def test_a_thousand_rules_compile_and_run(session: SparkSession, tmp_path: Path) -> None:
    assert compared(session, tmp_path, SEED, 1_100, ansi=True) >= 1_000
