"""What a maintenance run is asked for, what jobs need of a table, and what a person is shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from headgate.app import MAINTAINED, load
from headgate.core.lake.commits import Marker
from headgate.core.ledger.model import Intent, JobSpec
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import Range, TableRange, TopicRange
from headgate.errors import ConflictError, UsageError
from headgate.maintenance.job import read_plan, read_report
from headgate.maintenance.plan import (
    ACTIONS,
    COMPACT,
    EXPIRE,
    TABLES,
    MaintenanceRunOptions,
    OrphanPlan,
    PartPlan,
    Plan,
    Report,
    Size,
    SnapshotPlan,
    TablePlan,
    TableReport,
    plan_text,
    report_text,
    span_of,
)
from headgate.maintenance.planner import Books, merge_uses, needs_of
from headgate.maintenance.selection import COMPACTED, Part, chunks, plan_compaction
from headgate.maintenance.store import MaintenanceStore
from headgate.pipeline.revision import DatasetRevision, keep

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TODAY = NOW.date()
BRONZE = "lake.bronze.x"


def part(day: date | None, small: int = 9, files: int = 9) -> Part:
    return Part(day, files, files * 10, small, small * 10)


def test_only_dates_that_are_over_are_compacted() -> None:
    parts = [
        part(TODAY),
        part(TODAY + timedelta(days=1)),
        part(TODAY - timedelta(days=1)),
        part(None),
    ]
    assert {p.name for p in plan_compaction(parts, TODAY, 5)} == {"2026-02-28", "no date"}


def test_a_part_needs_enough_small_files() -> None:
    days = [TODAY - timedelta(days=n) for n in (1, 2, 3)]
    parts = [part(day, small) for day, small in zip(days, (4, 5, 7), strict=True)]
    assert [p.small_files for p in plan_compaction(parts, TODAY, 5)] == [7, 5]
    assert plan_compaction([part(days[0], 1)], TODAY, 1) == (), "one file cannot be merged"


def test_files_that_would_be_as_many_as_before_are_left_alone() -> None:
    half = Part(TODAY - timedelta(days=1), 2, 2 * 75 * 2**20, 2, 2 * 75 * 2**20)
    assert plan_compaction([half], TODAY, 2) == ()
    assert plan_compaction([replace(half, small_files=3)], TODAY, 2) != ()


def test_a_table_without_dates_is_one_part() -> None:
    assert plan_compaction([replace(part(None), dated=False)], TODAY, 5)[0].name == "all"


@pytest.mark.parametrize(
    ("count", "size", "lengths"), [(3, 10_000, [3, 3, 1]), (9, 200, [2, 2, 2, 1]), (2, 1, [1] * 7)]
)
def test_parts_come_in_chunks_that_lose_none(count: int, size: int, lengths: list[int]) -> None:
    parts = [part(TODAY - timedelta(days=n)) for n in range(1, 8)]
    cut = list(chunks(parts, count, size))
    assert [len(chunk) for chunk in cut] == lengths
    assert [p for chunk in cut for p in chunk] == parts


@pytest.mark.parametrize(
    "options",
    [
        MaintenanceRunOptions(
            actions=(COMPACT,), compact_tables=("bronze", "silver"), min_files=2, dry_run=True
        ),
        MaintenanceRunOptions(
            actions=ACTIONS,
            compact_tables=TABLES,
            other_tables=("silver",),
            older_than=timedelta(hours=36),
            keep=3,
            orphans_older_than=timedelta(days=4),
            min_files=7,
        ),
        MaintenanceRunOptions(actions=(EXPIRE,), plan_run=4),
    ],
)
def test_the_options_of_a_run_survive_the_store(
    store: OpsStore, options: MaintenanceRunOptions
) -> None:
    run = store.submit(JobSpec("maintain-x", "maintain", "x", "batch", "r", options))
    assert MaintenanceRunOptions.of(run) == options


def test_without_options_a_run_compacts_and_expires() -> None:
    assert MaintenanceRunOptions() == MaintenanceRunOptions(
        actions=(COMPACT, EXPIRE), compact_tables=COMPACTED
    )


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "7 days", "1w", "9999999999d"])
def test_what_is_no_span_of_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no span of time"):
        span_of(text)


def topic(end: int, source_id: str = "t1") -> Range:
    return TopicRange("x", source_id, {"0": 0}, {"0": end})


def table(start: int | None, end: int, source: str = BRONZE) -> Range:
    return TableRange(source, "u1", start, end)


def marked(job: str, range_: Range) -> Marker:
    return Marker(job, 1, ("r",), NOW, 1, range_)


def intent(job: str, range_: Range, at: datetime = NOW) -> Intent:
    return Intent(1, job, 1, range_, ("r",), at, 1)


def test_a_job_that_goes_on_from_its_marker_needs_it_even_when_settled() -> None:
    books = Books({"bronze-x": topic(9)}, ())
    newest = {"bronze-x": marked("bronze-x", topic(9))}
    assert needs_of(BRONZE, newest, ("bronze-x",), {}, books).markers == {"bronze-x"}


@pytest.mark.parametrize(
    ("settled", "needed"),
    [
        (topic(9), False),
        (topic(12), False),
        (topic(8), True),
        (None, True),
        (topic(2, "t2"), False),
    ],
)
def test_a_refusal_marker_is_needed_until_bronze_has_gone_past_it(
    settled: Range | None, needed: bool
) -> None:
    newest = {"bronze-x": marked("bronze-x", topic(9))}
    needs = needs_of("dead", newest, (), {}, Books({"bronze-x": settled}, ()))
    assert bool(needs.markers) is needed


def test_a_fence_is_held_by_what_was_staged_and_not_for_ever() -> None:
    newest = {"fence-silver-x": marked("fence-silver-x", table(1, 4))}
    assert needs_of("lake.silver.x", newest, (), {}, Books({}, ())).markers == frozenset()


def test_an_open_batch_keeps_its_jobs_marker_and_what_came_since() -> None:
    newest = {"bronze-x": marked("bronze-x", topic(9))}
    books = Books({"bronze-x": topic(12)}, (intent("bronze-x", topic(20)),))
    needs = needs_of("dead", newest, (), {}, books)
    assert needs.markers == {"bronze-x"}
    assert needs.open_since == NOW
    assert needs_of("other", {}, (), {}, books).open_since is None


def test_the_first_batch_of_a_job_that_may_write_here_counts_as_open() -> None:
    books = Books({}, (intent("backfill-x", table(None, 8)),))
    silver = "lake.silver.x"
    assert needs_of(silver, {}, (), {}, books).open_since is None
    assert needs_of(silver, {}, (), {}, books, ("backfill-x",)).open_since == NOW


def test_readers_hold_what_their_marker_their_ledger_and_their_open_batches_name() -> None:
    books = Books({"silver-x": table(1, 4)}, (intent("backfill-x", table(None, 8)),))
    readers = {"silver-x": marked("silver-x", table(4, 6))}
    needs = needs_of(BRONZE, {}, (), readers, books)
    assert needs.positions == {6: "silver-x", 4: "silver-x", 8: "an open batch of backfill-x"}
    assert needs_of("lake.bronze.y", {}, (), readers, books).positions == {}


SIZE = Size(files=9, bytes=5000, small_files=9, parts=2, manifests=3, snapshots=4, metadata_files=7)

SNAPSHOTS = (
    SnapshotPlan(id=3, at=NOW, operation="append", goes=False, why="the current snapshot"),
    SnapshotPlan(id=2, at=NOW - timedelta(days=9), operation="append", goes=True, why="old"),
    SnapshotPlan(id=1, at=NOW - timedelta(days=9), operation="append", goes=True, why="old"),
)


def plan(**changes: object) -> TablePlan:
    usual = TablePlan(
        role="silver",
        table="lake.silver.x",
        uuid="u",
        snapshot=3,
        size=SIZE,
        compact=(PartPlan(name="2026-02-01", small_files=6, small_bytes=600),),
        expire=SNAPSHOTS,
        orphans=(OrphanPlan(path="/a/b", bytes=2048),),
    )
    return usual.model_copy(update=changes)


def test_a_later_plan_does_nothing_that_was_not_shown() -> None:
    shown = plan(
        compact=(PartPlan(name="2026-02-02", small_files=6, small_bytes=1),),
        expire=SNAPSHOTS[:2],
        orphans=(OrphanPlan(path="/other", bytes=1),),
    )
    now = plan(rewrite_manifests=True).within(shown)
    assert (now.compact, now.orphans, now.rewrite_manifests) == ((), (), False)
    assert now.going == {2}
    assert plan().within(plan()) == plan()


def test_nothing_is_done_to_a_table_that_was_made_anew() -> None:
    assert not plan().within(plan(uuid="another")).has_work
    assert not plan().within(None).has_work


def test_the_plan_and_the_report_read_well() -> None:
    whole = Plan(job="maintain-x", run=3, made_at=NOW, tables=(plan(),))
    assert Plan.model_validate_json(whole.model_dump_json()) == whole
    assert plan_text(whole) == (
        "Plan of maintain-x, 2026-03-01 12:00:00 UTC\n\n"
        "lake.silver.x\n"
        "  9 files in 2 parts, 4.9 KB; 4 snapshots, 3 manifests, 7 metadata files\n"
        "  compact: 6 small files in 1 part\n"
        "    2026-02-01        6 files       600 B\n"
        "  expire: 2 snapshots of 3\n"
        "    stays  3, 0 s old: the current snapshot\n"
        "    goes  2 snapshots, 9 d old: old\n"
        "  vacuum: 1 orphan file, 2.0 KB\n"
        "    /a/b  2.0 KB"
    )
    done = TableReport(
        table="lake.silver.x",
        before=SIZE,
        after=SIZE.model_copy(update={"files": 4}),
        parts_compacted=1,
        parts_left=("2026-02-03",),
        retries=2,
    )
    untouched = TableReport(table="lake.bronze.x", before=SIZE, after=SIZE)
    report = Report(job="maintain-x", run=3, tables=(untouched, done))
    text = report_text(report)
    assert text.startswith("Report of maintain-x run 3: 1 part compacted (-5 files)\n\nlake.silver")
    assert "files                    9 →          4" in text
    assert "compacted 1 part, 2 tried again" in text
    assert "left for the next time, since others wrote there: 2026-02-03" in text
    assert "lake.bronze.x" not in text, "nothing was done there"


def test_manifests_that_were_rewritten_are_told() -> None:
    done = TableReport(table="lake.silver.x", before=SIZE, after=SIZE, manifests_rewritten=31)
    report = Report(job="maintain-x", run=3, tables=(done,))
    assert report.sentence == "31 manifests rewritten"
    assert "rewrote 31 manifests" in report_text(report)


def test_tables_stand_in_the_order_of_a_plan_with_the_jobs_of_every_capability(
    store: OpsStore,
) -> None:
    dataset = DatasetRevision(
        name="x",
        topic="t",
        dlq_topic="t.dlq",
        bronze_table="bronze.x",
        silver_table="silver.x",
        templates={},
    )
    run = store.submit(JobSpec("maintain-x", "maintain", "x", "batch", keep(store, dataset)))
    store.submit(JobSpec("quality-b", "quality", "b", "batch", "r"))
    store.submit(JobSpec("reconcile-a", "reconcile", "a", "batch", "r"))
    listed = [use for entry in MAINTAINED for use in load(entry)(store, run)]
    uses = merge_uses(listed)
    rules = [f"dq.{kind}_{name}" for name in "ab" for kind in ("states", "results", "partials")]
    assert list(uses) == ["bronze", "silver", "dead-letters", *rules]
    assert (uses["bronze"].resuming, uses["bronze"].readers) == (
        {"bronze-x"},
        {"silver-x": "silver"},
    )
    assert (uses["silver"].resuming, uses["silver"].writing) == ({"silver-x"}, {"backfill-x"})
    assert uses["dq.results_a"].resuming == {"quality-a", "reconcile-a", "sweep-a"}
    judging = {f"{kind}-{name}" for name in "ab" for kind in ("quality", "reconcile", "sweep")}
    assert uses["dead-letters"].writing == {"bronze-x", *judging}
    assert {use.name for use in listed if use.role == "dq.states_b"} == {"lake.dq.states_b"}


def test_a_run_that_another_engine_left_goes_on_within_its_own_plan(store: OpsStore) -> None:
    """Its plan stands in the place of the one that was shown, and is no more than that."""

    def keep(run: int) -> Plan:
        plan = Plan(job="maintain-x", run=run, made_at=NOW, tables=())
        store.part(MaintenanceStore).write_plan(plan)
        return plan

    shown = keep(1)
    assert read_plan(store, "maintain-x", 1, resumed=2) == shown
    own = keep(2)
    assert read_plan(store, "maintain-x", 1, resumed=2) == own
    keep(3)
    with pytest.raises(ConflictError, match="no longer the newest"):
        read_plan(store, "maintain-x", 1, resumed=2)


def test_a_report_is_that_of_the_run_that_was_asked_for(store: OpsStore) -> None:
    stored = store.part(MaintenanceStore)
    report = Report(job="maintain-x", run=1, tables=())
    stored.write_plan(Plan(job="maintain-x", run=1, made_at=NOW, tables=()))
    assert read_report(store, "maintain-x", 1) is None
    stored.write_report(report)
    assert read_report(store, "maintain-x", 1) == report
    assert read_report(store, "maintain-x", 2) is None
    stored.write_plan(Plan(job="maintain-x", run=2, made_at=NOW, tables=()))
    assert read_report(store, "maintain-x", 2) is None
