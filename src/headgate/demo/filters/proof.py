"""Proves a filter: every offset judged by exactly one revision; ledger, topic and consumer count the same.

The first half is pure; the second half gathers its inputs from ops store, topics and consumer databases.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from headgate.core.kafka.reader import Found, Stretch, committed_records
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import job_name
from headgate.filters.consumers.config import load_config
from headgate.filters.store.control import ControlStore
from headgate.filters.store.model import Routed, RoutedRange, Standing
from headgate.filters.store.routing import RoutingStore


@dataclass(frozen=True)
class JudgedOffsets:
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
    stretches: tuple[JudgedOffsets, ...]
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
) -> tuple[JudgedOffsets, ...]:
    mine = sorted((r for r in ranges if r.partition == partition and r.end > r.start), key=lambda r: (r.start, r.end))  # fmt: skip
    found: list[JudgedOffsets] = []
    for one in mine:
        version = versions.get(one.revision, one.revision[:7])
        stretch = JudgedOffsets(one.start, one.end, version, one.job.startswith("replay-"))
        if found and _same(found[-1], stretch):
            stretch = JudgedOffsets(found.pop().start, *_rest(stretch))
        found.append(stretch)
    return tuple(found)


def _same(before: JudgedOffsets, after: JudgedOffsets) -> bool:
    kind = (before.version, before.replayed) == (after.version, after.replayed)
    return kind and before.end == after.start


def _rest(stretch: JudgedOffsets) -> tuple[int, str, bool]:
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


ORIGIN = "headgate.origin"


@dataclass(frozen=True)
class Place:
    """Where the events of one filter arrive: its topic, and its consumer's state."""

    filter: str
    topic: str
    state: Path


def places(home: Path, filters: Mapping[str, str], consumers: Sequence[Path]) -> tuple[Place, ...]:
    """Filters by id with their topics, each with the consumer that reads its topic."""
    configs = {c.topic: c for c in (load_config(path, {}) for path in consumers)}
    folder = home / "consumers"
    return tuple(
        Place(name, topic, folder / f"{configs[topic].group}.db") for name, topic in filters.items()
    )


def handled(state: Path) -> Counter[str]:
    """Event ids that had their effect at a consumer, and how often."""
    if not state.is_file():
        return Counter()
    try:
        with closing(sqlite3.connect(f"file:{state}?mode=ro", uri=True, timeout=10)) as database:
            rows = database.execute("SELECT event_id FROM effects").fetchall()
    except sqlite3.OperationalError:  # it has not made its tables yet
        return Counter()
    return Counter(str(row[0]) for row in rows)


def routed_records(store: OpsStore, source: str) -> dict[str, int]:
    """What became of every record that the router read."""
    found: Counter[str] = Counter()
    for row in store.ledger(job_name("router", source)):
        found.update({str(name): n for name, n in row.outcomes.items()})
    return dict(sorted(found.items()))


def prove(
    store: OpsStore,
    bootstrap: str,
    source: str,
    place: Place,
    expected: Sequence[str],
    repeats: int = 0,
) -> FilterProof:
    """One filter against every place; `expected` are the events that must be there, and no others.

    `repeats` is how many records of them the source has beyond one each.
    """
    state = Topics(bootstrap).found(source)
    ends = {str(partition): end for partition, end in state.end.items()}
    control = store.part(ControlStore)
    versions = {v.revision: f"v{v.version}" for v in reversed(control.versions(place.filter))}
    routed = store.part(RoutingStore).routed(place.filter)
    arrived, seen = records(bootstrap, place.topic), handled(place.state)
    wanted = Counter(expected)
    strays = {event_id(record) for record in arrived} - set(wanted)
    return FilterProof(
        filter=place.filter,
        lanes=lanes_of(routed, ends, versions, _first_cutover(store, place.filter)),
        counts=Counts(
            expected=len(expected),
            ledger=routed.n,
            topic=len({record.headers.get(ORIGIN, "") for record in arrived}),
            consumer=sum(seen.values()),
            repeats=repeats,
        ),
        missing=tuple((wanted - seen).elements()),
        unexpected=tuple(sorted({*(seen - wanted), *strays})),
    )


BEGUN = (Standing.LIVE, Standing.AHEAD)


def _first_cutover(store: OpsStore, filter_id: str) -> Mapping[str, int]:
    """Where its first revision began to judge."""
    standings = store.part(RoutingStore).history(filter_id)
    live = [one.cutover for one in standings if one.standing in BEGUN]
    return live[0] if live else {}


def event_id(record: Found) -> str:
    """The event of a record of the source or of a filter's topic."""
    return (record.key or b"").decode(errors="replace")


def records(bootstrap: str, topic: str) -> list[Found]:
    """All records of a topic as it is now."""
    state = Topics(bootstrap).describe(topic)
    if state is None:
        return []
    return list(committed_records(bootstrap, Stretch.whole(state), quiet=True))
