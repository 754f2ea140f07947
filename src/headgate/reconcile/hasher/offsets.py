"""Which offsets of a topic are done with: a group's offset never passes a record that is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Partition = tuple[str, int]


@dataclass
class _Kept:
    """One partition: records that are not done with, in their order, and where the next one is.

    A record waits for its answer, for a second look, or for both.
    """

    epoch: int
    open: dict[int, None] = field(default_factory=dict[int, None])
    answers: set[int] = field(default_factory=set[int])
    looks: set[int] = field(default_factory=set[int])
    position: int | None = None

    @property
    def settled(self) -> int | None:
        return next(iter(self.open)) if self.open else self.position

    @property
    def reached(self) -> int | None:
        return min(self.answers) if self.answers else self.position

    def close(self, offset: int) -> None:
        if offset not in self.answers and offset not in self.looks:
            self.open.pop(offset, None)


class Offsets:
    """The partitions that this process has now. What it had before is no longer its business."""

    def __init__(self) -> None:
        self._kept: dict[Partition, _Kept] = {}
        self._told: dict[Partition, int] = {}
        self._epochs = 0

    @property
    def partitions(self) -> frozenset[Partition]:
        return frozenset(self._kept)

    @property
    def epochs(self) -> Mapping[Partition, int]:
        """The partitions, each with the number of its assignment."""
        return {partition: kept.epoch for partition, kept in self._kept.items()}

    @property
    def under_way(self) -> int:
        """Records that wait for their answer."""
        return sum(len(kept.answers) for kept in self._kept.values())

    def assign(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            self._epochs += 1
            self._kept[partition] = _Kept(self._epochs)
            self._told.pop(partition, None)

    def revoke(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            self._kept.pop(partition, None)
            self._told.pop(partition, None)

    def epoch(self, partition: Partition) -> int:
        """The number of this assignment of the partition."""
        if partition not in self._kept:
            self.assign([partition])
        return self._kept[partition].epoch

    def has(self, partition: Partition, epoch: int) -> bool:
        kept = self._kept.get(partition)
        return kept is not None and kept.epoch == epoch

    def begin(self, partition: Partition, offset: int) -> None:
        """A record was read."""
        kept = self._kept[partition]
        kept.open[offset] = None
        kept.answers.add(offset)
        kept.position = offset + 1

    def passed(self, partition: Partition, position: int) -> None:
        """There is no record before this offset any more: the end, or a gap."""
        kept = self._kept.get(partition)
        if kept is not None and position > (kept.position or 0):
            kept.position = position

    def done(self, partition: Partition, offset: int, epoch: int) -> None:
        """What came of a record is acknowledged; of an older assignment it does not matter."""
        if self.has(partition, epoch):
            self._kept[partition].answers.discard(offset)
            self._kept[partition].close(offset)

    def hold(self, partition: Partition, offset: int, epoch: int) -> None:
        """A second look belongs to the record: the group's offset waits for that as well."""
        if self.has(partition, epoch):
            self._kept[partition].looks.add(offset)

    def release(self, partition: Partition, offset: int, epoch: int) -> None:
        """The second look was made, or will not be."""
        if self.has(partition, epoch):
            self._kept[partition].looks.discard(offset)
            self._kept[partition].close(offset)

    def reached(self) -> Mapping[Partition, int]:
        """Where each partition's next record is that has no answer; second looks may still wait."""
        found = {p: kept.reached for p, kept in self._kept.items()}
        return {p: offset for p, offset in found.items() if offset is not None}

    def settled(self) -> Mapping[Partition, int]:
        """Where each partition's next record is that is not done with."""
        found = {p: kept.settled for p, kept in self._kept.items()}
        return {p: offset for p, offset in found.items() if offset is not None}

    def untold(self) -> Mapping[Partition, int]:
        """What is settled and not yet written to the group."""
        return {p: o for p, o in self.settled().items() if self._told.get(p) != o}

    def told(self, offsets: Mapping[Partition, int]) -> None:
        self._told.update({p: o for p, o in offsets.items() if p in self._kept})
