"""Accounts of filters: every offset judged once by the live revision, sent = arrived, dead letters add up; metrics.

Inputs are the ledger, the status history of each filter, replay ranges, output topics and the broker.
`ranges_of` checks one filter, `account` one source topic (for the certificate); `FilterMetrics` are the metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from headgate.core.accounting.evidence import (
    AccountKind,
    Line,
    RuleAccount,
    TableEvidence,
    TopicEvidence,
    Verdict,
    line,
    open_line,
)
from headgate.core.accounting.table_evidence import dead_letters_of
from headgate.core.ledger.model import ACTIVE, LedgerRow
from headgate.core.ledger.offset_ranges import (
    Spans,
    between,
    each,
    gaps,
    last_offsets,
    merged,
    minus,
    overlaps,
    size,
    union,
)
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics import names
from headgate.core.metrics.names import Family
from headgate.core.sql.fragments import job_name
from headgate.filters.store.model import Owed, Owing, Routed, RoutedRange, Seen, Standing
from headgate.filters.store.routing import RoutingStore

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.kafka.topics import TopicState
    from headgate.core.lake.duckdb_reader import Lake


ROUTER_JOB = "router"


@dataclass(frozen=True)
class RangeEvidence:
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
    return proved(gather_ranges(store, filter))


def ranges_of_all(store: OpsStore, source: str | None = None) -> tuple[FilterRanges, ...]:
    """The same for every filter that the router has ever seen."""
    return tuple(ranges_of(store, one.filter) for one in store.part(RoutingStore).seen(source))


def gather_ranges(store: OpsStore, filter: str) -> RangeEvidence:
    """The ledger first: what is settled meanwhile must not look as if nobody had been live for it."""
    routing = store.part(RoutingStore)
    reached: dict[str, Mapping[str, int]] = {}
    for source in {one.source for one in routing.history(filter)}:
        reached |= routing.reached(job_name(ROUTER_JOB, source))
    routed, owed = routing.routed(filter), routing.owed(filter)
    return RangeEvidence(filter, routed, owed, routing.history(filter), reached)


def proved(evidence: RangeEvidence) -> FilterRanges:
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


def _breaks(evidence: RangeEvidence) -> Iterator[str]:
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


def _breaks_on(evidence: RangeEvidence, topic: str) -> Iterator[str]:
    """Where the ledger and the standings differ on one topic."""
    reached = evidence.reached.get(topic, {})
    history = [one for one in evidence.history if one.source_id == topic and one.cutover]
    own = [one for one in evidence.routed.ranges if one.source_id == topic]
    live, halted = _spells(history, reached)
    routed = [one for one in own if one.job.startswith(f"{ROUTER_JOB}-")]
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


# More than this is not read for a certificate; the ledger's sums hold without it.
MOST = 500_000
HEADERS = ("headgate.filter", "headgate.source_id", "headgate.origin")
Origin = tuple[str, ...]


@dataclass(frozen=True)
class Arrived:
    """The records of a filter on its topic; `whole` when none of the topic's have expired."""

    records: int
    whole: bool = True

    def fits(self, sent: int) -> bool:
        return self.records == sent if self.whole else self.records <= sent


def arrived(settings: Settings, store: OpsStore, source: str) -> dict[str, Arrived]:
    """Per filter of this source, what is on all topics that it ever sent to."""
    from headgate.core.kafka.topics import Topics

    topics, routing = Topics(str(settings.need("bootstrap_servers"))), store.part(RoutingStore)
    states = [topics.describe(name) for name in routing.topics(source)]
    there = [state for state in states if state is not None]
    if sum(state.span for state in there) > MOST:
        return {}
    filters = {one.filter for one in routing.seen(source)}
    found: dict[str, set[Origin]] = {filter: set() for filter in filters}
    for state in there:
        for filter, *origin in _origins(topics.bootstrap, state):
            if filter in found:
                found[filter].add(tuple(origin))
    whole = len(there) == len(states) and not any(any(s.begin.values()) for s in there)
    return {filter: Arrived(len(origins), whole) for filter, origins in found.items()}


