"""Ask for a run and wait for it: the wanted state goes into the ops store, the observed state comes back.

The same request again returns the run under way; a different one is refused with what differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from headgate.config.settings import Settings
from headgate.core.engine import run as reading
from headgate.core.engine.lease import active_engine
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.model import ACTIVE, JobSpec, Run, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import job_name
from headgate.errors import (
    ConflictError,
    HeadgateError,
    OperationError,
    UnavailableError,
    UsageError,
)
from headgate.pipeline import revision as declaration
from headgate.quality import revision as rules_revision
from headgate.quality.compile.tables import QUALITY, RECONCILE
from headgate.quality.deploy import refuse_other_width
from headgate.quality.revision import RulesRevision

ROUTER, REPLAY = "router", "replay"
KINDS = ("bronze", "silver", "backfill", "maintain", QUALITY, RECONCILE, ROUTER, REPLAY)
# Jobs of a rule table.
OF_RULES = (QUALITY, RECONCILE)
# Jobs of filters: they judge by what is deployed, so they have no revision of their own.
OF_FILTERS = (ROUTER, REPLAY)
# A consumer waits for what is routed; a look at an idle topic costs little.
ROUTER_SECONDS = 1.0
# Jobs that a dataset has one of each: named alone, they are the active dataset's.
OF_A_DATASET = ("bronze", "silver", "backfill", "maintain")
# The streams of a dataset.
STREAMS = ("bronze", "silver")
POLL_SECONDS = 0.2


def split_job(settings: Settings, job: str) -> tuple[str, str]:
    """`bronze-x` or, for the active dataset, plain `bronze`: the kind and the dataset.

    The job of a rule table is always named whole, with its table; a router's subject is its topic, and
    plain `router` follows FILTER_SOURCE_TOPIC; that of a replay is its filter.
    """
    kind, _, dataset = job.partition("-")
    if kind not in KINDS:
        raise UsageError(
            f"there is no job {job}", fix=f"use one of {', '.join(KINDS)}, or bronze-<dataset>"
        )
    if kind in OF_RULES and not dataset:
        raise UsageError(f"a {kind} job is named with its rule table", fix=f"write {kind}-<table>")
    if kind == REPLAY and not dataset:
        raise UsageError("a replay is named with its filter", fix="write replay-<filter>")
    if kind == ROUTER:
        return kind, dataset or settings.filter_source_topic
    return kind, dataset or str(settings.need("dataset"))


def full_name(settings: Settings, job: str) -> str:
    """`bronze` or `bronze-x` as the store knows it: `bronze-<dataset>`."""
    return job_name(*split_job(settings, job))


def refuse_unless_stream(kind: str) -> None:
    """Only what follows a source can go on for ever."""
    able = (*STREAMS, *OF_RULES, ROUTER)
    if kind not in able:
        raise UsageError(
            f"{kind} is no stream", fix=f"start one of {', '.join(able)}, or: headgate job run"
        )


def streams_of(mode: str) -> tuple[str, ...]:
    """The kinds of job that run as streams in this MODE; asked for in batch mode, bronze does."""
    return STREAMS if mode == "streaming_silver" else STREAMS[:1]


def need_engine(store: OpsStore) -> None:
    """A stream outlives the command that asks for it, so an engine must be there."""
    if active_engine(store) is None:
        raise UnavailableError(
            "no engine is running",
            why="a stream runs on the engine, and nobody holds its lease",
            fix="make up (or: headgate local up), then the same command again",
        )


def need_broker(settings: Settings, job: str) -> None:
    """Raise before Spark is started for a job whose broker is away: it could only fail."""
    kind, subject = split_job(settings, job)
    if kind in OF_RULES:
        declared = rules_revision.declared_rules(settings, subject)
        refuse_other_kind(declared, kind)
        if not declared.follows_a_topic:
            return
    elif kind not in ("bronze", ROUTER, REPLAY):
        return
    if not settings.bootstrap_servers and settings.broker == "embedded":
        raise UnavailableError(
            "the embedded broker is not running",
            why=f"{kind} reads a topic, and {settings.running_file} is not there",
            fix="make up (or: headgate local up), then the same command again",
        )
    Topics(settings.need("bootstrap_servers")).need()


def ask_for(
    settings: Settings, store: OpsStore, job: str, mode: str, options: Mapping[str, str]
) -> Run:
    """A new run of the job, or the one that is under way when it is the same."""
    kind, dataset = split_job(settings, job)
    if mode == "streaming":
        refuse_unless_stream(kind)
    if kind in OF_RULES:
        spec = _rules_spec(settings, store, (kind, dataset), mode, options)
    elif kind in OF_FILTERS:
        spec = _filters_spec(settings, (kind, dataset), mode, options)
    else:
        spec = _spec(settings, store, (kind, dataset), mode, options)
    latest = store.latest(spec.job)
    if latest is None or latest.state not in ACTIVE:
        return _submitted(store, spec)
    asked = reading.comparable(spec.options, latest.options)
    running = replace(latest, revision=_judging(store, latest))
    if (running.mode, running.revision, dict(running.options)) == (mode, spec.revision, asked):
        return latest
    raise _in_another_form(spec, running)


def _submitted(store: OpsStore, spec: JobSpec) -> Run:
    """A new run; to start a rule table's job is to deploy what is declared, before an engine sees it."""
    if spec.kind in OF_RULES:
        refuse_results_of_other_kind(store, spec.kind, spec.subject)
        refuse_other_width(store, rules_revision.fetch(store, spec.revision))
        store.mark(rules_revision.deployed_mark(spec.subject), spec.revision)
    return store.submit(spec)


