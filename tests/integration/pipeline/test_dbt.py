"""The marts over a small Iceberg table that no Spark wrote, and the commands that read it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from headgate.cli.main import cli
from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake
from headgate.errors import ConflictError, DifferenceError, UnavailableError
from headgate.pipeline.dbt import run as dbt
from headgate.pipeline.dbt.models import DbtReport

ROOT = Path(__file__).parents[3]
SILVER = "silver.cleaned_trips"
ROWS, TOO_SHORT, TOO_FAST = 500, 10, 5
PLAUSIBLE = ROWS - TOO_SHORT - TOO_FAST
FIRST_BATCH = datetime(2024, 2, 1, tzinfo=UTC)


def trips(rows: int = ROWS, *, first_id: int = 0, at: datetime = FIRST_BATCH) -> pa.Table:
    """Rows as the silver job writes them; of a whole fixture some cannot have happened."""
    rng = np.random.default_rng(42 + first_id)
    seconds = rng.integers(120, 3600, rows)
    miles = seconds / 3600 * rng.uniform(5, 30, rows)
    seconds[:TOO_SHORT] = 1
    miles[TOO_SHORT : TOO_SHORT + TOO_FAST] = 500
    start = np.datetime64("2024-01-01", "us") + rng.integers(0, 30 * 86400, rows).astype("m8[s]")
    fare, tip = rng.integers(300, 8000, rows), rng.integers(0, 1500, rows)
    vendor = rng.choice([1, 2, 6], rows)
    vendor[-1] = 7
    return pa.table(
        {
            "vendor_id": integers(vendor),
            "pickup_datetime": pa.array(start),
            "dropoff_datetime": pa.array(start + seconds.astype("m8[s]")),
            "passenger_count": integers(rng.integers(0, 6, rows)),
            "trip_distance_miles": pa.array(miles),
            "rate_code_id": pa.array([None if i % 7 == 0 else 1 for i in range(rows)], pa.int32()),
            "store_and_fwd_flag": pa.array(["N"] * rows),
            "pickup_location_id": integers(rng.integers(1, 266, rows)),
            "dropoff_location_id": integers(rng.integers(1, 266, rows)),
            "payment_type_id": integers(rng.integers(0, 7, rows)),
            "fare_amount": money(fare),
            "extra_amount": money(np.full(rows, 100)),
            "mta_tax": money(np.full(rows, 50)),
            "tip_amount": money(tip),
            "tolls_amount": money(np.zeros(rows)),
            "improvement_surcharge": money(np.full(rows, 100)),
            "total_amount": money(fare + tip + 250),
            "congestion_surcharge": money(np.zeros(rows)),
            "airport_fee": money(np.zeros(rows)),
            "pickup_date": pa.array(start.astype("M8[D]")),
            "trip_id": pa.array([f"{i:032x}" for i in range(first_id, first_id + rows)]),
            "ingestion_ts": pa.array([at] * rows, pa.timestamp("us", tz="UTC")),
            "kafka_timestamp": pa.array([at] * rows, pa.timestamp("us", tz="UTC")),
            "kafka_partition": integers(np.zeros(rows)),
            "kafka_offset": pa.array(np.arange(first_id, first_id + rows)),
        }
    )


def integers(values: np.ndarray) -> pa.Array:
    return pa.array(values.astype("int32"))


def money(cents: np.ndarray) -> pa.Array:
    return pa.array([Decimal(int(value)) / 100 for value in cents], pa.decimal128(10, 2))


class Home:
    """A data folder of its own with a silver table in the catalog that Spark would use."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        folder.mkdir(parents=True, exist_ok=True)
        self.settings = Settings(root=root, home=folder)
        self.catalog = SqlCatalog(
            "lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
        )
        self.catalog.create_namespace("silver")

    def create(self, rows: pa.Table, name: str = SILVER) -> None:
        table = self.catalog.create_table(
            name, schema=rows.schema, properties={"format-version": "2"}
        )
        table.append(rows)

    def append(self, rows: pa.Table) -> None:
        self.catalog.load_table(SILVER).append(rows)

    def overwrite(self, rows: pa.Table) -> None:
        self.catalog.load_table(SILVER).overwrite(rows)

    def build(self, *select: str, full_refresh: bool = True) -> DbtReport:
        return dbt.build(self.settings, "taxi", select, full_refresh=full_refresh)

    def marts(self, sql: str) -> list[tuple[object, ...]]:
        with duckdb.connect(str(dbt.marts_file(self.settings)), read_only=True) as marts:
            return marts.execute(sql).fetchall()

    def headgate(self, *arguments: str, **variables: str) -> Result:
        """The command line in this process: what it starts is dbt's own."""
        environ = {"HEADGATE_HOME": str(self.settings.home), **variables}
        with chdir(ROOT):
            return CliRunner(env=environ).invoke(cli, arguments)


