"""The ledger's proof of a filter: which revision judged which offset, and that all places count the same.

Pure: what the ops store, the topics and the consumers say is handed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.filters.store.routing_model import Routed, RoutedRange


@dataclass(frozen=True)
class Stretch:
    """Offsets of one partition that one revision judged, live or beside."""

    start: int
    end: int
    version: str
    replayed: bool


@dataclass(frozen=True)
class Lane:
    """One partition of the source topic as one filter judged it, from its first offset to the end."""

    partition: str
    end: int
    stretches: tuple[Stretch, ...]
    begin: int = 0

    @property
    def fault(self) -> str:
        """What is wrong with it: a gap, an overlap, an end that is not reached; empty when nothing."""
        for before, after in zip(self.stretches, self.stretches[1:], strict=False):
            if after.start > before.end:
                return f"offsets {before.end} to {after.start} were judged by nobody"
            if after.start < before.end:
                return f"offsets {after.start} to {before.end} were judged twice"
        if self.stretches and self.stretches[0].start > self.begin:
            return f"judged from {self.stretches[0].start} on, and not from {self.begin}"
        if self.stretches and self.stretches[-1].end != self.end:
            return f"judged up to {self.stretches[-1].end} of {self.end}"
        return "" if self.stretches or self.end <= self.begin else "never judged"

    def line(self) -> str:
        """`0 ──v1── 102 ══v1══ 123`: double where it was judged beside live traffic."""
        if not self.stretches:
            return "empty" if not self.end else "never judged"
        parts = [str(self.stretches[0].start)]
        for stretch in self.stretches:
            dash = "══" if stretch.replayed else "──"
            parts.append(f"{dash}{stretch.version}{dash} {stretch.end}")
        return " ".join(parts)


@dataclass(frozen=True)
class Counts:
    """How many events each place has for one filter.

    The source may carry an event twice (a connector that was killed sends it again): then ledger and
    topic have so many more than was expected, and the consumer, which knows events by their ids, has not.
    """

    expected: int
    ledger: int
    topic: int
    consumer: int
    repeats: int = 0

    @property
    def holds(self) -> bool:
        routed = self.expected + self.repeats
        return self.expected == self.consumer and self.ledger == self.topic == routed


@dataclass(frozen=True)
class FilterProof:
    """One filter: its lanes, and its counts in every place."""

    filter: str
    lanes: tuple[Lane, ...]
    counts: Counts
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        told = [f"{self.filter}, partition {lane.partition}: {lane.fault}" for lane in self.lanes if lane.fault]  # fmt: skip
        if not self.counts.holds:
            told.append(f"{self.filter}: the places do not count the same: {self.counts}")
        told += [f"{self.filter}: its consumer lacks {name}" for name in self.missing[:5]]
        told += [f"{self.filter}: its topic or consumer has {name}" for name in self.unexpected[:5]]
        return tuple(told)


def lanes_of(
    routed: Routed,
    ends: Mapping[str, int],
    versions: Mapping[str, str],
    begins: Mapping[str, int] | None = None,
) -> tuple[Lane, ...]:
    """Every partition of the source, by what the ledger says of the filter since its first cutover."""
    first = begins or {}
    return tuple(
        Lane(
            partition,
            end,
            _stretches(routed.ranges, partition, versions),
            first.get(partition, 0),
        )
        for partition, end in sorted(ends.items(), key=lambda one: int(one[0]))
    )


def _stretches(
    ranges: Sequence[RoutedRange], partition: str, versions: Mapping[str, str]
) -> tuple[Stretch, ...]:
    mine = sorted((r for r in ranges if r.partition == partition and r.end > r.start), key=lambda r: (r.start, r.end))  # fmt: skip
    found: list[Stretch] = []
    for one in mine:
        version = versions.get(one.revision, one.revision[:7])
        stretch = Stretch(one.start, one.end, version, one.job.startswith("replay-"))
        if found and _same(found[-1], stretch):
            stretch = Stretch(found.pop().start, *_rest(stretch))
        found.append(stretch)
    return tuple(found)


def _same(before: Stretch, after: Stretch) -> bool:
    kind = (before.version, before.replayed) == (after.version, after.replayed)
    return kind and before.end == after.start


def _rest(stretch: Stretch) -> tuple[int, str, bool]:
    return stretch.end, stretch.version, stretch.replayed


def text(proofs: Sequence[FilterProof], outcomes: Mapping[str, int], source: str) -> str:
    """The proof for a person."""
    lines = [f"Who judged which offset of {source} (══ beside live traffic)"]
    for proof in proofs:
        fine = "no gap, no overlap" if not any(lane.fault for lane in proof.lanes) else "NOT WHOLE"
        lines += ["", f"  {proof.filter}: {fine}"]
        lines += [f"    p{lane.partition}  {lane.line()}" for lane in proof.lanes]
    read = sum(outcomes.values())
    told = " + ".join(f"{n:,} {name}" for name, n in outcomes.items() if n) or "0"
    lines += ["", f"  {read:,} records read = {told}", ""]
    return "\n".join([*lines, *table(proofs)])


def table(proofs: Sequence[FilterProof]) -> list[str]:
    width = max((len(proof.filter) for proof in proofs), default=6)
    head = f"  {'matched, by place':<{width}}  {'expected':>9} {'ledger':>9} {'topic':>9} {'consumer':>9}"  # fmt: skip
    return [
        head,
        *(
            f"  {p.filter:<{width}}  {p.counts.expected:>9,} {p.counts.ledger:>9,}"
            f" {p.counts.topic:>9,} {p.counts.consumer:>9,}  {'✓' if not p.faults else '✗'}"
            for p in proofs
        ),
    ]
