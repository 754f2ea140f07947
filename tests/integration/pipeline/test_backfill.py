"""A backfill makes the rows of its dates anew and touches no other; the account stays exact."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest
from tests.support.bronze_table import append_rows, create_bronze_table, valid_row
from tests.support.dataset_events import events
from tests.support.oracle import expected_silver
from tests.support.pipeline import MORNING, SECOND, Interruption, Pipeline, ProducerRecord, fail_at
from tests.support.run_requests import REBUILD_SILVER, request_backfill

from headgate.certify.certificate import Certificate, broken
from headgate.core.engine.batch import Faults, Point
from headgate.core.ledger.model import Run
from headgate.errors import BatchRefusedError, UsageError
from headgate.pipeline.rebuild import recover_dataset
from headgate.pipeline.revision import declared_revision

LATER = MORNING + 60 * SECOND


def backfill(pipeline: Pipeline, first: str, last: str, faults: Faults | None = None) -> Run:
    return pipeline.process("backfill", faults, request_backfill(first, last))


def days(pipeline: Pipeline) -> dict[date, set[int]]:
    found: dict[date, set[int]] = {}
    for day, number in pipeline.select("on_day, event_id", f"silver.{pipeline.name}"):
        found.setdefault(day, set()).add(number)
    return found


def files(pipeline: Pipeline) -> dict[date, set[str]]:
    """The data files of each date."""
    rows = pipeline.session.sql(
        f"SELECT partition.on_day AS day, file_path FROM lake.silver.{pipeline.name}.files"
    ).collect()
    found: dict[date, set[str]] = {}
    for row in rows:
        found.setdefault(row["day"], set()).add(row["file_path"])
    return found


def test_the_dates_are_brought_up_and_mended_and_no_other_is_touched(pipeline: Pipeline) -> None:
    create_bronze_table(pipeline)
    append_rows(pipeline, [valid_row(n, n % 4 + 1) for n in range(20)])
    pipeline.process("silver")
    silver = f"lake.silver.{pipeline.name}"
    # Someone has damaged it: a row too few on the 2nd, and one of the 3rd is there twice.
    pipeline.session.sql(f"DELETE FROM {silver} WHERE event_id = 1")
    pipeline.session.sql(f"INSERT INTO {silver} SELECT * FROM {silver} WHERE event_id = 2")
    append_rows(pipeline, [valid_row(n, n % 4 + 1) for n in range(20, 28)])
    before = files(pipeline)
    run = backfill(pipeline, "2024-01-02", "2024-01-03")
    after = files(pipeline)
    assert {day for day in after if after[day] == before.get(day)} == {
        date(2024, 1, 1),
        date(2024, 1, 4),
    }
    row = pipeline.ledger("backfill")[-1]
    assert (dict(row.outcomes), row.net) == ({"kept": 14, "duplicate": 0, "filtered": 0}, 4)
    assert (
        "2024-01-02 to 2024-01-03: +4 rows"
        in pipeline.store.run(run.job, run.number).progress.words
    )
    found = pipeline.select("event_id", f"silver.{pipeline.name}")
    assert sorted(n for (n,) in found) == [n for n in range(28) if n < 20 or n % 4 in (1, 2)]
    pipeline.process("silver")
    assert pipeline.outcomes("silver") == {"kept": 24, "backfilled": 4}
    assert pipeline.silver().total() == 28


def test_a_column_that_was_declared_later_is_backfilled_into_its_own_place(
    pipeline: Pipeline,
) -> None:
    """It stands at the table's end; in the manifest, and in the views, it does not."""
    create_bronze_table(pipeline)
    append_rows(pipeline, [valid_row(n, n % 2 + 1) for n in range(6)])
    pipeline.process("silver")
    manifest = pipeline.settings.root / "datasets" / pipeline.name / "dataset.yml"
    line = "{name: tip, kafka_type: INT, bronze_type: INT, silver_name: tip, silver_type: INT}"
    text = manifest.read_text().replace("columns:\n", f"columns:\n  - {line}\n")
    manifest.write_text(text)
    pipeline.process("silver")
    silver = f"lake.silver.{pipeline.name}"
    assert pipeline.session.table(silver).columns[-1] == "tip"
    before = pipeline.session.table(silver).collect()
    pipeline.session.sql(f"DELETE FROM {silver} WHERE event_id = 1")
    backfill(pipeline, "2024-01-01", "2024-01-02")
    assert sorted(pipeline.session.table(silver).collect(), key=str) == sorted(before, key=str)
    # And one that is no longer declared stays, empty.
    manifest.write_text(text.replace(f"  - {line}\n", ""))
    pipeline.process("silver")
    backfill(pipeline, "2024-01-01", "2024-01-01")
    assert sorted(pipeline.session.table(silver).collect(), key=str) == sorted(before, key=str)


def test_what_cannot_be_backfilled_is_refused_in_words(pipeline: Pipeline) -> None:
    create_bronze_table(pipeline)
    with pytest.raises(BatchRefusedError, match="has no rows yet"):
        backfill(pipeline, "2024-01-01", "2024-01-02")
    append_rows(pipeline, [valid_row(n, 1) for n in range(4)])
    pipeline.process("silver")
    with pytest.raises(UsageError, match="run backwards"):
        backfill(pipeline, "2024-01-02", "2024-01-01")
    pipeline.declare(filters='["amount > 1"]')
    with pytest.raises(BatchRefusedError, match="the declaration has changed") as refused:
        backfill(pipeline, "2024-01-01", "2024-01-02")
    assert refused.value.fix == "headgate job run silver --full"
    assert pipeline.ledger("backfill") == ()
    pipeline.declare()
    backfill(pipeline, "2020-01-01", "2020-12-31")  # a date without rows is no error
    row = pipeline.ledger("backfill")[-1]
    assert (row.read, row.net, pipeline.silver().total()) == (0, 0, 4)


