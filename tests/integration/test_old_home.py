"""A home that an earlier version wrote is opened, its streams go on, and the certificate holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from pyiceberg.table import StaticTable
from tests.fixtures.make_parquet import ROWS
from tests.support.old_home import PAIRS, OldProject, unpack

from headgate.core.ledger.ops_store import OpsStore
from headgate.local import stack


def count_rows(project: OldProject, name: str) -> int:
    """The rows of a table, by its files and the catalog's own database."""
    namespace, _, table = name.partition(".")
    with closing(sqlite3.connect(project.home / "catalog.db")) as db:
        (location,) = db.execute(
            "SELECT metadata_location FROM iceberg_tables"
            " WHERE table_namespace = ? AND table_name = ?",
            (namespace, table),
        ).fetchone()
    return StaticTable.from_metadata(location).scan().to_arrow().num_rows


def test_an_older_home_is_opened_continued_and_certified(tmp_path: Path) -> None:
    project = unpack(tmp_path / "project")
    bronze = "bronze.raw_trips"
    with closing(OpsStore.open(project.settings.ops_store_url)) as store:
        settled = {run.job: sum(row.read for row in store.ledger(run.job)) for run in store.runs()}
    assert count_rows(project, bronze) == ROWS
    silver, verdicts = (
        count_rows(project, name) for name in ("silver.cleaned_trips", "dq.results_customer")
    )
    try:
        project.headgate("local", "up")
        project.headgate("feed", "generate")
        project.headgate("feed", "rules", "customer", "--rows", str(PAIRS), "--seed", "2")
        project.wait_until_settled()
        certificate = project.headgate("certify", "--all")
    finally:
        stack.down(project.home)
    assert certificate["holds"] is True
    # The same rows again: all of them in bronze, none of them anew in silver.
    assert count_rows(project, bronze) == 2 * ROWS
    assert count_rows(project, "silver.cleaned_trips") == silver
    assert count_rows(project, "dq.results_customer") > verdicts
    with closing(OpsStore.open(project.settings.ops_store_url)) as store:
        for job, records in settled.items():
            rows = store.ledger(job)
            assert sum(row.read for row in rows) > records, job
            assert len({row.run for row in rows}) == 1, f"{job} was begun anew"
