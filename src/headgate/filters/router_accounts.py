"""Do the accounts of a router add up? Its ledger against its filters, their topics and the broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.core.accounting.facts import (
    Line,
    RuleAccount,
    TableEvidence,
    Verdict,
    line,
    open_line,
)
from headgate.core.accounting.table_evidence import dead_letters_of
from headgate.core.accounting.topic import TopicEvidence
from headgate.core.ledger.coverage import gaps, last_offsets, overlaps
from headgate.core.ledger.store_model import ACTIVE, LedgerRow
from headgate.core.sql.compile_fragments import job_name
from headgate.filters.router_arrived import Arrived, arrived
from headgate.filters.router_ranges import FilterRanges, ranges_of_all

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.lake.duckdb_reader import Lake
    from headgate.core.ledger.ops_store import OpsStore

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
    from headgate.core.accounting.checks_broker import ask_broker

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
