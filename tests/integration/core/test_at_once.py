"""Jobs that start at once share a catalog that may be empty; a run reads as it was asked to."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from pyspark.sql import SparkSession
from tests.support.dataset_events import events
from tests.support.pipeline import Pipeline

from headgate.core.engine.spark_options import catalog_options
from headgate.core.lake.spark import IcebergTable, create, java_class, sql

JOBS, CATALOGS = 4, 3


def jobs_on_empty_catalogs(
    pipeline: Pipeline, folder: Path, make: Callable[[SparkSession, list[str]], None]
) -> list[Exception]:
    """The failures of so many jobs that make the same tables in catalogs nobody has used yet."""
    return [e for n in range(CATALOGS) for e in on_empty_catalog(pipeline, folder, f"c{n}", make)]


def on_empty_catalog(
    pipeline: Pipeline,
    folder: Path,
    name: str,
    make: Callable[[SparkSession, list[str]], None],
) -> list[Exception]:
    uri = {"catalog_uri": f"jdbc:sqlite:{folder}/{name}.db", "warehouse": f"{folder}/{name}"}
    options = catalog_options(pipeline.settings.model_copy(update=uri))
    begin = Barrier(JOBS)

    def job(_: int) -> Exception | None:
        session = pipeline.session.newSession()
        for key, value in options.items():
            if ".lake" in key:
                session.conf.set(key.replace(".lake", f".{name}"), value)
        begin.wait()
        try:
            make(
                session,
                [
                    f"CREATE NAMESPACE IF NOT EXISTS {name}.bronze",
                    f"CREATE TABLE IF NOT EXISTS {name}.bronze.t (id BIGINT) USING iceberg",
                ],
            )
        except Exception as error:
            return error
        return None

    with ThreadPoolExecutor(JOBS) as pool:
        return [error for error in pool.map(job, range(JOBS)) if error]


def test_jobs_that_make_the_same_tables_at_once_do_not_fail(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    assert jobs_on_empty_catalogs(pipeline, tmp_path, create) == []


@pytest.mark.slow
def test_a_run_is_cut_as_it_was_asked_for_not_as_the_engine_is_set(pipeline: Pipeline) -> None:
    usual = pipeline.settings
    pipeline.produce(events(3, 90))
    pipeline.settings = usual.model_copy(update={"max_offsets_per_batch": 30})
    run = pipeline.ask_for("bronze")
    pipeline.settings = usual
    pipeline.carry_out(run)
    spans = [row.span for row in pipeline.ledger()]
    assert (sum(spans), max(spans) <= 30) == (90, True)


def test_a_table_is_found_in_a_thread_whose_active_session_knows_no_catalog(
    pipeline: Pipeline,
) -> None:
    name = f"lake.bronze.{pipeline.name}"
    sql(pipeline.session, "CREATE NAMESPACE IF NOT EXISTS lake.bronze")
    sql(pipeline.session, f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    other, fresh = pipeline.session.newSession(), pipeline.session.newSession()
    other.conf.unset("spark.sql.catalog.lake")
    sessions = java_class(other, "org.apache.spark.sql.classic.SparkSession")
    sessions.setActiveSession(other._jsparkSession)
    try:
        assert IcebergTable(fresh, name).refresh().columns()[0].name == "id"
    finally:
        sessions.setActiveSession(pipeline.session._jsparkSession)