def _origins(bootstrap: str, state: TopicState) -> Iterator[Origin]:
    from headgate.core.kafka.reader import Stretch, committed_records

    for record in committed_records(bootstrap, Stretch.whole(state), quiet=True):
        headers = record.headers
        yield tuple(headers.get(name, "") for name in HEADERS)


ROUTER, REPLAY = "router", "replay"
NAMED = 3


@dataclass(frozen=True)
class RouterEvidence:
    """What the account of one source topic rests on; `replays` are the rows of its filters' replays."""

    source: str
    ledger: tuple[LedgerRow, ...]
    replays: tuple[LedgerRow, ...]
    open_batches: int
    streaming: bool
    filters: tuple[FilterRanges, ...]
    arrived: Mapping[str, Arrived]
    letters: int
    letters_of_replays: int
    on_broker: TopicEvidence | None
    why_no_broker: str = ""


def account(evidence: RouterEvidence) -> RuleAccount:
    """Every line of the account."""
    lines = (
        _records(evidence),
        _offsets(evidence),
        _produced(evidence),
        _letters(evidence),
        _filters(evidence),
        _sent(evidence),
        _open(evidence),
    )
    named = f"filters on {evidence.source}"
    return RuleAccount(job_name(ROUTER, evidence.source), lines, dict[str, TableEvidence](), named)


def account_source(settings: Settings, store: OpsStore, lake: Lake, source: str) -> RuleAccount:
    """The account of the filters on a source topic as it is now."""
    return account(gather(settings, store, lake, source))


ACCOUNT_KIND = AccountKind(ROUTER, "filters on {}", account_source)


def _records(evidence: RouterEvidence) -> Line:
    found: Counter[str] = Counter()
    for row in evidence.ledger:
        found.update(row.outcomes)
    read, told = sum(row.read for row in evidence.ledger), found.total()
    parts = " + ".join(f"{name} {n:,}" for name, n in sorted(found.items()) if n)
    return line("records", read == told, f"read {read:,} = {parts or 'nothing'}", f"{told:,} told")


def _offsets(evidence: RouterEvidence) -> Line:
    broken = [s.sentence() for s in (*gaps(evidence.ledger), *overlaps(evidence.ledger))]
    broken += [seam.sentence() for seam in overlaps(evidence.replays)]
    return line("offsets", not broken, "every offset once, in turn", "; ".join(broken))


def _produced(evidence: RouterEvidence) -> Line:
    topic = evidence.on_broker
    if topic is None:
        return Line("produced", Verdict.WARN, "the topic was not asked", evidence.why_no_broker)
    done = last_offsets(topic.of(evidence.ledger))
    left = sum(max(0, end - done.get(p, topic.begin.get(p, 0))) for p, end in topic.end.items())
    words = "all that is on the topic was judged"
    if left:
        return Line("produced", Verdict.WARN, words, f"{left:,} records are not judged yet")
    return Line("produced", Verdict.PASS, words)


def _letters(evidence: RouterEvidence) -> Line:
    refused = sum(row.outcomes.get("refused", 0) for row in evidence.ledger)
    too_large = sum(one.refused for one in evidence.filters)
    told, there = refused + too_large, evidence.letters + evidence.letters_of_replays
    words = f"dead letters {there:,} = no events {refused:,} + too large {too_large:,}"
    return line("dead letters", there == told, words, "they differ")


def _filters(evidence: RouterEvidence) -> Line:
    bad = [f"{one.filter}: {one.breaks[0]}" for one in evidence.filters if one.breaks]
    waiting = sum(one.waiting for one in evidence.filters)
    words = f"{len(evidence.filters)} filters, each offset judged once by the revision live for it"
    if waiting and not bad:
        return Line("ranges", Verdict.WARN, words, f"{waiting:,} offsets wait to be made up for")
    return line("ranges", not bad, words, "; ".join(bad[:NAMED]))