def _judging(store: OpsStore, run: Run) -> str:
    """The revision by which the run judges: one may have been deployed since it began."""
    if run.kind not in OF_RULES:
        return run.revision
    return rules_revision.deployed(store, run.subject) or run.revision


def _rules_spec(
    settings: Settings,
    store: OpsStore,
    of: tuple[str, str],
    mode: str,
    options: Mapping[str, str],
) -> JobSpec:
    """The rule table as it is declared now."""
    (kind, table), job = of, job_name(*of)
    declared = rules_revision.declared_rules(settings, table)
    refuse_other_kind(declared, kind)
    reads: dict[str, str] = {}
    if declared.kind == RECONCILE:
        reads = reading.pair_options(declared, settings, mode)
    elif declared.follows_a_topic:
        first = declared.first
        reads = reading.Reading(
            declared.topic_of(first, settings),
            declared.dlq_topic_of(first, settings),
            settings.trigger_seconds,
            settings.max_offsets_per_batch,
        ).options(mode)
    elif mode == "streaming":
        raise UsageError(
            f"{job} is no stream",
            why="a table is judged by its snapshot; only the records of topics are judged as they come",
            fix=f"headgate job run {job}",
        )
    revision = rules_revision.keep(store, declared)
    return JobSpec(job, kind, table, mode, revision, {**options, **reads})


def _filters_spec(
    settings: Settings, of: tuple[str, str], mode: str, options: Mapping[str, str]
) -> JobSpec:
    """The router of a topic, or the replay of a filter."""
    kind, subject = of
    reads: dict[str, str] = {}
    if kind == ROUTER:
        most = settings.max_offsets_per_batch
        reads = reading.Reading(subject, f"{subject}.dlq", ROUTER_SECONDS, most).options(mode)
    return JobSpec(job_name(*of), kind, subject, mode, "", {**options, **reads})


def refuse_other_kind(declared: RulesRevision, kind: str) -> None:
    """Raise where a table is asked for by the wrong kind: two sources are reconciled, one is judged."""
    if declared.kind != kind:
        sources = "two sources" if declared.kind == RECONCILE else "one source"
        job = job_name(declared.kind, declared.name)
        raise UsageError(
            f"there is no job {job_name(kind, declared.name)}",
            why=f"the table {declared.name} has {sources}, so its job is {job}",
            fix=f"headgate job run {job}",
        )


