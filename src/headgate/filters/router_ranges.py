"""Was every offset judged once, by the revision that was live? The ledger against the standings.

A filter's standings say from which offset on a revision judged, or judged no more. The ledger says
which offsets were judged, by the router or beside it. Nothing may be in one and not in the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.spans import Spans, between, each, merged, minus, size, union
from headgate.core.sql.compile_fragments import job_name
from headgate.filters.store.routing_model import Owed, Owing, Routed, RoutedRange, Seen, Standing

ROUTER = "router"


@dataclass(frozen=True)
class Evidence:
    """All that is known of one filter; `reached` is how far the router has come, by topic id."""

    filter: str
    routed: Routed
    owed: tuple[Owed, ...]
    history: tuple[Seen, ...]
    reached: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class FilterRanges:
    """What a filter has judged, what it still owes, and where that does not join up."""

    filter: str
    standing: str
    revision: str
    reason: str
    ranges: tuple[RoutedRange, ...]
    matched: int
    sent: int
    refused: int
    waiting: int
    given_up: int
    breaks: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.breaks


def ranges_of(store: OpsStore, filter: str) -> FilterRanges:
    """The ranges of one filter with their proof."""
    return proved(gather(store, filter))


def ranges_of_all(store: OpsStore, source: str | None = None) -> tuple[FilterRanges, ...]:
    """The same for every filter that the router has ever seen."""
    return tuple(ranges_of(store, one.filter) for one in store.routing.seen(source))


def gather(store: OpsStore, filter: str) -> Evidence:
    """The ledger first: what is settled meanwhile must not look as if nobody had been live for it."""
    reached: dict[str, Mapping[str, int]] = {}
    for source in {one.source for one in store.routing.history(filter)}:
        reached |= store.routing.reached(job_name(ROUTER, source))
    routed = store.routing.routed(filter)
    owed = store.routing.owed(filter)
    return Evidence(filter, routed, owed, store.routing.history(filter), reached)


def proved(evidence: Evidence) -> FilterRanges:
    """Judge the evidence."""
    now = evidence.history[-1] if evidence.history else None
    routed, owed = evidence.routed, evidence.owed
    waiting = _spans_of(o for o in owed if o.state in (Owing.WAITING, Owing.FAILED))
    return FilterRanges(
        filter=evidence.filter,
        standing=str(now.standing) if now else "",
        revision=now.revision if now else "",
        reason=now.reason if now else "",
        ranges=routed.ranges,
        matched=routed.n + routed.refused,
        sent=routed.n,
        refused=routed.refused,
        waiting=size(minus(waiting, _judged(routed.ranges))),
        given_up=size(_spans_of(o for o in owed if o.state is Owing.GIVEN_UP)),
        breaks=tuple(_breaks(evidence)),
    )


def _breaks(evidence: Evidence) -> Iterator[str]:
    yield from _repeats(evidence.routed.ranges)
    topics = {one.source_id for one in evidence.history if one.cutover}
    topics |= {one.source_id for one in evidence.routed.ranges}
    for topic in sorted(topics):
        yield from _breaks_on(evidence, topic)


def _repeats(ranges: Sequence[RoutedRange]) -> Iterator[str]:
    """What was judged twice, by whomever."""
    for one, next_ in pairwise(ranges):
        same = (one.source_id, one.partition) == (next_.source_id, next_.partition)
        if same and next_.start < one.end:
            yield _words("judged twice", one.partition, next_.start, min(one.end, next_.end))


def _breaks_on(evidence: Evidence, topic: str) -> Iterator[str]:
    """Where the ledger and the standings differ on one topic."""
    reached = evidence.reached.get(topic, {})
    history = [one for one in evidence.history if one.source_id == topic and one.cutover]
    own = [one for one in evidence.routed.ranges if one.source_id == topic]
    live, halted = _spells(history, reached)
    routed = [one for one in own if one.job.startswith(f"{ROUTER}-")]
    for revision in sorted({*live, *(one.revision for one in routed)}):
        told, done = live.get(revision, {}), _judged(r for r in routed if r.revision == revision)
        yield from _each("live, but not judged", revision, minus(told, done))
        yield from _each("judged, but not live", revision, minus(done, told))
    beside = _judged(one for one in own if one not in routed)
    owed = [one for one in evidence.owed if one.source_id == topic]
    left = _spans_of(one for one in owed if one.state is not Owing.DONE)
    yield from _each("missed and never made up for", "", minus(halted, union(beside, left)))
    done = _spans_of(one for one in owed if one.state is Owing.DONE)
    lost = _spans_of(one for one in owed if one.state is Owing.GIVEN_UP)
    yield from _each("called done, but not judged", "", minus(done, union(beside, lost)))
    yield from _each("replayed, but not owed", "", minus(beside, _spans_of(owed)))


def _spells(history: Sequence[Seen], reached: Mapping[str, int]) -> tuple[dict[str, Spans], Spans]:
    """Per revision the offsets for which it was live; and those between two times of being live."""
    live: dict[str, Spans] = {}
    halted: Spans = {}
    for one, next_ in zip(history, [*history[1:], None], strict=True):
        end = next_.cutover if next_ else reached
        spans = between(one.cutover, _least(end, reached))
        if one.standing is Standing.LIVE:
            live[one.revision] = union(live.get(one.revision, {}), spans)
        elif one.standing is not Standing.OFF and _goes_live(history, one):
            halted = union(halted, spans)
    return live, halted


def _least(end: Mapping[str, int], reached: Mapping[str, int]) -> dict[str, int]:
    return {p: min(end.get(p, 0), there) for p, there in reached.items()}


def _goes_live(history: Sequence[Seen], one: Seen) -> bool:
    """Whether the filter judged again before it was taken away: only then is it owed what it missed."""
    later = history[history.index(one) + 1 :]
    next_ = (s.standing for s in later if s.standing in (Standing.LIVE, Standing.OFF))
    return next(next_, None) is Standing.LIVE


def _judged(ranges: Iterable[RoutedRange]) -> Spans:
    return merged((one.partition, one.start, one.end) for one in ranges)


def _spans_of(owed: Iterable[Owed]) -> Spans:
    return union(*(between(one.start, one.end) for one in owed))


def _each(what: str, revision: str, spans: Spans) -> Iterator[str]:
    by = f"{what} by {revision[:12]}" if revision else what
    return (_words(by, *span) for span in each(spans))


def _words(what: str, partition: str, start: int, end: int) -> str:
    return f"partition {partition}, offsets {start} to {end - 1}: {what}"


@dataclass(frozen=True)
class RangeLine:
    """One range as a line for a person; `to` is the offset behind the last."""

    partition: int
    since: int
    to: int
    revision: str
    job: str
    batches: int


def by_revision(ranges: Sequence[RoutedRange]) -> tuple[RangeLine, ...]:
    """The ranges by partition, in the order of their offsets."""
    ordered = sorted(ranges, key=lambda one: (one.source_id, int(one.partition), one.start))
    return tuple(
        RangeLine(int(r.partition), r.start, r.end, r.revision[:12], r.job, r.batches)
        for r in ordered
    )
