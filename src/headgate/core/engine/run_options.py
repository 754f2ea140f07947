"""The options of runs that read Kafka: which topics, how batches are cut, and in which form a run was asked for.

Topics and pace are kept with the run, because another engine with another environment may go on with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum

from headgate.core.ledger.model import RunOptions


class TopicRunForm(StrEnum):
    """What a run of a job that reads Kafka does."""

    READ = "read"
    # Sets a damaged checkpoint aside; no record is read.
    REPAIR = "repair"
    # Goes on behind records that expired unread, as a person decided.
    ACCEPT_GAP = "accept-gap"


class TopicRequest(RunOptions):
    """What a person asks of a job that reads Kafka; the rest of its options is declared."""

    form: TopicRunForm = TopicRunForm.READ
    # Who decided to go on without expired records; empty for the other forms.
    accepted_by: str = ""


class KafkaRunOptions(TopicRequest, ABC):
    """The topics of a run, and how its batches are cut."""

    # None for a batch run, so that a changed TRIGGER_SECONDS does not make it another run.
    trigger_seconds: float | None
    max_offsets_per_batch: int

    @property
    @abstractmethod
    def topics(self) -> Mapping[str, str]:
        """The topics by side; a single topic has the side ""."""

    def variables(self) -> dict[str, str]:
        """The settings that the run was declared with, as text, by the names of their variables."""
        trigger = self.trigger_seconds
        return {
            "MAX_OFFSETS_PER_BATCH": str(self.max_offsets_per_batch),
            **({} if trigger is None else {"TRIGGER_SECONDS": f"{trigger:g}"}),
        }


class TopicRunOptions(KafkaRunOptions):
    """The options of a run that reads one topic."""

    topic: str
    dlq_topic: str

    @property
    def topics(self) -> Mapping[str, str]:
        return {"": self.topic}

    def variables(self) -> dict[str, str]:
        return {**super().variables(), "TOPIC": self.topic, "DLQ_TOPIC": self.dlq_topic}


def choose_trigger(mode: str, seconds: float) -> float | None:
    """The trigger of a run in this mode: these seconds for a stream, None for a batch run."""
    return seconds if mode == "streaming" else None


def describe_differences(requested: RunOptions, running: RunOptions) -> str:
    """The variables by which a requested run would read otherwise than one under way; empty when none."""
    if not isinstance(requested, KafkaRunOptions) or not isinstance(running, KafkaRunOptions):
        return ""
    desired, observed = requested.variables(), running.variables()
    names = sorted(desired.keys() & observed.keys())
    return ", ".join(
        f"{name} {observed[name]}, asked is {desired[name]}"
        for name in names
        if desired[name] != observed[name]
    )