def refuse_results_of_other_kind(store: OpsStore, kind: str, table: str) -> None:
    """Raise where the table once had another number of sources: its results are rows of another form."""
    (other,) = (each for each in OF_RULES if each != kind)
    job = job_name(other, table)
    if store.newest_batches(job, 1):
        raise UsageError(
            f"lake.dq.results_{table} holds the results of {job}",
            why="the results of one source and those of two have different columns, and the ledger"
            " accounts for those that are there",
            fix=f"declare the table under another name, for example `name: {table}_{kind}`",
        )


def _spec(
    settings: Settings,
    store: OpsStore,
    of: tuple[str, str],
    mode: str,
    options: Mapping[str, str],
) -> JobSpec:
    """The job as it is declared now, with all that the settings here say of what it reads."""
    kind, dataset = of
    declared = declaration.declared_revision(settings, dataset)
    reads: dict[str, str] = {}
    if kind == "bronze":
        reads = reading.Reading.declared(declared, settings).options(mode)
    revision = declaration.keep(store, declared)
    return JobSpec(job_name(*of), kind, dataset, mode, revision, {**options, **reads})


def _in_another_form(spec: JobSpec, latest: Run) -> ConflictError:
    job, is_stream = spec.job, latest.mode == "streaming"
    otherwise = reading.differing(spec.options, latest.options)
    if is_stream and spec.mode == "streaming" and otherwise:
        return ConflictError(
            f"{job} is already a stream, and reads otherwise",
            why=f"its run {latest.number} has {otherwise}",
            fix=f"headgate job restart {job}, with the same variables in front: it goes on with them",
        )
    if is_stream and spec.mode == "streaming":
        deploy = f"headgate rules deploy {spec.subject}: it takes over between two batches"
        restart = f"headgate job restart {job}: it goes on under the declared one"
        return ConflictError(
            f"{job} is already a stream, under another revision",
            why=f"its run {latest.number} has {latest.revision[:12]}, declared is {spec.revision[:12]}",
            fix=deploy if spec.kind in OF_RULES else restart,
        )
    if is_stream:
        return ConflictError(
            f"{job} is a stream that is {latest.state}: it reads new records by itself",
            why=f"its run {latest.number} is under way, and a batch run would read the same records",
            fix=f"let it, or switch to batch: headgate job stop {job}, then this again",
        )
    return ConflictError(
        f"{job} is already {latest.state} in another form",
        why=f"its run {latest.number} is {latest.mode} under revision {latest.revision[:12]}",
        fix=f"wait for it, or stop it: headgate job stop {job}",
    )


def wait_for(
    store: OpsStore,
    run: Run,
    watch: Callable[[Run], None],
    alive: Callable[[Run], None] = lambda _: None,
) -> Run:
    """The run once it has ended; `watch` sees it while it goes on, `alive` may give up."""
    while True:
        now = store.run(run.job, run.number)
        watch(now)
        if now.state not in ACTIVE:
            return now
        alive(now)
        time.sleep(POLL_SECONDS)


def raise_unless_finished(run: Run) -> None:
    if run.state is RunState.FINISHED:
        return
    if run.state is RunState.CANCELED:
        raise OperationError(f"{run.job} run {run.number} was stopped", fix="start it again")
    what, *rest = (run.error_text or "it failed without a word").split(" | ")
    raise RunFailedError(run, what, *rest)


class RunFailedError(HeadgateError):
    """A run ended as FAILED; it carries the code of what went wrong there."""

    def __init__(self, run: Run, what: str, why: str = "", fix: str = "") -> None:
        super().__init__(f"{run.job} run {run.number} failed: {what}", why=why, fix=fix)
        self.code = run.error_code or OperationError.code
