"""The account of a reconciled pair: its ledger against its tables and both topics, line by line.

`table_uses` names its tables for maintenance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
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
from headgate.core.accounting.table_evidence import dead_letters_of, named_snapshots
from headgate.core.accounting.table_history import history_line
from headgate.core.ledger.model import ACTIVE, Intent, LedgerRow, Run
from headgate.core.ledger.offset_ranges import gaps, overlaps
from headgate.core.sql.fragments import job_name
from headgate.quality.accounting import rule_table_uses, windows_of
from headgate.quality.compile.tables import RECONCILE

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.lake.duckdb_reader import Lake
    from headgate.core.lake.table_use import TableUse
    from headgate.core.ledger.ops_store import OpsStore

SWEEP = "sweep"
TABLES = ("states", "results", "partials")


@dataclass(frozen=True)
class OnTopic:
    """One side's topic as the broker has it, and how far the ledger has read it."""

    name: str
    done: Mapping[str, int]
    evidence: TopicEvidence | None
    why_no_broker: str = ""

    @property
    def left(self) -> int:
        """Offsets that are not read yet."""
        if self.evidence is None:
            return 0
        begin, end = self.evidence.begin, self.evidence.end
        return sum(max(0, at - max(self.done.get(p, 0), begin.get(p, 0))) for p, at in end.items())


@dataclass(frozen=True)
class PairEvidence:
    """What the account of one pair rests on."""

    table: str
    ledger: tuple[LedgerRow, ...]
    open_batches: int
    streaming: bool
    settled: frozenset[int]
    tables: Mapping[str, TableEvidence]
    letters: int
    windowed: int
    final: int
    swept: int
    swept_rows: int
    topics: tuple[OnTopic, ...]
    unsettled: tuple[Intent, ...] = ()

    def outcomes(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for row in self.ledger:
            found.update(row.outcomes)
        return found


def account(evidence: PairEvidence) -> RuleAccount:
    """Every line of the account."""
    lines = (
        _records(evidence),
        _letters(evidence),
        _offsets(evidence),
        *(_produced(topic, evidence.streaming) for topic in evidence.topics),
        _windows(evidence),
        _swept(evidence),
        _open(evidence),
        *(
            history_line(table, evidence.settled, unsettled=evidence.unsettled)
            for table in evidence.tables.values()
        ),
    )
    return RuleAccount(evidence.table, lines, evidence.tables)


def account_pair(settings: Settings, store: OpsStore, lake: Lake, table: str) -> RuleAccount:
    """The account of a pair as it is now."""
    return account(gather(settings, store, lake, table))


ACCOUNT_KIND = AccountKind(RECONCILE, "rules of {}", account_pair)


def _records(evidence: PairEvidence) -> Line:
    """Each record of both topics is accepted, a tombstone or a dead letter."""
    found, read = evidence.outcomes(), sum(row.read for row in evidence.ledger)
    parts = " + ".join(f"{name} {n:,}" for name, n in sorted(found.items()) if n)
    told = sum(found.values())
    words = f"read {read:,} on both topics = {parts or 'nothing'}"
    return line("records", read == told, words, f"{told:,} told")


def _letters(evidence: PairEvidence) -> Line:
    refused = evidence.outcomes()["refused"]
    words = f"dead letters {evidence.letters:,} = ledger {refused:,}"
    return line("dead letters", evidence.letters == refused, words, "they differ")


def _offsets(evidence: PairEvidence) -> Line:
    broken = [seam.sentence() for seam in (*gaps(evidence.ledger), *overlaps(evidence.ledger))]
    return line("offsets", not broken, "every offset once, in turn", "; ".join(broken))


def _produced(topic: OnTopic, streaming: bool) -> Line:
    words = f"all that is on {topic.name} was read"
    if topic.evidence is None:
        return Line("produced", Verdict.WARN, words, topic.why_no_broker)
    if topic.left:  # nobody has to read everything at once; what was read must add up
        note = f"{topic.left:,} records wait" + (", and the stream goes on" if streaming else "")
        return Line("produced", Verdict.WARN, words, note)
    return Line("produced", Verdict.PASS, words)


def _windows(evidence: PairEvidence) -> Line:
    """Every settled verdict is counted into one window."""
    words = f"verdicts counted into windows {evidence.windowed:,} = settled {evidence.final:,}"
    return line("windows", evidence.windowed == evidence.final, words, "they differ")


def _swept(evidence: PairEvidence) -> Line:
    """What sweeps have written stands in the results."""
    words = f"verdicts of sweeps {evidence.swept_rows:,} = ledger {evidence.swept:,}"
    return line("sweeps", evidence.swept_rows == evidence.swept, words, "they differ")


def _open(evidence: PairEvidence) -> Line:
    return open_line(evidence.open_batches, streaming=evidence.streaming)


def gather(settings: Settings, store: OpsStore, lake: Lake, table: str) -> PairEvidence:
    """All evidence of one pair."""
    from headgate.core.accounting.table_evidence import table_evidence

    job, sweeps, rows = job_name(RECONCILE, table), job_name(SWEEP, table), store.ledger()
    found = {kind: table_evidence(lake, f"dq.{kind}_{table}") for kind in TABLES}
    unsettled = store.unsettled_intents()
    return PairEvidence(
        table=table,
        ledger=tuple(row for row in rows if row.job == job),
        open_batches=len(store.open_intents(job)) + len(store.open_intents(sweeps)),
        streaming=any(run.mode == "streaming" for run in store.runs(job, states=ACTIVE)),
        settled=named_snapshots(store),
        unsettled=unsettled,
        tables={kind: evidence for kind, evidence in found.items() if evidence is not None},
        letters=dead_letters_of(lake, job),
        windowed=windows_of(lake, table),
        final=_count(lake, table, "settled"),
        swept=sum(row.outcomes.get("swept", 0) for row in rows if row.job == sweeps),
        swept_rows=_count(lake, table, "origin = 'sweep'"),
        topics=_topics(settings, store, job),
    )


def _count(lake: Lake, table: str, which: str) -> int:
    results = f"dq.results_{table}"
    if not lake.exists(results):
        return 0
    found = lake.query(f"SELECT count(*) FROM {lake.scan_sql(results)} WHERE {which}")
    return int(str(found[0][0]))


def _topics(settings: Settings, store: OpsStore, job: str) -> tuple[OnTopic, ...]:
    from headgate.core.accounting.broker import ask_broker
    from headgate.core.ledger.ranges import topic_ranges

    settled, found = store.settled_range(job), list[OnTopic]()
    for own in topic_ranges(settled).values():
        evidence, why = ask_broker(settings, own.topic)
        same = evidence is None or evidence.topic_id == own.source_id
        found.append(OnTopic(own.topic, own.end if same else {}, evidence, why))
    return tuple(found)


def table_uses(store: OpsStore, run: Run) -> tuple[TableUse, ...]:
    """The tables of pairs that grow with every batch; a sweep writes to them beside the job."""
    return rule_table_uses(store, TABLES, (RECONCILE, SWEEP))
