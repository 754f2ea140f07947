"""Queries about filters that change nothing: generated SQL, validation, topic conflicts, desired and observed state."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from headgate.declarations.names import ReservedTopics, reason_against_events
from headgate.errors import DeclarationError, Fault, HeadgateError
from headgate.filters.compile.flink import flink_sql
from headgate.filters.compile.spark_sql import BROKER, alone_sql, compile_filter
from headgate.filters.control.model import DeploymentStatus, Generated, Validation
from headgate.filters.control.revisions import Draft, differences_at, statements_for
from headgate.filters.loader import parse_filter
from headgate.filters.preview import Question
from headgate.filters.spec import Filter
from headgate.filters.store.control import ControlStore
from headgate.filters.store.model import FilterRecord, Status
from headgate.filters.targets.deployment import (
    ENGINE,
    Deployment,
    DeploymentTarget,
    Observed,
    deployment_of,
)

OUT = (Status.DELETED, Status.REJECTED, Status.DISABLED)


@dataclass(frozen=True)
class TopicCheck:
    """What is wrong with a filter's topics, and what is legal but hardly meant."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def check_topics(
    declared: Filter, others: Sequence[FilterRecord], reserved: ReservedTopics
) -> TopicCheck:
    """The filter's topics beside those of other filters, by the newest version of each."""
    there = [one for one in others if one.status not in OUT]
    return TopicCheck(tuple(_errors(declared, there, reserved)), tuple(_warnings(declared, there)))


def _errors(
    declared: Filter, others: Sequence[FilterRecord], reserved: ReservedTopics
) -> list[str]:
    topic, errors = declared.output_topic, list[str]()
    if reason := reason_against_events(topic, reserved.inner):
        errors.append(f"outputTopic {topic} is not for events: {reason}")
    elif topic in reserved.sources:
        errors.append(f"outputTopic {topic} is a topic that jobs read")
    if reason := reason_against_events(declared.source, reserved.inner):
        errors.append(f"source {declared.source} has no events: {reason}")
    if declared.enabled and (way := _way_back(declared, others)):
        errors.append(f"events would go round for ever: {' -> '.join(way)}")
    return errors


def _warnings(declared: Filter, others: Sequence[FilterRecord]) -> list[str]:
    topic, warnings = declared.output_topic, list[str]()
    for other in others:
        consumer = str(other.document["consumerId"])
        if other.document["outputTopic"] == topic and consumer != declared.consumer_id:
            warnings.append(f"{other.id} writes to {topic} too, for another consumer: {consumer}")
        if other.document["source"] == topic:
            warnings.append(f"{other.id} reads {topic}: what this filter sends goes on from there")
    return warnings


def _way_back(declared: Filter, others: Sequence[FilterRecord]) -> list[str]:
    """The topics along which an event that this filter sends comes back to its source."""
    ways: dict[str, list[str]] = {declared.output_topic: [declared.source, declared.output_topic]}
    waiting = [declared.output_topic]
    while waiting:
        reached = waiting.pop()
        if reached == declared.source:
            return ways[reached]
        for other in others:
            onward = str(other.document["outputTopic"])
            if other.document["source"] == reached and onward not in ways:
                ways[onward] = [*ways[reached], onward]
                waiting.append(onward)
    return []


CANNOT = "it cannot be deployed to {target}: {word}"
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


def generated(record: FilterRecord, targets: Collection[str], target: str | None) -> Generated:
    """The text that a target is sent; without a target: where it runs, else the engine."""
    chosen = target or (record.target if record.target in targets else ENGINE)
    made = Generated(record.id, record.revision, "", (), valid=False, target=chosen)
    if record.status is Status.DISABLED:
        return replace(made, validation_errors=(OFF,))
    try:
        declared = parse_filter(dict(record.document))
        compiled = compile_filter(declared)
    except DeclarationError as error:
        return replace(made, validation_errors=tuple(fault.sentence() for fault in error.faults))
    sql = compiled.sql if chosen == ENGINE else flink_sql(declared)
    made = replace(made, sql=sql, statements=statements_for(declared, chosen))
    differences = differences_at(declared, chosen)
    return replace(made, valid=not differences, validation_errors=differences)


def validated(record: FilterRecord, targets: Collection[str], sql: str | None) -> Validation:
    """Whether it can run somewhere, and SQL that is sent along is what some target here runs."""
    made = {target: generated(record, targets, target) for target in targets}
    valid = {target: one for target, one in made.items() if one.valid}
    troubles = {target: one.validation_errors for target, one in made.items() if not one.valid}
    if not valid:
        return Validation(valid=False, errors=_listed(troubles, "{word}"))
    warnings = _listed(troubles, CANNOT)
    if sql is not None and not any(_is_same(sql, record, one) for one in valid.values()):
        words = f"this is not the SQL of revision {record.revision[:12]}: only that can be deployed"
        return Validation(valid=False, errors=(words,), warnings=warnings)
    return Validation(valid=True, warnings=warnings)


def differences(declared: Filter, targets: Iterable[str]) -> tuple[str, ...]:
    """Where it cannot be deployed to, and why."""
    troubles = {target: differences_at(declared, target) for target in targets}
    return _listed(troubles, CANNOT)


def _listed(troubles: Mapping[str, tuple[str, ...]], form: str) -> tuple[str, ...]:
    words = (form.format(target=t, word=word) for t, many in troubles.items() for word in many)
    return tuple(dict.fromkeys(words))


def _is_same(sql: str, record: FilterRecord, made: Generated) -> bool:
    """As it is generated, or as the file of `filters compile --write`, whatever broker it names."""
    if sql.strip() == made.sql.strip():
        return True
    if made.target != ENGINE:
        return False
    alone = alone_sql(compile_filter(parse_filter(dict(record.document)))).strip()
    parts = (re.escape(part) for part in alone.split(BROKER))
    return re.fullmatch("[^'\\n]*".join(parts), sql.strip()) is not None


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
