"""The job kinds of a dataset: bronze follows its topic, silver reads bronze, backfill makes days of silver anew."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from headgate.config.settings import Settings
from headgate.core.engine.job_kind import (
    DeclaredRun,
    JobDetails,
    JobKind,
    always,
    need_default_dataset,
)
from headgate.core.engine.run_options import TopicRunOptions, choose_trigger
from headgate.core.ledger.model import Run, RunOptions
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import TableRange, expect_range
from headgate.core.sql.fragments import job_name
from headgate.pipeline.accounting import declared_dataset
from headgate.pipeline.revision import Dates, declared_revision, keep

LOOK_BACK = 10_000


class SilverRunForm(StrEnum):
    """Which rows of bronze a batch run of silver takes."""

    # Those that silver has not seen; all of them where silver cannot go on from what it has.
    AUTO = "auto"
    FULL = "full"


class SilverRunOptions(RunOptions):
    """The options of a run of silver."""

    form: SilverRunForm = SilverRunForm.AUTO


class BackfillRunOptions(RunOptions):
    """The options of a backfill; one without dates is refused when it begins."""

    dates: Dates | None = None


def declare_run(settings: Settings, store: OpsStore, dataset: str, mode: str) -> DeclaredRun:
    """The dataset as it is declared now."""
    declared = declared_revision(settings, dataset)
    return DeclaredRun(keep(store, declared))


def declare_bronze_run(settings: Settings, store: OpsStore, dataset: str, mode: str) -> DeclaredRun:
    """The dataset as it is declared now, with all that the settings here say of what bronze reads."""
    declared = declared_revision(settings, dataset)
    topic, dlq_topic = declared.topic_names(settings)
    options = TopicRunOptions(
        topic=topic,
        dlq_topic=dlq_topic,
        trigger_seconds=choose_trigger(mode, settings.trigger_seconds),
        max_offsets_per_batch=settings.max_offsets_per_batch,
    )
    return DeclaredRun(keep(store, declared), options)


def declared_topics(settings: Settings, dataset: str) -> Mapping[str, str]:
    return {"": declared_dataset(settings, dataset).topic}


def generator_dead_letters(settings: Settings, dataset: str) -> int:
    """What the generator refused to send, as validation counts it: by its metrics and its topic."""
    from headgate.pipeline.accounting import generator_metrics, generator_refusals

    manifest, sent = declared_dataset(settings, dataset), generator_metrics(settings)
    metrics = sent if sent and sent.topic == manifest.topic else None
    return generator_refusals(settings, manifest.dlq_topic, metrics)


def silver_details(store: OpsStore, run: Run) -> JobDetails:
    behind = rows_behind(store, run.subject)
    return JobDetails(lag_records=behind, lag_words=f"{behind:,} rows of bronze")


def rows_behind(store: OpsStore, dataset: str) -> int:
    """Rows of bronze that silver has not read yet, by the ledger's last batches."""
    last = store.newest_batches(job_name("silver", dataset), 1)
    seen = expect_range(last[0].range, TableRange).last if last else None
    behind = 0
    for row in reversed(store.newest_batches(job_name("bronze", dataset), LOOK_BACK)):
        # Silver may have seen a snapshot of maintenance, which no batch of bronze names.
        if seen in row.snapshots.values() or (last and row.committed_at < last[0].batch_time):
            break
        behind += row.outcomes.get("accepted", 0)
    return behind


BRONZE = JobKind(
    name="bronze",
    subject="dataset",
    run="headgate.pipeline.bronze:run_bronze",
    declare_run=declare_bronze_run,
    options=TopicRunOptions,
    default_subject=need_default_dataset,
    can_stream=True,
    topics=declared_topics,
    needs_broker=always,
    other_dead_letters=generator_dead_letters,
    # Of silver and backfill as well, so that the rows of one dataset follow upon each other.
    rebuild="headgate.pipeline.rebuild:recover_datasets",
)
SILVER = JobKind(
    name="silver",
    subject="dataset",
    run="headgate.pipeline.silver:run_silver",
    declare_run=declare_run,
    options=SilverRunOptions,
    default_subject=need_default_dataset,
    can_stream=True,
    details=silver_details,
)
BACKFILL = JobKind(
    name="backfill",
    subject="dataset",
    run="headgate.pipeline.backfill:run_backfill",
    declare_run=declare_run,
    options=BackfillRunOptions,
    default_subject=need_default_dataset,
)