def _sent(evidence: RouterEvidence) -> Line:
    """Routed per filter = matched, as the filter's own topic shows it."""
    known = [one for one in evidence.filters if one.filter in evidence.arrived]
    wrong = [
        f"{one.filter} sent {one.sent:,}, {evidence.arrived[one.filter].records:,} arrived"
        for one in known
        if not evidence.arrived[one.filter].fits(one.sent)
    ]
    matched, sent, there = (
        sum(found)
        for found in (
            (one.matched for one in evidence.filters),
            (one.sent for one in evidence.filters),
            (evidence.arrived[one.filter].records for one in known),
        )
    )
    words = f"matched {matched:,} = too large {matched - sent:,} + on the filters' topics {there:,}"
    if len(known) < len(evidence.filters) and not wrong:
        left = len(evidence.filters) - len(known)
        return Line("routed", Verdict.WARN, words, f"the topics of {left} were not counted")
    return line("routed", not wrong, words, "; ".join(wrong[:NAMED]))


def _open(evidence: RouterEvidence) -> Line:
    return open_line(evidence.open_batches, streaming=evidence.streaming)


def gather(settings: Settings, store: OpsStore, lake: Lake, source: str) -> RouterEvidence:
    """All evidence of one source topic."""
    from headgate.core.accounting.broker import ask_broker

    job, filters = job_name(ROUTER, source), ranges_of_all(store, source)
    replays = [job_name(REPLAY, one.filter) for one in filters]
    on_broker, why = ask_broker(settings, source)
    open_ = [*store.open_intents(job), *(i for own in replays for i in store.open_intents(own))]
    return RouterEvidence(
        source=source,
        ledger=store.ledger(job),
        replays=tuple(row for row in store.ledger() if row.job in set(replays)),
        open_batches=len(open_),
        streaming=any(run.mode == "streaming" for run in store.runs(job, states=ACTIVE)),
        filters=filters,
        arrived=arrived(settings, store, source) if on_broker else {},
        letters=dead_letters_of(lake, job),
        letters_of_replays=sum(dead_letters_of(lake, own) for own in replays),
        on_broker=on_broker,
        why_no_broker=why,
    )


HALTED = (Standing.PAUSED, Standing.SUSPENDED, Standing.FAILED)


class FilterMetrics:
    """Metrics of filters: records routed and refused by filter, its status, and offsets still owed."""

    def __init__(self, store: OpsStore) -> None:
        self._store, self._routing = store, store.part(RoutingStore)
        self._sums: dict[tuple[str, str], tuple[int, int]] = {}

    def add(self, after: int, until: int) -> None:
        """Count the batches of these ledger rows, `after` exclusive, by job and filter."""
        for key, (n, refused) in self._routing.routed_between(after, until).items():
            before = self._sums.get(key, (0, 0))
            self._sums[key] = (before[0] + n, before[1] + refused)

    def families(self) -> Iterator[Family]:
        """Every metric of filters, as it is now."""
        pairs = sorted(self._sums.items())
        yield Family(names.FILTER_ROUTED, tuple((key, n) for key, (n, _) in pairs))
        yield Family(names.FILTER_REFUSED, tuple((key, refused) for key, (_, refused) in pairs))
        seen = [one for one in self._routing.seen() if one.standing is not Standing.OFF]
        live = (
            ((one.source, one.filter, one.standing.value), float(one.standing is Standing.LIVE))
            for one in seen
        )
        yield Family(names.FILTER_LIVE, tuple(live))
        yield Family(names.FILTER_BEHIND, tuple(self._behind(seen)))

    def _behind(self, seen: Sequence[Seen]) -> Iterator[tuple[tuple[str, str], float]]:
        owed: dict[str, list[Owed]] = {}
        for one in self._routing.owed(states=(Owing.WAITING, Owing.FAILED)):
            owed.setdefault(one.filter, []).append(one)
        sources = {one.source for one in seen}
        reached = {source: self._store.settled_range(f"router-{source}") for source in sources}
        for one in seen:
            left = self._owed(one.filter, owed.get(one.filter, []))
            far = reached[one.source]
            if one.standing in HALTED and one.cutover and far and far.source_id == one.source_id:
                left += size(between(one.cutover, far.end))
            yield (one.source, one.filter), left

    def _owed(self, filter: str, owed: Sequence[Owed]) -> int:
        if not owed:
            return 0
        judged = _judged(self._routing.routed(filter).ranges)
        return size(minus(_spans_of(owed), judged))
