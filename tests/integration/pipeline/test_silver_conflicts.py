"""Silver beside compaction and expiry, after lost answers and against runs that publish late."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from tests.support.bronze_table import append_rows, create_bronze_table, valid_row
from tests.support.dataset_events import events
from tests.support.oracle import expected_bronze, expected_silver
from tests.support.pipeline import TYPES, InjectedFaultError, Interruption, Pipeline, fail_at
from tests.support.run_requests import REBUILD_SILVER

from headgate.core.engine.batch import Point
from headgate.core.engine.job_kind import JOBS
from headgate.core.lake.commits import marker
from headgate.core.lake.table import ManagedTable
from headgate.core.ledger.model import RunState
from headgate.core.ledger.ranges import is_rebuild
from headgate.errors import LeaseLostError


@contextmanager
def broken_catalog(pipeline: Pipeline, table: str, action: str) -> Generator[Interruption]:
    """The catalog answers the publishing with an error: FAIL after it is done, ABORT undoes it."""
    file = str(pipeline.settings.catalog_uri).removeprefix("jdbc:sqlite:")
    catalog = sqlite3.connect(file, isolation_level=None, timeout=30, check_same_thread=False)

    def strike_next() -> None:
        catalog.execute(
            "CREATE TRIGGER lost_answer AFTER UPDATE ON iceberg_tables WHEN"
            f" NEW.table_namespace = '{table}' AND NEW.table_name = '{pipeline.name}'"
            f" BEGIN SELECT RAISE({action}, 'the connection was lost'); END"
        )

    interruption = Interruption(Point.AFTER_STAGING, strike_next)
    try:
        yield interruption
    finally:
        catalog.execute("DROP TRIGGER IF EXISTS lost_answer")
        catalog.close()


def test_a_commit_whose_answer_was_lost_is_taken_as_done(pipeline: Pipeline) -> None:
    pipeline.produce(events(1, 30))
    with broken_catalog(pipeline, "bronze", "FAIL") as interruption:
        pipeline.process("bronze", interruption)
    assert pipeline.bronze() == expected_bronze(pipeline.records(), TYPES)
    with broken_catalog(pipeline, "silver", "FAIL") as silver_interruption:
        pipeline.process("silver", silver_interruption)
    assert (interruption.hits, silver_interruption.hits) == (1, 1)
    rows = pipeline.silver()
    assert pipeline.outcomes("silver")["kept"] == rows.total() > 0
    pipeline.process("silver", request=REBUILD_SILVER)
    assert pipeline.silver() == rows


def test_a_commit_that_failed_is_made_by_the_next_run(pipeline: Pipeline) -> None:
    create_bronze_table(pipeline)
    rows = [valid_row(n, 1) for n in range(9)]
    append_rows(pipeline, rows)
    with (
        broken_catalog(pipeline, "silver", "ABORT") as interruption,
        pytest.raises(Exception, match="connection was lost"),
    ):
        pipeline.process("silver", interruption)
    assert pipeline.silver().total() == 0
    pipeline.process("silver")
    assert pipeline.silver() == expected_silver(rows).rows
    assert len(pipeline.ledger("silver")) == 1


def test_a_run_that_publishes_late_for_a_withdrawn_batch_is_refused_by_the_table(
    pipeline: Pipeline,
) -> None:
    create_bronze_table(pipeline)
    rows = [valid_row(n, n % 3 + 1) for n in range(12)]
    append_rows(pipeline, rows[:6])
    pipeline.process("silver")
    append_rows(pipeline, rows[6:])  # new keys alone: the merge is an append
    old = pipeline.ask_for("silver")
    checks = 0

    def still_mine() -> None:
        """Its last look at the lease; then it sleeps, and wakes up to publish."""
        nonlocal checks
        checks += 1
        if checks == 2:
            pipeline.store.move(old.job, old.number, RunState.FAILED)
            pipeline.declare(filters='["amount >= 1"]')
            with pytest.raises(InjectedFaultError):  # withdrawn, and nothing is rebuilt yet
                pipeline.process("silver", fail_at(Point.AFTER_INTENT))
        elif checks > 2:
            raise LeaseLostError("another run goes on")

    with pytest.raises(LeaseLostError):
        JOBS["silver"](pipeline.context(old, None, still_mine))
    assert checks == 3  # it came to the publishing, was refused, and would have begun again
    assert pipeline.silver() == expected_silver(rows[:6]).rows
    assert fences(pipeline) == [f"fence-{old.job}"]
    pipeline.process("silver")
    assert pipeline.silver() == expected_silver(rows).rows
    assert pipeline.outcomes("silver") == {"kept": 6 + 12}


def test_a_batch_that_another_run_published_before_it_died_is_settled_as_that_run_wrote_it(
    pipeline: Pipeline,
) -> None:
    create_bronze_table(pipeline)
    rows = [valid_row(n, n % 3 + 1) for n in range(12)]
    append_rows(pipeline, rows[:6])
    pipeline.process("silver")
    append_rows(pipeline, rows[6:])
    run = pipeline.ask_for("silver")

    def other() -> None:
        with pytest.raises(InjectedFaultError):
            pipeline.carry_out(run, fail_at(Point.AFTER_PUBLISH))

    interruption = Interruption(Point.AFTER_STAGING, other)
    pipeline.carry_out(run, interruption)
    assert interruption.hits == 1
    assert pipeline.outcomes("silver") == {"kept": 12}
    assert pipeline.silver() == expected_silver(rows).rows


def fences(pipeline: Pipeline) -> list[str]:
    history = ManagedTable(pipeline.session, f"lake.silver.{pipeline.name}").look().history()
    markers = [marker(snapshot.summary) for snapshot in history]
    return [found.job for found in markers if found and found.job.startswith("fence")]


def latest_words(pipeline: Pipeline) -> str:
    run = pipeline.store.latest(f"silver-{pipeline.name}")
    assert run is not None
    return run.progress.words


def test_silver_reads_on_over_a_compacted_and_expired_bronze(pipeline: Pipeline) -> None:
    create_bronze_table(pipeline)
    rows = [valid_row(n, n % 3 + 1) for n in range(24)]
    for start in (0, 4, 8):
        append_rows(pipeline, rows[start : start + 4])
    pipeline.process("silver")
    seen = snapshots(pipeline)[-1]
    append_rows(pipeline, rows[12:16])
    compact(pipeline)
    append_rows(pipeline, rows[16:20])
    expire(pipeline, snapshots(pipeline)[:2])
    pipeline.process("silver")
    step = pipeline.ledger("silver")[-1]
    assert (dict(step.range.start), step.read) == ({"snapshot": seen}, 8)
    assert pipeline.silver() == expected_silver(rows[:20]).rows

    append_rows(pipeline, rows[20:22])
    append_rows(pipeline, rows[22:])
    expire(pipeline, snapshots(pipeline)[:-1])  # what silver had seen goes with them
    pipeline.process("silver")
    assert is_rebuild(pipeline.ledger("silver")[-1].range)
    assert pipeline.silver() == expected_silver(rows).rows
    assert "that silver had seen is no longer there" in latest_words(pipeline)


def snapshots(pipeline: Pipeline) -> list[int]:
    history = ManagedTable(pipeline.session, f"lake.bronze.{pipeline.name}").look().history()
    return [snapshot.id for snapshot in history][::-1]


def compact(pipeline: Pipeline) -> None:
    call = "CALL lake.system.rewrite_data_files(table => 'bronze.{}', options => map({}))"
    written = pipeline.session.sql(call.format(pipeline.name, "'rewrite-all', 'true'")).collect()
    assert written[0]["rewritten_data_files_count"] > 1


def expire(pipeline: Pipeline, ids: list[int]) -> None:
    listed = ", ".join(f"{id_}L" for id_ in ids)
    pipeline.session.sql(
        f"CALL lake.system.expire_snapshots(table => 'bronze.{pipeline.name}',"
        f" older_than => TIMESTAMP '1970-01-01 00:00:00', snapshot_ids => array({listed}))"
    )