def close(home: Home) -> None:
    home.catalog.close()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, DbtReport]]:
    home = Home(tmp_path_factory.mktemp("lake") / "it's {a} home")
    home.create(trips())
    yield home, home.build()
    close(home)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    fresh = Home(tmp_path / "home")
    yield fresh
    close(fresh)


def test_the_sixteen_models_are_built_with_their_contracts(built: tuple[Home, DbtReport]) -> None:
    _, report = built
    assert report.ok, report
    assert report.failed == 0
    assert sorted(m.name for m in report.models if m.kind == "model") == sorted(
        """
        stg_yellow_trips stg_taxi_zones stg_payment_types stg_rate_codes stg_vendors
        int_trip_metrics int_daily_trip_counts int_payment_stats
        fct_trips dim_locations dim_vendors dim_payment_types dim_rate_codes
        mart_daily_revenue mart_hourly_patterns mart_location_performance
        """.split()
    )
    assert {t.name for t in report.tests} >= {
        "assert_fare_not_exceeds_total",
        "assert_trip_duration_positive",
        "not_null_fct_trips_trip_id",
        "unique_fct_trips_trip_id",
    }


def test_no_row_is_lost_between_silver_and_the_marts(built: tuple[Home, DbtReport]) -> None:
    home, report = built
    with Lake.open(home.settings) as lake:
        assert lake.count(SILVER) == ROWS
    assert report.rows("stg_yellow_trips") == ROWS
    assert report.rows("int_trip_metrics") == PLAUSIBLE
    assert report.rows("fct_trips") == PLAUSIBLE
    sums = "sum(trip_count), sum(total_revenue)"
    expected = home.marts("SELECT count(*), sum(total_amount) FROM marts.fct_trips")
    for mart in ("mart_daily_revenue", "mart_hourly_patterns", "mart_location_performance"):
        assert home.marts(f"SELECT {sums} FROM marts.{mart}") == expected


def test_lookups_are_complete(built: tuple[Home, DbtReport]) -> None:
    home, report = built
    assert (report.rows("taxi_zones"), report.rows("dim_locations")) == (265, 265)
    assert [report.rows(n) for n in ("payment_types", "rate_codes", "vendors")] == [7, 7, 3]
    zones = "SELECT borough, zone_name, service_zone FROM marts.dim_locations WHERE location_id"
    assert home.marts(f"{zones} = 132") == [("Queens", "JFK Airport", "Airports")]
    assert home.marts(f"{zones} = 265") == [("N/A", "Outside of NYC", "N/A")]
    yellow = "SELECT count(*) FROM marts.dim_locations WHERE service_zone = 'Yellow Zone'"
    assert home.marts(yellow) == [(55,)]
    assert home.marts("SELECT count(*) FROM marts.fct_trips WHERE pickup_zone IS NULL") == [(0,)]


def test_an_unknown_vendor_is_a_warning(built: tuple[Home, DbtReport]) -> None:
    _, report = built
    warned = [test.name for test in report.tests if test.status == "warn"]
    assert warned == ["accepted_values_stg_yellow_trips_vendor_id__False__1__2__6"]


def test_schemas_keep_the_layers_apart(built: tuple[Home, DbtReport]) -> None:
    home, _ = built
    found = home.marts(
        "SELECT table_schema, count(*) FROM information_schema.tables GROUP BY ALL ORDER BY ALL"
    )
    assert found == [("intermediate", 3), ("marts", 8), ("raw", 4), ("staging", 5)]


