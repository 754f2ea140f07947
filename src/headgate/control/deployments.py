"""What a target is told about a filter, made from its record alone: the same record, the same order."""

from __future__ import annotations

from headgate.control.targets.model import Deployment
from headgate.spec.filter import Filter, canonical
from headgate.spec.filter_loader import parse_filter
from headgate.store.control import ControlStore
from headgate.store.control_model import (
    FilterRecord,
    Operation,
    OperationKind,
    OperationState,
)

ENGINE = "engine"


def deployment_of(control: ControlStore, record: FilterRecord) -> Deployment | None:
    """What shall run of this filter; None when nothing shall."""
    if record.wanted_deployment is None or record.wanted_version is None:
        return None
    declared = _declared(control, record.id, record.wanted_version)
    return Deployment(
        filter=record.id,
        source=declared.source,
        revision=_revision(control, record.id, record.wanted_version),
        content=canonical(declared),
        topic=declared.output_topic,
        deployment=record.wanted_deployment,
        backfill=declared.backfill if _is_first(control, record) else "none",
        paused=record.paused,
        statements=_statements(declared, record.target),
    )


def removal_of(control: ControlStore, operation: Operation) -> Deployment:
    """What is to be taken away: only its names matter."""
    declared = _declared(control, operation.filter_id, operation.version)
    return Deployment(
        filter=operation.filter_id,
        source=declared.source,
        revision=operation.revision,
        content=canonical(declared),
        topic=declared.output_topic,
        deployment=operation.id,
        statements=_statements(declared, operation.target),
    )


def former_of(control: ControlStore, record: FilterRecord) -> Deployment | None:
    """What ran before and wrote to another topic; None when there is no such thing."""
    wanted = deployment_of(control, record)
    if wanted is None or record.deployed_version in (None, record.wanted_version):
        return None
    before = _declared(control, record.id, record.deployed_version or 0)
    if before.output_topic == wanted.topic:
        return None
    content = canonical(before)
    return Deployment(record.id, before.source, "", content, before.output_topic, "")


def _is_first(control: ControlStore, record: FilterRecord) -> bool:
    """Whether this is the first deployment of the filter: history is sent once, not again."""
    done = control.operations(record.id, (OperationState.SUCCEEDED,))
    first = [one.id for one in done if one.kind is OperationKind.DEPLOY]
    return not first or first[-1] == record.wanted_deployment


def _declared(control: ControlStore, filter_id: str, number: int) -> Filter:
    version = control.version(filter_id, number)
    assert version is not None, f"{filter_id} has lost its version {number}"
    return parse_filter(dict(version.document))


def _revision(control: ControlStore, filter_id: str, number: int) -> str:
    version = control.version(filter_id, number)
    return version.revision if version else ""


def _statements(declared: Filter, target: str) -> tuple[str, ...]:
    if target == ENGINE:
        return ()
    from headgate.compile.filters.flink import flink_statements

    return flink_statements(declared)