def test_a_merge_and_a_backfill_at_once_bring_each_row_once(pipeline: Pipeline) -> None:
    create_bronze_table(pipeline)
    rows = [valid_row(n, n % 3 + 1) for n in range(27)]
    append_rows(pipeline, rows[:9])
    pipeline.process("silver")

    def merge(faults: Faults | None = None) -> None:
        pipeline.process("silver", faults)

    def fill(faults: Faults | None = None) -> None:
        backfill(pipeline, "2024-01-01", "2024-01-02", faults)

    def do_within(first: Callable[[Faults], None], other: Callable[[], None]) -> None:
        """The other is done whole while the first has staged and not yet published."""
        interruption = Interruption(
            Point.AFTER_STAGING, lambda: other() if interruption.hits == 1 else None
        )
        first(interruption)
        assert interruption.hits == 2  # the table had moved, and the statement was run again whole

    append_rows(pipeline, rows[9:18])
    do_within(merge, fill)
    assert pipeline.silver() == expected_silver(rows[:18]).rows
    append_rows(pipeline, rows[18:])
    do_within(fill, merge)
    assert pipeline.silver() == expected_silver(rows).rows


def test_a_backfill_that_was_killed_is_finished_or_given_up(pipeline: Pipeline) -> None:
    create_bronze_table(pipeline)
    append_rows(pipeline, [valid_row(n, n % 3 + 1) for n in range(9)])
    pipeline.process("silver")
    with pytest.raises(Exception, match="after-publish"):
        backfill(pipeline, "2024-01-01", "2024-01-01", fail_at(Point.AFTER_PUBLISH))
    with pytest.raises(Exception, match="after-staging"):
        backfill(pipeline, "2024-01-02", "2024-01-02", fail_at(Point.AFTER_STAGING))
    assert len(pipeline.ledger("backfill")) == 1  # what was published is settled, never done again
    append_rows(pipeline, [valid_row(n, n % 3 + 1) for n in range(9, 12)])
    backfill(pipeline, "2024-01-03", "2024-01-03")
    assert [row.net for row in pipeline.ledger("backfill")] == [0, 1]
    assert pipeline.store.open_intents(f"backfill-{pipeline.name}") == ()
    assert days(pipeline)[date(2024, 1, 3)] == {2, 5, 8, 11}


def test_the_certificate_holds_with_backfills_and_names_a_removed_row(
    pipeline: Pipeline,
) -> None:
    pipeline.produce(events(1, 60))
    pipeline.process("bronze")
    pipeline.process("silver")
    more = [
        *events(2, 60, 60),
        *(ProducerRecord(value, timestamp=LATER) for value in events(1, 20)),
    ]
    pipeline.produce(more)
    pipeline.process("bronze")
    backfill(pipeline, "2024-01-03", "2024-01-09")
    assert pipeline.ledger("backfill")[0].net > 0
    assert any("silver has not read 80 rows" in words for words in broken(pipeline.certify()))
    pipeline.process("silver")
    assert pipeline.outcomes("silver")["backfilled"] > 0
    check_certificate(pipeline)
    told = recover_dataset(pipeline.session, declared_revision(pipeline.settings, pipeline.name))
    known = {(row.job, row.net, tuple(sorted(row.outcomes.items()))) for row, _ in told.rows}
    ledger = (*pipeline.ledger("silver"), *pipeline.ledger("backfill"))
    assert {(row.job, row.net, tuple(sorted(row.outcomes.items()))) for row in ledger} <= known
    pipeline.process("silver", request=REBUILD_SILVER)  # from here on the backfill no longer counts
    check_certificate(pipeline)
    check_removed_row(pipeline)


def check_removed_row(pipeline: Pipeline) -> None:
    """A backfill cannot know how many rows somebody removed before it came: the account keeps them."""
    sound = pipeline.silver()
    some = pipeline.select("min(event_id)", f"silver.{pipeline.name}")[0][0]
    pipeline.session.sql(f"DELETE FROM lake.silver.{pipeline.name} WHERE event_id = {some}")
    backfill(pipeline, "2024-01-01", "2024-01-09")
    assert pipeline.silver() == sound
    assert broken_counts(pipeline) == [
        f"{pipeline.name}: silver.{pipeline.name} {sound.total()} ≠ ledger {sound.total() + 1}"
        " (-1 in the table)"
    ]
    pipeline.process("silver", request=REBUILD_SILVER)
    assert broken_counts(pipeline) == []


def broken_counts(pipeline: Pipeline) -> list[str]:
    """The broken lines of the certificate about how many rows there are."""
    return [line for line in broken(pipeline.certify()) if "ledger" in line]


def check_certificate(pipeline: Pipeline) -> Certificate:
    certificate = pipeline.certify()
    assert broken(certificate) == ()
    again = pipeline.recheck()
    assert again.returncode == 0, again.stdout
    return certificate
