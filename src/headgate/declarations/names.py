"""Names that declarations cannot take: topics that are no target for events, metrics of the system.

Topics: filters and redriven dead letters must not write to internal, dead-letter or metric topics.
Metrics: without the prefix `dq_`; a test compares them with the names of `core.metrics`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

# The topic that filters read unless their document or the settings name another.
SOURCE = "raw-event-headers"
NOT_NAMES = (".", "..")
# Connect's three topics of its own, by the names that workers and distributions give them.
_CONNECT = re.compile(r"(?:^|.*[._-])connect(?:[._-].*)?[._-](?:configs?|offsets?|status(?:es)?)")
_DEAD_LETTERS = re.compile(r"dlq[._-].*|.*[._-]dlq")
_MEASURES = re.compile(r"dq[._].*")


def reason_against_events(topic: str, named: Mapping[str, str] | None = None) -> str:
    """Why no events belong on this topic; empty when they may be sent there.

    `named` has further topics, which the settings name, each with its reason.
    """
    if topic in NOT_NAMES:
        return "no topic can have that name"
    if topic.startswith("_"):
        return "Kafka or the schema registry keeps its own state in it"
    if _CONNECT.fullmatch(topic):
        return "Connect keeps its own state in it"
    if _DEAD_LETTERS.fullmatch(topic):
        return "it is a topic of dead letters"
    if _MEASURES.fullmatch(topic):
        return "it is a topic of results and measures"
    return (named or {}).get(topic, "")


class TopicSettings(Protocol):
    """The settings that name topics."""

    @property
    def topic(self) -> str | None: ...
    @property
    def dlq_topic(self) -> str | None: ...
    @property
    def metrics_topic(self) -> str: ...
    @property
    def filter_source_topic(self) -> str: ...


@dataclass(frozen=True)
class ReservedTopics:
    """What the settings say: topics that are not for events, and topics that jobs read."""

    inner: Mapping[str, str] = field(default_factory=dict[str, str])
    sources: frozenset[str] = frozenset({SOURCE})

    @classmethod
    def of(cls, settings: TopicSettings) -> ReservedTopics:
        inner = {settings.metrics_topic: "closed windows are sent to it"}
        if settings.dlq_topic:
            inner[settings.dlq_topic] = "it is a topic of dead letters"
        sources = {SOURCE, settings.filter_source_topic, settings.topic or SOURCE}
        return cls(inner, frozenset(sources))


NO_TOPICS = ReservedTopics()


TAKEN_METRICS = frozenset(
    {
        "rows_total",
        "clean_total",
        "error_total",
        "warn_total",
        "info_total",
        "rule_matches_total",
        "windows_open",
        "windows_closed_total",
        "windows_late_total",
        "unique_keys",
        "keys",
        "reconciled_within_grace",
        "recently_within_grace",
        "slo_met",
        "audit_behind",
        "smt_errors_total",
        "smt_missing_fields_total",
        "state_rows",
        "state_bytes",
        "backpressure",
        "backpressure_high",
        "kafka_lag",
        "dlq_records_total",
        "cassandra_timeout_total",
        "partial_row_total",
        "schema_drift_detected_total",
        "column_removed_total",
    }
)
