"""The job kind `reconcile`: judges a rule table of two sources key by key; what both kinds do alike is quality's."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.config.settings import Settings
from headgate.core.engine.job_kind import DeclaredRun, JobKind
from headgate.core.engine.run_options import KafkaRunOptions, choose_trigger
from headgate.core.ledger.ops_store import OpsStore
from headgate.quality.compile.tables import RECONCILE
from headgate.quality.job_kind import (
    REVISION_FIX,
    declared_of_kind,
    deploy_with_run,
    deployed_revision,
    rules_details,
)
from headgate.quality.revision import RulesRevision, declared_rules, keep


class PairRunOptions(KafkaRunOptions):
    """The options of a run that reconciles the topics of a pair."""

    topic_onprem: str
    topic_cloud: str

    @property
    def topics(self) -> Mapping[str, str]:
        return {"onprem": self.topic_onprem, "cloud": self.topic_cloud}


def declare_run(settings: Settings, store: OpsStore, table: str, mode: str) -> DeclaredRun:
    """The pair as it is declared now."""
    declared = declared_of_kind(settings, table, RECONCILE)
    topics = _topics_of(declared, settings)
    options = PairRunOptions(
        topic_onprem=topics["onprem"],
        topic_cloud=topics["cloud"],
        trigger_seconds=choose_trigger(mode, settings.trigger_seconds),
        max_offsets_per_batch=settings.max_offsets_per_batch,
    )
    return DeclaredRun(keep(store, declared), options)


def follows_a_topic(settings: Settings, table: str) -> bool:
    return declared_of_kind(settings, table, RECONCILE).follows_a_topic


def declared_topics(settings: Settings, table: str) -> Mapping[str, str]:
    return _topics_of(declared_rules(settings, table), settings)


def _topics_of(rules: RulesRevision, settings: Settings) -> dict[str, str]:
    return {source.side: rules.topic_of(source, settings) for source in rules.sources}


RECONCILE_KIND = JobKind(
    name=RECONCILE,
    subject="rule table",
    run="headgate.reconcile.job.job:run_reconcile",
    declare_run=declare_run,
    options=PairRunOptions,
    title="a reconcile job",
    can_stream=True,
    topics=declared_topics,
    needs_broker=follows_a_topic,
    before_submit=deploy_with_run,
    revision_in_force=deployed_revision,
    revision_fix=REVISION_FIX,
    shows_revisions=True,
    details=rules_details,
    write_report="headgate.reconcile.cli.report:report_after_run",
    rebuild="headgate.reconcile.job.target:recover_pairs",
)
