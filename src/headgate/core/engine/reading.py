"""What a run of bronze reads, and at what pace: settled when it is asked for, and kept with the run.

An engine has an environment of its own, and another one may go on with the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.config.settings import Settings
from headgate.core.ledger.store_model import Run
from headgate.pipeline.declaration import DatasetRevision
from headgate.quality.revision import RulesRevision

TOPIC, DLQ_TOPIC = "topic", "dlq_topic"
TRIGGER, MOST = "trigger_seconds", "max_offsets_per_batch"
KEPT = frozenset({TOPIC, DLQ_TOPIC, TRIGGER, MOST})
# Of a pair each side has its topic.
TOPIC_OF = "topic_{side}"


@dataclass(frozen=True)
class Reading:
    """The topics of a run, and how its batches are cut."""

    topic: str
    dlq_topic: str
    trigger_seconds: float
    max_offsets: int

    @classmethod
    def declared(cls, revision: DatasetRevision, settings: Settings) -> Reading:
        """As the settings say here and now."""
        topics = revision.topic_names(settings)
        return cls(*topics, settings.trigger_seconds, settings.max_offsets_per_batch)

    @classmethod
    def of(cls, run: Run, revision: DatasetRevision, settings: Settings) -> Reading:
        """As it was asked for; runs of before that was kept go by the settings."""
        kept = run.options
        if not kept.keys() >= {TOPIC, DLQ_TOPIC, MOST}:
            return cls.declared(revision, settings)
        trigger = trigger_of(run, settings)
        return cls(kept[TOPIC], kept[DLQ_TOPIC], trigger, int(kept[MOST]))

    def options(self, mode: str) -> dict[str, str]:
        """As the run keeps them; only a stream has a trigger."""
        trigger = {TRIGGER: f"{self.trigger_seconds:g}"} if mode == "streaming" else {}
        topics = {TOPIC: self.topic, DLQ_TOPIC: self.dlq_topic}
        return {**topics, **trigger, MOST: str(self.max_offsets)}


def pair_options(rules: RulesRevision, settings: Settings, mode: str) -> dict[str, str]:
    """The topics of both sides and the pace, as a run keeps them."""
    topics = {
        TOPIC_OF.format(side=source.side): rules.topic_of(source, settings)
        for source in rules.sources
    }
    trigger = {TRIGGER: f"{settings.trigger_seconds:g}"} if mode == "streaming" else {}
    return {**topics, **trigger, MOST: str(settings.max_offsets_per_batch)}


def trigger_of(run: Run, settings: Settings) -> float:
    return float(run.options.get(TRIGGER, settings.trigger_seconds))


def comparable(asked: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """The options asked for, without what a run of before did not keep."""
    return {name: value for name, value in asked.items() if name not in KEPT or name in kept}


def differing(asked: Mapping[str, str], kept: Mapping[str, str]) -> str:
    """What would be read otherwise, in words; empty when nothing would."""
    names = (n for n in sorted(KEPT & asked.keys() & kept.keys()) if asked[n] != kept[n])
    return ", ".join(f"{name.upper()} {kept[name]}, asked is {asked[name]}" for name in names)