def test_running_totals_and_changes_follow_the_days(built: tuple[Home, DbtReport]) -> None:
    home, _ = built
    days = home.marts(
        "SELECT total_revenue, running_revenue, revenue_change FROM marts.mart_daily_revenue"
        " ORDER BY pickup_date"
    )
    running = Decimal(0)
    before: Decimal | None = None
    for revenue, total, change in days:
        assert isinstance(revenue, Decimal)
        running += revenue
        assert total == running
        assert change == (None if before is None else revenue - before)
        before = revenue


@pytest.mark.slow
def test_dbt_test_and_docs_work_from_the_command_line(built: tuple[Home, DbtReport]) -> None:
    home, report = built
    tested = home.headgate("-o", "json", "dbt", "test")
    assert tested.exit_code == 0, tested.output
    answer = json.loads(tested.stdout)
    assert (answer["ok"], len(answer["tests"])) == (True, len(report.tests))
    assert {m["name"]: m["rows"] for m in answer["models"]}["fct_trips"] == PLAUSIBLE
    docs = home.headgate("dbt", "docs")
    assert docs.exit_code == 0, docs.output
    assert Path(docs.stdout.strip()).is_file()


def test_lake_count_and_wait_print_what_scripts_read(built: tuple[Home, DbtReport]) -> None:
    home, _ = built
    counted = home.headgate("lake", "count")
    assert counted.stdout.splitlines() == ["BRONZE=-1", f"SILVER={ROWS}"]
    waited = home.headgate("-o", "json", "lake", "wait")
    assert json.loads(waited.stdout)["rows"] == ROWS
    too_many = home.headgate(
        "lake", "wait", WAIT_FOR_SILVER_MIN_ROWS="501", WAIT_FOR_SILVER_TIMEOUT="1"
    )
    assert isinstance(too_many.exception, UnavailableError)
    assert "has 500 rows; waiting" in too_many.stderr


@pytest.mark.slow
def test_an_incremental_build_adds_and_replaces(home: Home) -> None:
    first = trips(50)
    home.create(first)
    assert home.build("+fct_trips").rows("fct_trips") == 35
    later = trips(20, first_id=1000, at=FIRST_BATCH + timedelta(hours=1))
    replaced = trips(50, at=FIRST_BATCH + timedelta(hours=1)).slice(49)
    home.overwrite(pa.concat_tables([first.slice(0, 49), replaced, later]))
    report = home.build("+fct_trips", full_refresh=False)
    assert report.ok, report
    assert report.rows("fct_trips") == 40
    newer = "SELECT count(*) FROM marts.fct_trips WHERE ingestion_ts > '2024-02-01 00:30:00+00'"
    assert home.marts(newer) == [(6,)]


def test_a_fare_above_the_total_is_a_difference(home: Home) -> None:
    rows = trips(50)
    column = rows.column_names.index("fare_amount")
    home.create(rows.set_column(column, "fare_amount", money(np.full(50, 999_900))))
    answer = home.headgate("dbt", "build", "--select", "+fct_trips")
    assert isinstance(answer.exception, DifferenceError)
    assert "assert_fare_not_exceeds_total: fail" in answer.exception.why


def test_success_over_an_empty_table_is_no_success(home: Home) -> None:
    home.create(trips(20).slice(0, 0))
    report = home.build()
    assert not report.ok
    assert {"stg_yellow_trips", "fct_trips", "mart_daily_revenue"} <= set(report.empty)


def test_marts_that_another_process_holds_are_a_conflict(home: Home) -> None:
    home.create(trips(20))
    code = "import duckdb, sys, time; c = duckdb.connect(sys.argv[1]); print(1, flush=True); time.sleep(600)"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(dbt.marts_file(home.settings))],
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout
        holder.stdout.readline()
        try:
            with pytest.raises(ConflictError, match="in use"):
                home.build()
        finally:
            holder.kill()


def orders(rows: int) -> pa.Table:
    """Rows of the second shipped dataset as its silver job writes them."""
    times = pa.array([FIRST_BATCH.replace(tzinfo=None) + timedelta(hours=i) for i in range(rows)])
    return pa.table(
        {
            "order_key": [f"{i:032x}" for i in range(rows)],
            "order_id": [f"O-{i}" for i in range(rows)],
            "customer_id": pa.array(range(rows), pa.int64()),
            "created_at": times,
            "status": ["paid"] * rows,
            "total_amount": money(np.arange(1, rows + 1)),
            "order_date": times.cast(pa.date32()),
            "ingestion_ts": pa.array([FIRST_BATCH] * rows, pa.timestamp("us", tz="UTC")),
        }
    )


