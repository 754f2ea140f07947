"""Leases and runs: which engine is active, and the state of each run of a job.

A lease's token only rises, so that a holder that was suspended is recognised. A run moves along legal transitions
only and is never deleted. All functions work inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Update, func, insert, select, update

from headgate.core.ledger.model import (
    ACTIVE,
    TRANSITIONS,
    JobSpec,
    Lease,
    Progress,
    Run,
    RunState,
)
from headgate.core.ledger.tables import leases, runs
from headgate.errors import ConflictError, DriverLostError, LeaseLostError, OperationError

NOBODY = ""


def acquire(db: Connection, name: str, holder: str, now: datetime, until: datetime) -> Lease | None:
    held = find_lease(db, name)
    if held is None:
        lease = Lease(name, holder, 1, until)
        db.execute(insert(leases).values(**vars(lease)))
        return lease
    if held.holder not in (holder, NOBODY) and held.expires_at > now:
        return None
    token = held.token if held.holder == holder else held.token + 1
    return _store(db, Lease(name, holder, token, until))


def renew(db: Connection, lease: Lease, until: datetime) -> Lease:
    if not _is_held(db, lease):
        raise LeaseLostError(
            f"the lease {lease.name} is no longer held by {lease.holder}",
            why="another process took it over after it ran out",
            fix="stop this process; the new holder carries on",
        )
    return _store(db, Lease(lease.name, lease.holder, lease.token, until))


def release(db: Connection, lease: Lease, now: datetime) -> None:
    if _is_held(db, lease):
        _store(db, Lease(lease.name, NOBODY, lease.token, now))


def find_lease(db: Connection, name: str) -> Lease | None:
    row = db.execute(select(leases).where(leases.c.name == name)).one_or_none()
    return Lease(row.name, row.holder, row.token, row.expires_at) if row else None


def _is_held(db: Connection, lease: Lease) -> bool:
    held = find_lease(db, lease.name)
    return held is not None and (held.holder, held.token) == (lease.holder, lease.token)


def _store(db: Connection, lease: Lease) -> Lease:
    db.execute(update(leases).where(leases.c.name == lease.name).values(**vars(lease)))
    return lease


def submit(db: Connection, spec: JobSpec, now: datetime) -> Run:
    busy = find(db, spec.job, states=ACTIVE, limit=1)
    if busy:
        raise ConflictError(
            f"{spec.job} is already {busy[0].state}",
            why=f"its run {busy[0].number} has not ended",
            fix=f"wait for it, or stop it: headgate job stop {spec.job}",
        )
    last = db.scalar(select(func.max(runs.c.number)).where(runs.c.job == spec.job)) or 0
    values = {**vars(spec), "options": spec.options.model_dump(mode="json"), "number": last + 1}
    db.execute(
        insert(runs).values(
            **values,
            state=RunState.SUBMITTED.value,
            restarts=0,
            driver_losses=0,
            submitted_at=now,
            progress=vars(Progress()),
            stop_requested=False,
        )
    )
    return get(db, spec.job, last + 1)


def get(db: Connection, job: str, number: int) -> Run:
    row = (
        db.execute(select(runs).where(runs.c.job == job, runs.c.number == number))
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise OperationError(f"{job} has no run {number}", fix="headgate job list shows the runs")
    return _run(row)


def find(
    db: Connection,
    job: str | None = None,
    since: datetime | None = None,
    states: Collection[RunState] | None = None,
    limit: int | None = None,
) -> tuple[Run, ...]:
    """Runs, newest first."""
    query = select(runs).order_by(runs.c.submitted_at.desc(), runs.c.number.desc()).limit(limit)
    if job is not None:
        query = query.where(runs.c.job == job)
    if since is not None:
        query = query.where(runs.c.submitted_at >= since)
    if states is not None:
        query = query.where(runs.c.state.in_([state.value for state in states]))
    return tuple(_run(row) for row in db.execute(query).mappings())


def move(
    db: Connection,
    job: str,
    number: int,
    state: RunState,
    now: datetime,
    error_code: str | None = None,
    error_text: str | None = None,
    engine: str | None = None,
) -> Run:
    run = get(db, job, number)
    if state not in TRANSITIONS[run.state]:
        raise ConflictError(
            f"run {number} of {job} cannot go from {run.state} to {state}",
            why="someone else moved it first",
            fix="headgate job list shows where it stands",
        )
    values: dict[str, object] = {"state": state.value}
    values |= {"started_at": now} if state is RunState.RUNNING else {"ended_at": now}
    if state is not RunState.FAILED:  # what kept it waiting is past
        values |= {"error_code": None, "error_text": None}
    given = {"error_code": error_code, "error_text": error_text, "engine": engine}
    values |= {name: value for name, value in given.items() if value is not None}
    db.execute(_update(job, number).values(**values))
    return get(db, job, number)


def count_restart(db: Connection, job: str, number: int, reason: str, now: datetime) -> Run:
    restart = {"restarts": runs.c.restarts + 1, "restarted_at": now, "restart_reason": reason}
    db.execute(_update(job, number).values(**restart))
    return get(db, job, number)


def count_loss(db: Connection, job: str, number: int) -> int:
    """Count that the driver was lost under this run; how often, since it last settled a batch."""
    run = get(db, job, number)
    batches = run.progress.batches
    losses = run.driver_losses + 1 if run.lost_after_batches == batches else 1
    values = {"driver_losses": losses, "lost_after_batches": batches}
    db.execute(_update(job, number).values(**values))
    return losses


def trouble(db: Connection, job: str, number: int, code: str | None, text: str | None) -> None:
    """What keeps a run from going on for now; None once it goes on."""
    active = runs.c.state.in_([state.value for state in ACTIVE])
    db.execute(_update(job, number).where(active).values(error_code=code, error_text=text))


def report(db: Connection, job: str, number: int, progress: Progress) -> None:
    db.execute(
        _update(job, number).values(
            progress={**vars(progress), "outcomes": dict(progress.outcomes)}
        )
    )


def request_stop(db: Connection, job: str, number: int) -> Run:
    db.execute(_update(job, number).values(stop_requested=True))
    return get(db, job, number)


def claim(db: Connection, job: str, number: int, engine: str, now: datetime) -> Run:
    """The run, now carried out by this engine; one that another engine left counts a restart."""
    run = get(db, job, number)
    if run.state is RunState.SUBMITTED:
        return move(db, job, number, RunState.RUNNING, now, engine=engine)
    if run.state is not RunState.RUNNING:
        raise ConflictError(f"run {number} of {job} is {run.state}", why="it has already ended")
    if run.engine is not None:
        loss = run.error_text if run.error_code == DriverLostError.code else None
        count_restart(db, job, number, loss or f"its engine {run.engine} went away", now)
    db.execute(_update(job, number).values(engine=engine))
    return get(db, job, number)


def let_go(db: Connection, job: str, number: int) -> None:
    """The engine stops cleanly; the run stays wanted, and going on with it is no restart."""
    db.execute(_update(job, number).values(engine=None))


def _update(job: str, number: int) -> Update:
    return update(runs).where(runs.c.job == job, runs.c.number == number)


def _run(row: RowMapping) -> Run:
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    values["state"] = RunState(values["state"])
    values["progress"] = Progress(**values["progress"])
    return Run(**values)
