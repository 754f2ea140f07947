"""Answers that change nothing: SQL, validation, desired and observed state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from headgate.compile.filters.compile import compile_filter
from headgate.control.deployments import deployment_of
from headgate.control.model import DeploymentStatus, Generated, Validation
from headgate.control.preview import Question
from headgate.control.revisions import Draft
from headgate.control.targets.model import Deployment, DeploymentTarget, Observed
from headgate.errors import DeclarationError, Fault, HeadgateError
from headgate.spec.filter import Filter
from headgate.spec.filter_loader import parse_filter
from headgate.store.control import ControlStore
from headgate.store.control_model import FilterRecord, Status

OFF = "the filter is turned off (enabled: false): it generates no SQL"


def of_same_id(draft: Draft, id: str) -> Draft:
    if draft.id != id:
        fault = Fault("", None, "/id", f"the id is {draft.id}, the path says {id}", "use one id")
        raise DeclarationError([fault])
    return draft


def status_named(text: str) -> Status:
    try:
        return Status(text)
    except ValueError:
        names = ", ".join(Status)
        fault = Fault("", None, "/status", "there is no such status", f"there are {names}")
        raise DeclarationError([fault]) from None


def generated(record: FilterRecord) -> Generated:
    if record.status is Status.DISABLED:
        return Generated(record.id, record.revision, "", (), valid=False, validation_errors=(OFF,))
    try:
        compiled = compile_filter(parse_filter(dict(record.document)))
    except DeclarationError as error:
        words = tuple(fault.sentence() for fault in error.faults)
        return Generated(record.id, record.revision, "", (), valid=False, validation_errors=words)
    return Generated(record.id, record.revision, compiled.sql, compiled.statements, valid=True)


def validated(record: FilterRecord, sql: str | None) -> Validation:
    made = generated(record)
    if not made.valid:
        return Validation(valid=False, errors=made.validation_errors)
    if sql is not None and sql.strip() != made.sql.strip():
        words = f"this is not the SQL of revision {record.revision[:12]}: only that can be deployed"
        return Validation(valid=False, errors=(words,))
    return Validation(valid=True)


def question(control: ControlStore, declared: Filter) -> Question:
    """The filter beside what runs of it and beside the others that run on its source."""
    deployed: Filter | None = None
    others: list[Filter] = []
    for record in control.filters():
        running = _running(control, record)
        if running is not None and record.id == declared.id:
            deployed = running
        elif running is not None and running.source == declared.source:
            others.append(running)
    return Question(declared, deployed, others)


def _running(control: ControlStore, record: FilterRecord) -> Filter | None:
    number = record.wanted_version
    if number is None:
        return None
    version = None if number == record.version else control.version(record.id, number)
    return parse_filter(dict(version.document if version else record.document))


def status(
    control: ControlStore,
    record: FilterRecord,
    targets: Mapping[str, DeploymentTarget],
    now: datetime,
) -> DeploymentStatus:
    desired = deployment_of(control, record)
    observed, trouble = _observed(desired, targets.get(record.target))
    waiting = [one for one in control.errands(record.id) if one.commit is None]
    return DeploymentStatus(
        filter_id=record.id,
        status=record.status,
        statement_ids=record.statement_ids,
        deployed_at=record.deployed_at,
        deployment_error=record.deployment_error,
        last_checked=now,
        desired=desired,
        observed=observed,
        cutover=observed.cutover if observed else {},
        reason=trouble or (observed.reason if observed else ""),
        waiting_commits=len(waiting),
        git_trouble=next((one.trouble for one in waiting if one.trouble), ""),
    )


def _observed(
    desired: Deployment | None, target: DeploymentTarget | None
) -> tuple[Observed | None, str]:
    """What the target says; when it cannot be asked, why."""
    if desired is None or target is None:
        return None, ""
    try:
        return target.observe(desired), ""
    except HeadgateError as error:
        return None, error.one_line