BOTH = """
select count(*) as n from {{ ref('stg_orders') }}
union all
select count(*) as n from {{ ref('fct_trips') }}
"""


def test_a_dataset_builds_its_own_models_beside_others_that_have_no_rows_yet(
    tmp_path: Path,
) -> None:
    for part in ("datasets", "dbt"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "dbt/models/intermediate/int_both.sql").write_text(BOTH)
    (tmp_path / "datasets/broken").mkdir()
    (tmp_path / "datasets/broken/dataset.yml").write_text("name: broken\n")
    home = Home(tmp_path / "home", root=tmp_path)
    home.create(orders(20), "silver.cleaned_orders")
    report = dbt.build(home.settings, "orders")
    close(home)
    assert report.ok, report
    assert {model.name: model.rows for model in report.models} == {"stg_orders": 20}
    assert (report.passed, len(report.tests)) == (6, 6)
    assert [(w.model, w.tables) for w in report.waiting] == [("int_both", (SILVER,))]


def test_a_missing_table_names_the_job_that_makes_it(tmp_path: Path) -> None:
    settings = Settings(root=ROOT, home=tmp_path)
    with Lake.open(settings) as lake:
        assert not lake.exists(SILVER)
        with pytest.raises(UnavailableError) as caught:
            lake.count(SILVER)
    assert caught.value.fix == "headgate job run silver"
    assert list(tmp_path.iterdir()) == []


def test_snapshots_are_told_from_the_current_metadata(home: Home) -> None:
    home.create(trips(20))
    home.append(trips(20, first_id=100))
    with Lake.open(home.settings) as lake:
        snapshots = lake.snapshots(SILVER)
        location = lake.location(SILVER)
        assert [s.operation for s in snapshots] == ["append", "append"]
        assert all(s.in_history for s in snapshots)
        assert location.snapshot_id == snapshots[-1].id
        assert lake.query(f"SELECT count(*) FROM {lake.scan_sql(SILVER)}") == [(40,)]


def test_a_hadoop_table_is_read_at_its_highest_version(home: Home) -> None:
    home.create(trips(20))
    home.append(trips(20, first_id=100))
    folder = home.settings.home / "warehouse" / "silver" / "cleaned_trips" / "metadata"
    for number, file in enumerate(sorted(folder.glob("0*.metadata.json")), start=9):
        shutil.move(file, folder / f"v{number}.metadata.json")
    (folder / "version-hint.text").write_text("9")
    settings = Settings(root=ROOT, home=home.settings.home, catalog="hadoop")
    with Lake.open(settings) as lake:
        assert lake.location(SILVER).version == "11"
        assert lake.count(SILVER) == 40
        assert not lake.exists("bronze.raw_trips")


JAVA_TABLES = (
    "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL,"
    " table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,"
    " metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),"
    " PRIMARY KEY (catalog_name, table_namespace, table_name))",
    "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL,"
    " namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255), property_value VARCHAR(1000),"
    " PRIMARY KEY (catalog_name, namespace, property_key))",
)


@pytest.mark.parametrize("version", ["V0", "V1"])
def test_a_catalog_made_by_spark_is_read_in_both_its_versions(
    home: Home, tmp_path: Path, version: str
) -> None:
    home.create(trips(20))
    file = home.catalog.load_table(SILVER).metadata_location.replace("file://", "file:")
    other = tmp_path / "spark"
    other.mkdir()
    with closing(sqlite3.connect(other / "catalog.db")) as database, database:
        for statement in JAVA_TABLES:
            database.execute(statement)
        row = ("lake", "silver", "cleaned_trips", file, None)
        database.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?)", row)
        if version == "V1":
            database.execute("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")
            database.execute("UPDATE iceberg_tables SET iceberg_type = 'TABLE'")
    with Lake.open(Settings(root=ROOT, home=other)) as lake:
        assert lake.count(SILVER) == 20
