"""Where repairs go: each takes a batch of items and says what became of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import orjson

from headgate.core.kafka.topic_writer import TopicWriter
from headgate.reconcile.model import WholeRow
from headgate.reconcile.repair.model import Item, Outcome

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REASON = "repair"
# Hears of the write timestamps before anything is written.
Announce = Callable[[Mapping[str, int]], None]


class Target(Protocol):
    """The cloud's table, or a topic."""

    def send(
        self,
        items: Sequence[Item],
        source: Mapping[str, WholeRow],
        cloud: Mapping[str, WholeRow],
        announced: Mapping[str, int],
        announce: Announce,
    ) -> list[Outcome]:
        """Carry these out; `announced` are timestamps of an attempt that was cut off."""
        ...


class TopicTarget:
    """Asks the source to send these keys again; each message names its repair."""

    def __init__(self, writer: TopicWriter, topic: str, repair: Callable[[], str]) -> None:
        self._writer, self._topic, self._repair = writer, topic, repair

    def send(
        self,
        items: Sequence[Item],
        source: Mapping[str, WholeRow],
        cloud: Mapping[str, WholeRow],
        announced: Mapping[str, int],
        announce: Announce,
    ) -> list[Outcome]:
        values = [self._message(item) for item in items]
        announce({item.pk: micros(item.version) for item in items})
        self._writer.send(self._topic, values, [item.pk.encode() for item in items])
        self._writer.flush()
        return [Outcome(item.pk, "applied") for item in items]

    def _message(self, item: Item) -> bytes:
        told = {
            "pk": item.pk,
            "action": item.action.upper(),
            "version": zulu(item.version),
            "status": item.status,
            "repair": self._repair(),
        }
        return orjson.dumps(told)


class Rereads:
    """Asks the hasher to read keys again, so that their verdicts follow the repair."""

    def __init__(self, writer: TopicWriter, topic: str) -> None:
        self._writer, self._topic = writer, topic

    def ask(self, items: Sequence[Item]) -> None:
        values = [
            orjson.dumps({"pk": item.pk, "event_ts": zulu(item.version), "reason": REASON})
            for item in items
        ]
        self._writer.send(self._topic, values, [item.pk.encode() for item in items])
        self._writer.flush()


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def zulu(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
