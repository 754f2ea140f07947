"""The job kind `quality`: judges a rule table of one source; and what `reconcile` does alike for two sources.

To start a job of a rule table is to deploy what is declared. A run goes by the revision that was deployed
last, so a stream that is under way takes another one over between two batches.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.config.settings import Settings
from headgate.core.engine.job_kind import DeclaredRun, JobDetails, JobKind
from headgate.core.engine.run_options import TopicRunOptions, choose_trigger
from headgate.core.ledger.model import JobSpec, Run
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import job_name
from headgate.errors import UsageError
from headgate.quality.compile.tables import QUALITY, RECONCILE
from headgate.quality.deploy import refuse_other_width
from headgate.quality.revision import RulesRevision, declared_rules, fetch, keep
from headgate.quality.store import RuleStore

REVISION_FIX = "headgate rules deploy {subject}: it takes over between two batches"


class QualityRunOptions(TopicRunOptions):
    """The options of a run of a rule table; the defaults are those of a table that is judged by its snapshot."""

    topic: str = ""
    dlq_topic: str = ""
    trigger_seconds: float | None = None
    max_offsets_per_batch: int = 0

    @property
    def topics(self) -> Mapping[str, str]:
        return super().topics if self.topic else {}


def declare_run(settings: Settings, store: OpsStore, table: str, mode: str) -> DeclaredRun:
    """The rule table as it is declared now."""
    declared = declared_of_kind(settings, table, QUALITY)
    options = QualityRunOptions()
    if declared.follows_a_topic:
        options = QualityRunOptions(
            topic=declared.topic_of(declared.first, settings),
            dlq_topic=declared.dlq_topic_of(declared.first, settings),
            trigger_seconds=choose_trigger(mode, settings.trigger_seconds),
            max_offsets_per_batch=settings.max_offsets_per_batch,
        )
    elif mode == "streaming":
        job = job_name(QUALITY, table)
        raise UsageError(
            f"{job} is no stream",
            why="a table is judged by its snapshot; only the records of topics are judged as they come",
            fix=f"headgate job run {job}",
        )
    return DeclaredRun(keep(store, declared), options)


def declared_of_kind(settings: Settings, table: str, kind: str) -> RulesRevision:
    """The declared table; raises where its job is of the other kind: two sources are reconciled, one is judged."""
    declared = declared_rules(settings, table)
    if declared.kind != kind:
        sources = "two sources" if declared.kind == RECONCILE else "one source"
        job = job_name(declared.kind, declared.name)
        raise UsageError(
            f"there is no job {job_name(kind, declared.name)}",
            why=f"the table {declared.name} has {sources}, so its job is {job}",
            fix=f"headgate job run {job}",
        )
    return declared


def follows_a_topic(settings: Settings, table: str) -> bool:
    return declared_of_kind(settings, table, QUALITY).follows_a_topic


def declared_topic(settings: Settings, table: str) -> Mapping[str, str]:
    """The topic of the only source; a table that is judged by its snapshot has none, and no lag."""
    rules = declared_rules(settings, table)
    if not rules.follows_a_topic:
        job = job_name(QUALITY, table)
        raise UsageError(
            f"{job} judges a snapshot of a table, so it has no lag",
            fix=f"headgate job run {job} judges the current one",
        )
    return {"": rules.topic_of(rules.first, settings)}


def deploy_with_run(store: OpsStore, spec: JobSpec) -> None:
    """Deploy the revision of a new run, before an engine sees the run."""
    refuse_results_of_other_kind(store, spec.kind, spec.subject)
    refuse_other_width(store, fetch(store, spec.revision))
    store.part(RuleStore).write_deployed_revision(spec.subject, spec.revision)


def refuse_results_of_other_kind(store: OpsStore, kind: str, table: str) -> None:
    """Raise where the table once had another number of sources: its results are rows of another form."""
    other = QUALITY if kind == RECONCILE else RECONCILE
    job = job_name(other, table)
    if store.newest_batches(job, 1):
        raise UsageError(
            f"lake.dq.results_{table} holds the results of {job}",
            why="the results of one source and those of two have different columns, and the ledger"
            " accounts for those that are there",
            fix=f"declare the table under another name, for example `name: {table}_{kind}`",
        )


def deployed_revision(store: OpsStore, run: Run) -> str:
    """The revision by which the run judges: one may have been deployed since it began."""
    return store.part(RuleStore).deployed_revision(run.subject) or run.revision


def rules_details(store: OpsStore, run: Run) -> JobDetails:
    """By which revision a rule table's job judges now, and how many keys its rules have in memory."""
    from headgate.core.metrics.names import UNIQUE_KEYS

    revision = store.part(RuleStore).running_revision(run.job) or ""
    keys = store.gauges(UNIQUE_KEYS.name).get((run.job,))
    return JobDetails(revision=revision, keys=None if keys is None else int(keys))


QUALITY_KIND = JobKind(
    name=QUALITY,
    subject="rule table",
    run="headgate.quality.job.run:run_quality",
    declare_run=declare_run,
    options=QualityRunOptions,
    title="a quality job",
    can_stream=True,
    topics=declared_topic,
    needs_broker=follows_a_topic,
    before_submit=deploy_with_run,
    revision_in_force=deployed_revision,
    revision_fix=REVISION_FIX,
    shows_revisions=True,
    details=rules_details,
    write_report="headgate.quality.cli.report:report_after_run",
    rebuild="headgate.quality.job.batch:recover_rule_tables",
    services=("headgate.quality.job.run:kept_views", "headgate.quality.job.windows:closing_idle"),
)
