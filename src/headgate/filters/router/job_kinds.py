"""The job kinds of filters: the router of a topic, and the replay of what one filter missed.

They judge by what is deployed, so their runs have no revision of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.config.settings import Settings
from headgate.core.engine.job_kind import DeclaredRun, JobDetails, JobKind, always
from headgate.core.engine.run_options import TopicRunOptions, choose_trigger
from headgate.core.ledger.model import Run
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.router.plan import REPLAY
from headgate.filters.store.routing import RoutingStore

# A consumer waits for what is routed; a look at an idle topic costs little.
ROUTER_SECONDS = 1.0


@dataclass(frozen=True)
class RouterFilter:
    """The status of one filter of a router, as `job show` shows it."""

    filter: str
    standing: str
    revision: str
    sent: int
    refused: int
    reason: str


def declare_router_run(settings: Settings, store: OpsStore, topic: str, mode: str) -> DeclaredRun:
    options = TopicRunOptions(
        topic=topic,
        dlq_topic=dlq_topic_of(topic),
        trigger_seconds=choose_trigger(mode, ROUTER_SECONDS),
        max_offsets_per_batch=settings.max_offsets_per_batch,
    )
    return DeclaredRun("", options)


def declare_replay_run(settings: Settings, store: OpsStore, filter: str, mode: str) -> DeclaredRun:
    return DeclaredRun("")


def dlq_topic_of(source: str) -> str:
    """Where the dead letters of a topic go beside their table."""
    return f"{source}.dlq"


def default_topic(settings: Settings) -> str:
    return settings.filter_source_topic


def own_topic(settings: Settings, topic: str) -> Mapping[str, str]:
    return {"": topic}


def router_details(store: OpsStore, run: Run) -> JobDetails:
    """The filters of the router's topic, with what they sent on and refused."""
    sums = store.part(RoutingStore).routed_sums()
    filters = (
        RouterFilter(
            one.filter,
            one.standing.value,
            one.revision[:12],
            *sums.get(one.filter, (0, 0)),
            one.reason,
        )
        for one in store.part(RoutingStore).seen(run.subject)
    )
    return JobDetails(filters=tuple(filters))


ROUTER_KIND = JobKind(
    name="router",
    subject="topic",
    run="headgate.filters.router.job:run_router",
    declare_run=declare_router_run,
    options=TopicRunOptions,
    default_subject=default_topic,
    can_stream=True,
    topics=own_topic,
    needs_broker=always,
    shows_revisions=True,
    details=router_details,
)
REPLAY_KIND = JobKind(
    name=REPLAY,
    subject="filter",
    run="headgate.filters.router.replay:run_replay",
    declare_run=declare_replay_run,
    title="a replay",
    needs_broker=always,
    shows_revisions=True,
)
