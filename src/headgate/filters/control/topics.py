"""Whether a filter may read and write its topics, beside the other filters that there are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.declarations.topic_names import ReservedTopics, reason_against_events
from headgate.filters.spec import Filter
from headgate.filters.store.control_model import FilterRecord, Status

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
