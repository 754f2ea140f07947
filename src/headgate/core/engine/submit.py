"""Ask for a run and wait for it: the wanted state goes into the ops store, the observed state comes back.

The same request again returns the run under way; a different one is refused with what differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from headgate.config.settings import Settings
from headgate.core.engine.job_kind import KINDS, JobKind
from headgate.core.engine.lease import active_engine
from headgate.core.engine.run_options import describe_differences
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.model import ACTIVE, JobSpec, Run, RunOptions, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import job_name
from headgate.errors import (
    ConflictError,
    HeadgateError,
    OperationError,
    UnavailableError,
    UsageError,
)

POLL_SECONDS = 0.2
# The request for a run that is as it is declared.
AS_DECLARED = RunOptions()


def split_job(settings: Settings, job: str) -> tuple[JobKind, str]:
    """`bronze-x` or, for the active dataset, plain `bronze`: the kind and the subject.

    Plain `router` follows FILTER_SOURCE_TOPIC; the job of a rule table or a filter is always named whole.
    """
    name, _, subject = job.partition("-")
    if name not in KINDS:
        raise UsageError(
            f"there is no job {job}", fix=f"use one of {', '.join(KINDS)}, or bronze-<dataset>"
        )
    kind = KINDS[name]
    if subject:
        return kind, subject
    if kind.default_subject is None:
        raise UsageError(
            f"{kind.title} is named with its {kind.subject}",
            fix=f"write {name}-<{kind.subject.split()[-1]}>",
        )
    return kind, kind.default_subject(settings)


def full_name(settings: Settings, job: str) -> str:
    """`bronze` or `bronze-x` as the store knows it: `bronze-<dataset>`."""
    kind, subject = split_job(settings, job)
    return job_name(kind.name, subject)


def refuse_unless_stream(kind: JobKind) -> None:
    """Only what follows a source can go on for ever."""
    if not kind.can_stream:
        able = ", ".join(name for name, each in KINDS.items() if each.can_stream)
        raise UsageError(
            f"{kind.name} is no stream", fix=f"start one of {able}, or: headgate job run"
        )


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
    if not kind.needs_broker(settings, subject):
        return
    if not settings.bootstrap_servers and settings.broker == "embedded":
        raise UnavailableError(
            "the embedded broker is not running",
            why=f"{kind.name} reads a topic, and {settings.running_file} is not there",
            fix="make up (or: headgate local up), then the same command again",
        )
    Topics(settings.need("bootstrap_servers")).need()


def ask_for(
    settings: Settings, store: OpsStore, job: str, mode: str, request: RunOptions = AS_DECLARED
) -> Run:
    """A new run of the job, or the one that is under way when it is the same.

    The options of the run are those that are declared and those of the request, which name different fields
    of the kind's model.
    """
    kind, subject = split_job(settings, job)
    if mode == "streaming":
        refuse_unless_stream(kind)
    declared = kind.declare_run(settings, store, subject, mode)
    options = kind.options.model_validate({**dict(declared.options), **dict(request)})
    name = job_name(kind.name, subject)
    spec = JobSpec(name, kind.name, subject, mode, declared.revision, options)
    latest = store.latest(spec.job)
    if latest is None or latest.state not in ACTIVE:
        kind.before_submit(store, spec)
        return store.submit(spec)
    running = replace(latest, revision=kind.revision_in_force(store, latest))
    if (running.mode, running.revision, kind.options.of(running)) == (mode, spec.revision, options):
        return latest
    raise _in_another_form(kind, spec, running)


def _in_another_form(kind: JobKind, spec: JobSpec, latest: Run) -> ConflictError:
    job, is_stream = spec.job, latest.mode == "streaming"
    otherwise = describe_differences(spec.options, kind.options.of(latest))
    if is_stream and spec.mode == "streaming" and otherwise:
        return ConflictError(
            f"{job} is already a stream, and reads otherwise",
            why=f"its run {latest.number} has {otherwise}",
            fix=f"headgate job restart {job}, with the same variables in front: it goes on with them",
        )
    if is_stream and spec.mode == "streaming":
        return ConflictError(
            f"{job} is already a stream, under another revision",
            why=f"its run {latest.number} has {latest.revision[:12]}, declared is {spec.revision[:12]}",
            fix=kind.revision_fix.format(job=job, subject=spec.subject),
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
