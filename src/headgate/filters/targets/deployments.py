"""What a target is told about a filter, made from its record alone: the same record, the same order."""

from __future__ import annotations

from headgate.filters.loader import parse_filter
from headgate.filters.spec import Filter, canonical
from headgate.filters.store.control import ControlStore
from headgate.filters.store.control_model import (
    FilterRecord,
    Operation,
)
from headgate.filters.targets.model import Deployment

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
        backfill=declared.backfill,
        paused=record.paused,
        statements=_statements(declared, record.target),
        since=record.since if record.since and record.since.topic == declared.source else None,
    )


def removals_of(control: ControlStore, operation: Operation) -> tuple[Deployment, ...]:
    """What is to be taken away: only names matter. The one that the operation speaks of comes first.

    Our engine knows filters by their ids; others by topics, and older versions may have had others.
    """
    numbers = [operation.version]
    if operation.target != ENGINE:
        asked = control.operations(operation.filter_id)
        numbers += [one.version for one in asked if one.target == operation.target]
    found = {
        declared.output_topic: _named(declared)
        for declared in (_declared(control, operation.filter_id, n) for n in dict.fromkeys(numbers))
    }
    return tuple(found.values())


def leftovers(
    control: ControlStore, record: FilterRecord, operation: Operation
) -> tuple[Deployment, ...]:
    """What other versions of the filter may have left at other topics than the wanted one's."""
    numbers = {record.deployed_version, record.version if operation.automatic else None}
    numbers -= {None, record.wanted_version}
    if operation.target == ENGINE or record.wanted_version is None or not numbers:
        return ()
    topic = _declared(control, record.id, record.wanted_version).output_topic
    older = (_declared(control, record.id, number) for number in numbers if number is not None)
    return tuple(_named(one) for one in older if one.output_topic != topic)


def _named(declared: Filter) -> Deployment:
    """Enough of a deployment to take it away."""
    return Deployment(
        filter=declared.id,
        source=declared.source,
        revision="",
        content=canonical(declared),
        topic=declared.output_topic,
        deployment="",
    )


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
    from headgate.filters.compile.flink import flink_statements

    return flink_statements(declared)
