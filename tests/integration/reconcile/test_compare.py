"""Two tables compared on Spark: exact with and without a key, by sums, and in one pass."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from headgate.cli.main import cli
from headgate.config.reference import MASK
from headgate.core.sql.script import parse_script
from headgate.errors import HeadgateError
from headgate.reconcile.table_compare.plan import Asked, Plan, plan
from headgate.reconcile.table_compare.results import (
    TablesReport,
    tables_report,
    tables_text,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
AT = datetime(2024, 1, 1, 10, tzinfo=UTC)
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "amount": pa.decimal128(12, 2),
        "score": pa.float64(),
        "at": pa.timestamp("us", tz="UTC"),
        "tags": pa.list_(pa.string()),
    }
)
NAMES = ("name", "amount", "score", "at", "tags")
TRAPS: dict[str, Sequence[object]] = {
    "name": (None, "", "null", "a|b", "é", "e\u0301", "A", "a", "a "),
    "amount": (None, Decimal("1.50"), Decimal("-0.01"), Decimal(0)),
    "score": (None, 0.0, -0.0, math.nan, math.inf, 1e300, 0.1, 0.1 + 0.2),
    "at": (None, AT, AT + timedelta(microseconds=1), AT.replace(year=1969)),
    "tags": (None, [], ["a"], ["a", None], ["a", "b"]),
}
Row = dict[str, Any]


def written(file: Path, rows: Sequence[Row], schema: pa.Schema = SCHEMA) -> str:
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), file)
    return str(file)


def random_row(draws: Random, key: int | None) -> Row:
    return {"id": key, **{name: draws.choice(values) for name, values in TRAPS.items()}}


def planned(spark: SparkSession, left: str, right: str, **asked: Any) -> Plan:
    from headgate.reconcile.table_compare.run import open_table

    return plan(open_table(spark, left), open_table(spark, right), Asked(**asked))


def compared(spark: SparkSession, left: str, right: str, **asked: Any) -> TablesReport:
    from headgate.reconcile.table_compare.run import Comparison

    return tables_report(Comparison(spark, planned(spark, left, right, **asked)).run())


def same(a: object, b: object) -> bool:
    return repr(canonical(a)) == repr(canonical(b))


def canonical(value: object) -> object:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def verdicts(left: Sequence[Row], right: Sequence[Row]) -> tuple[Counter[str], Counter[str]]:
    """By hand, for keys that stand once: the statuses, and the columns that differ."""
    onprem, cloud = ({row["id"]: row for row in rows} for rows in (left, right))
    statuses, columns = Counter[str](), Counter[str]()
    for key in onprem.keys() | cloud.keys():
        if key not in cloud or key not in onprem:
            statuses["MISSING_CLOUD" if key in onprem else "MISSING_ONPREM"] += 1
            continue
        differing = [n for n in NAMES if not same(onprem[key][n], cloud[key][n])]
        statuses["MISMATCH" if differing else "MATCH"] += 1
        columns.update(differing)
    return statuses, columns


def found(report: TablesReport) -> tuple[Mapping[str, int], Mapping[str, int]]:
    return {k: n for k, n in report.statuses.items() if n}, {
        k: n for k, n in report.columns.items() if n
    }


@pytest.mark.parametrize("few", [10_000, 5], ids=["few", "many"])
def test_every_status_and_column_count_is_that_of_a_comparison_by_hand(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr("headgate.reconcile.table_compare.run.FEW", few)
    draws = Random(6)
    keys = [None, *range(1_000)]
    left = [random_row(draws, key) for key in keys if key != 3]
    right = [
        random_row(draws, row["id"]) if draws.random() < 0.3 else dict(row)
        for row in left
        if row["id"] != 5
    ]
    right += [random_row(draws, key) for key in (3, 2_000)]
    draws.shuffle(right)
    report = compared(
        spark,
        written(tmp_path / "a.parquet", left),
        written(tmp_path / "b.parquet", right),
        key=("id",),
    )
    assert found(report) == tuple(map(dict, verdicts(left, right)))
    assert report.rows == {"onprem": len(left), "cloud": len(right)}
    assert report.rollup["missing"] == 3
    assert sum(report.statuses.values()) == len(keys) + 1
    shown = [sample.key["id"] for sample in report.samples if sample.status == "MISMATCH"]
    assert shown == sorted(shown, key=lambda key: (key is not None, int(key or 0)))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_equal_values_of_other_types_match_and_what_was_assumed_is_said(
    spark: SparkSession, tmp_path: Path, ansi: str
) -> None:
    same = {"n": Decimal("1.5"), "x": 0.0, "at": AT, "m": [("a", 1), ("b", 2)]}
    other = {"n": same["n"], "x": -0.0, "at": AT.replace(tzinfo=None), "m": [("b", 2), ("a", 1)]}
    # No DECIMAL holds the digits of both columns.
    big = Decimal("12345678901234567890123456789012345678")
    wide = (big, Decimal(7), Decimal(7), None, Decimal(0), Decimal(-1), Decimal(0))
    fine = (
        Decimal("0.5"),
        Decimal("7.00"),
        Decimal("7.1"),
        None,
        Decimal(0),
        Decimal(-1),
        Decimal("0.0000000000000000000000000000000000001"),
    )
    left = [{"id": at, "wide": n, **same} for at, n in enumerate(wide)]
    right = [{"id": at, "wide": n, **other} for at, n in enumerate(fine)]
    maps = pa.map_(pa.string(), pa.int32())
    a = pa.schema(
        {
            "id": pa.int32(),
            "wide": pa.decimal128(38, 0),
            "n": pa.decimal128(5, 1),
            "x": pa.float64(),
            "at": pa.timestamp("us", tz="UTC"),
            "m": maps,
        }
    )
    b = pa.schema(
        {
            "id": pa.int64(),
            "wide": pa.decimal128(38, 37),
            "n": pa.decimal128(38, 4),
            "x": pa.float64(),
            "at": pa.timestamp("us"),
            "m": maps,
        }
    )
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    report = compared(
        session,
        written(tmp_path / "a.parquet", left, a),
        written(tmp_path / "b.parquet", right, b),
        key=("id",),
    )
    assert found(report) == ({"MATCH": 4, "MISMATCH": 3}, {"wide": 3})
    assert report.notes == ("at: a time without a zone is taken as UTC",)


def test_keys_that_repeat_are_judged_by_all_their_rows_and_said(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = pa.schema({"id": pa.int64(), "a": pa.int64(), "b": pa.string()})

    def rows(*values: tuple[int | None, int | None, str]) -> list[Row]:
        return [{"id": key, "a": a, "b": b} for key, a, b in values]

    left = rows(
        (1, 1, "x"), (1, 2, "y"),  # the same two rows in another order
        (2, 1, "x"), (2, 1, "x"),  # once only in the cloud
        (3, 1, "x"), (3, 2, "y"),  # the same values, put together otherwise
        (4, 1, "x"), (4, 1, "x"),  # not in the cloud
        (5, 1, "x"),  # stands once, and matches
        (None, 1, "x"),
    )  # fmt: skip
    right = rows(
        (1, 2, "y"), (1, 1, "x"), (2, 1, "x"), (3, 1, "y"), (3, 2, "x"), (5, 1, "x"),
        (6, None, "z"), (6, 1, "z"), (None, 1, "x"), (None, 1, "y"),
    )  # fmt: skip
    report = compared(
        spark,
        written(tmp_path / "a.parquet", left, schema),
        written(tmp_path / "b.parquet", right, schema),
        key=("id",),
    )
    assert found(report) == (
        {"MATCH": 2, "MISMATCH": 3, "MISSING_CLOUD": 1, "MISSING_ONPREM": 1},
        {"a": 2, "b": 2, "(rows together)": 1},
    )
    assert (report.repeated.onprem, report.repeated.cloud) == (4, 4)
    assert "keys that repeat: 4 on-prem, 4 in the cloud" in tables_text(report)


def test_without_a_key_rows_are_counted_as_multisets(spark: SparkSession, tmp_path: Path) -> None:
    draws = Random(7)
    left = [random_row(draws, draws.randrange(2)) for _ in range(600)]
    right = [*draws.sample(left, 500), *(random_row(draws, 9) for _ in range(30)), left[0]]
    for row in left[:40]:
        row["score"] = -0.0
    report = compared(
        spark, written(tmp_path / "a.parquet", left), written(tmp_path / "b.parquet", right)
    )
    a, b = (
        Counter(repr([canonical(v) for v in r.values()]) for r in rows) for rows in (left, right)
    )
    assert report.statuses == {
        "MATCH": (a & b).total(),
        "MISMATCH": 0,
        "MISSING_CLOUD": (a - b).total(),
        "MISSING_ONPREM": (b - a).total(),
    }
    assert report.rows == {"onprem": 600, "cloud": 531}


@pytest.mark.parametrize(
    "key", [("id",), pytest.param((), marks=pytest.mark.slow)], ids=["keyed", "unkeyed"]
)
def test_sides_at_two_places_are_compared_by_sums_and_few_rows_are_fetched(
    spark: SparkSession, tmp_path: Path, key: tuple[str, ...]
) -> None:
    from headgate.reconcile.table_compare.sums_run import SparkPlace, SumsComparison

    draws = Random(8)
    left = [random_row(draws, at) for at in range(2_000)]
    right = [dict(row) for row in left if row["id"] != 77]
    right[500] |= {"name": "another"}
    draws.shuffle(right)
    names = written(tmp_path / "a.parquet", left), written(tmp_path / "b.parquet", right)
    asked = planned(spark, *names, key=key)
    fetched: list[int] = []

    class Counting(SparkPlace):
        def rows(self, segments: tuple[int, ...]) -> Any:
            rows = super().rows(segments)
            fetched.append(rows.num_rows)
            return rows

    # Sessions of their own: neither side sees the other's views.
    places = (
        Counting(spark.newSession(), asked, "onprem", 256),
        Counting(spark.newSession(), asked, "cloud", 256),
    )
    report = tables_report(SumsComparison(spark, asked, 10, places, 256).run())
    direct = compared(spark, *names, key=key)
    assert (report.statuses, report.rows) == (direct.statuses, direct.rows)
    assert {k: n for k, n in report.columns.items() if n} == ({"name": 1} if key else {})
    assert sum(fetched) < 100
    assert not report.same


@pytest.mark.slow
def test_equal_sums_fetch_nothing(spark: SparkSession, tmp_path: Path) -> None:
    from headgate.reconcile.table_compare.sums_run import SumsComparison

    draws = Random(9)
    rows = [random_row(draws, at % 50) for at in range(100)]
    left = written(tmp_path / "a.parquet", rows)
    right = written(tmp_path / "b.parquet", rows[::-1])
    report = tables_report(SumsComparison(spark, planned(spark, left, right, key=("id",))).run())
    assert report.same
    assert report.statuses["MATCH"] == 50
    assert report.notes == (
        "0 of 1,024 segments differed and were fetched",
        "50 more rows than keys in the others",
    )


def test_tolerances_ignored_and_renamed_columns_hold_only_as_declared(
    spark: SparkSession, tmp_path: Path
) -> None:
    left = [
        {"id": at, "x": x, "n": 2**63 - 1, "at": AT, "loaded": at}
        for at, x in enumerate((1.0, 1.0, None, math.nan))
    ]
    right = [
        {"id": at, "y": y, "n": n, "at": AT + late, "loaded": 0}
        for at, (y, n, late) in enumerate(
            [
                (1.0 + 2**-7, 2**63 - 1, timedelta(seconds=5)),
                (1.1, -(2**63), timedelta(seconds=6)),
                (0.0, 2**63 - 2, timedelta(0)),
                (math.nan, 2**63 - 1, timedelta(0)),
            ]
        )
    ]
    numbers = {"n": pa.int64(), "at": pa.timestamp("us", tz="UTC"), "loaded": pa.int64()}
    a = written(
        tmp_path / "a.parquet", left, pa.schema({"id": pa.int64(), "x": pa.float64(), **numbers})
    )
    b = written(
        tmp_path / "b.parquet", right, pa.schema({"id": pa.int64(), "y": pa.float64(), **numbers})
    )
    report = compared(
        spark,
        a,
        b,
        key=("id",),
        ignored=frozenset({"loaded"}),
        renamed={"x": "y"},
        tolerances={"x": Decimal("0.01"), "n": Decimal(1), "at": timedelta(seconds=5)},
    )
    assert found(report) == ({"MATCH": 2, "MISMATCH": 2}, {"x": 2, "n": 1, "at": 1})


def test_samples_tell_the_kind_and_mask_what_nobody_may_see(
    spark: SparkSession, tmp_path: Path
) -> None:
    left = [random_row(Random(1), at) | {"name": "Ada", "at": AT, "score": 1.0} for at in range(3)]
    right = [left[0], left[1] | {"name": "ADA", "at": AT + timedelta(hours=1)}]
    report = compared(
        spark,
        written(tmp_path / "a.parquet", left),
        written(tmp_path / "b.parquet", right),
        key=("id",),
        hidden=frozenset({"name"}),
    )
    mismatch, missing = report.samples
    assert [(d.column, d.kind, d.onprem, d.cloud) for d in mismatch.differences] == [
        ("name", "case", MASK, MASK),
        ("at", "zone_shift", "2024-01-01T10:00:00Z", "2024-01-01T11:00:00Z"),
    ]
    assert (mismatch.key, missing.key, missing.status) == (
        {"id": "1"},
        {"id": "2"},
        "MISSING_CLOUD",
    )
    assert "Ada" not in tables_text(report)
    views = [row["viewName"] for row in spark.sql("SHOW VIEWS").collect()]
    assert not [name for name in views if name.startswith("dq_compare")]


def test_the_source_is_read_once_from_each_side(spark: SparkSession, tmp_path: Path) -> None:
    from headgate.reconcile.table_compare.run import Comparison

    session = spark.newSession()  # the zone and the views are for no other test
    file = written(tmp_path / "a.parquet", [random_row(Random(1), at) for at in range(10)])
    asked = planned(session, file, file, key=("id",))
    script = parse_script("x", Comparison(session, asked).script())
    for step in script.steps:
        if step.name in ("zone", "view"):
            session.sql(step.sql)
    kept = script.one("differences").removeprefix("CACHE TABLE dq_compare_differences AS\n")
    explained = session.sql(f"EXPLAIN {kept}").collect()[0][0]
    assert explained.count("FileScan parquet") == 2
    assert "ShuffledHashJoin" in explained


@contextmanager
def borrowed(session: SparkSession) -> Iterator[SparkSession]:
    yield session


def told(*words: str) -> tuple[str, HeadgateError | None]:
    """What the command prints, and how it fails."""
    done = CliRunner().invoke(cli, ["-o", "json", "reconcile", "tables", *words])
    assert done.exception is None or isinstance(done.exception, HeadgateError)
    return done.stdout, done.exception


def test_the_command_says_what_differs_and_fails_with_5(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "headgate.reconcile.table_compare.run.query_session", lambda _: borrowed(spark)
    )
    rows = [random_row(Random(1), at) | {"name": f"n{at}"} for at in range(5)]
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.compared")
    left = written(tmp_path / "a.parquet", rows)
    spark.read.parquet(left).writeTo("lake.compared.cloud").using("iceberg").createOrReplace()
    spark.sql("DELETE FROM lake.compared.cloud WHERE id = 2")
    told_, error = told(left, "compared.cloud", "--key", "id")
    assert orjson.loads(told_)["statuses"]["MISSING_CLOUD"] == 1
    assert error is not None
    assert error.exit_code == 5
    sql, error = told(left, "compared.cloud", "--key", "id", "--sql")
    assert (error, "FULL OUTER JOIN" in sql) == (None, True)
    _, error = told(left, "compared.cloud", "--key", "idd")
    assert error is not None
    assert (error.exit_code, "Did you mean `id`?" in error.why) == (2, True)


@pytest.mark.slow
def test_without_an_engine_the_command_has_a_session_of_its_own(tmp_path: Path) -> None:
    rows = [random_row(Random(1), at) for at in range(5)]
    left = written(tmp_path / "a.parquet", rows)
    right = written(tmp_path / "b.parquet", rows[1:])
    words = [sys.executable, "-m", "headgate.cli.main", "-o", "json", "reconcile", "tables"]
    done = subprocess.run(
        [*words, left, right, "--key", "id"],
        env={**os.environ, "HEADGATE_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        timeout=480,
        check=False,
    )
    assert done.returncode == 5
    assert orjson.loads(done.stdout)["statuses"]["MISSING_CLOUD"] == 1
