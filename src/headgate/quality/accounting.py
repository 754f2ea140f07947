"""Checks the accounts of a quality job: its ledger against its tables and the broker, for `headgate certify`.

`scripts/recheck_certificate.py` checks the accounts of datasets only, not yet these.
`table_uses` names the tables for maintenance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
from headgate.core.accounting.table_evidence import letters_by_batch, named_snapshots
from headgate.core.accounting.table_history import history_line
from headgate.core.lake.table_use import DEAD_LETTERS_ROLE, TableUse
from headgate.core.ledger.model import ACTIVE, Intent, LedgerRow, Run
from headgate.core.ledger.offset_ranges import gaps, last_offsets, overlaps, since_rebuild
from headgate.core.ledger.ranges import TopicRange, is_rebuild
from headgate.core.sql.fragments import DEAD_LETTERS, job_name, table_name
from headgate.quality.compile.tables import NAMESPACE, QUALITY, RECONCILE

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.lake.duckdb_reader import Lake
    from headgate.core.ledger.ops_store import OpsStore

TABLES = ("results", "partials")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RuleEvidence:
    """What the account of one rule table rests on; counts are sums over its partials."""

    table: str
    ledger: tuple[LedgerRow, ...]
    open_batches: int
    streaming: bool
    settled: frozenset[int]
    results: TableEvidence | None
    partials: TableEvidence | None
    letters: int
    rows_counted: int
    rules_counted: int
    rules_settled: int
    on_broker: TopicEvidence | None
    why_no_broker: str = ""
    # By the time of the batch that wrote them, which is how a letter names its batch.
    letters_at: Mapping[datetime, int] = field(default_factory=dict[datetime, int])
    unsettled: tuple[Intent, ...] = ()

    @property
    def rows(self) -> tuple[LedgerRow, ...]:
        """The batches that still count: of evaluations of snapshots only the last."""
        return since_rebuild(self.ledger)

    @property
    def is_of_snapshot(self) -> bool:
        return bool(self.rows) and is_rebuild(self.rows[-1].range)

    def outcomes(self) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        for row in self.rows:
            found.update(row.outcomes)
        return found


def account(evidence: RuleEvidence) -> RuleAccount:
    """Every line of the account."""
    found = {"results": evidence.results, "partials": evidence.partials}
    tables = {role: table for role, table in found.items() if table is not None}
    lines = (
        _records(evidence),
        *((_snapshot_letters(evidence),) if evidence.is_of_snapshot else _topic_lines(evidence)),
        _partials(evidence),
        _rules(evidence),
        _open(evidence),
        *(
            history_line(table, evidence.settled, unsettled=evidence.unsettled)
            for table in tables.values()
        ),
    )
    return RuleAccount(evidence.table, lines, tables)


def account_table(settings: Settings, store: OpsStore, lake: Lake, table: str) -> RuleAccount:
    """The account of a rule table as it is now."""
    return account(gather(settings, store, lake, table))


ACCOUNT_KIND = AccountKind(QUALITY, "rules of {}", account_table)


def _records(evidence: RuleEvidence) -> Line:
    found = evidence.outcomes()
    read, told = sum(row.read for row in evidence.rows), sum(found.values())
    parts = " + ".join(f"{name} {n:,}" for name, n in sorted(found.items()) if n)
    return line("records", read == told, f"read {read:,} = {parts or 'nothing'}", f"{told:,} told")


def _refused(outcomes: Mapping[str, int]) -> int:
    return outcomes.get("refused", 0) + outcomes.get("dead_letter", 0)


def _snapshot_letters(evidence: RuleEvidence) -> Line:
    """An evaluation sees all rows again, and writes letters only of those that have none.

    So each writes at most as many as it refused. Rows of a table that are alike share one letter, so
    all that the last one refused may have a single one.
    """
    wanted = _refused(evidence.rows[-1].outcomes)
    least = min(wanted, 1)
    over = [
        f"{found:,} of the batch of {row.batch_time:%Y-%m-%d %H:%M:%S}, which refused {most:,}"
        for row in evidence.ledger
        if (found := evidence.letters_at.get(row.batch_time, 0)) > (most := _refused(row.outcomes))
    ]
    few = [f"only {evidence.letters:,} in all"] if evidence.letters < least else []
    words = f"dead letters of all evaluations {evidence.letters:,}, the last refused {wanted:,}"
    return line("dead letters", not over and not few, words, "; ".join([*over, *few]))


def _topic_lines(evidence: RuleEvidence) -> tuple[Line, ...]:
    found, rows = evidence.outcomes(), evidence.rows
    judged = found.get("accepted", 0) + found.get("dead_letter", 0)
    refused = _refused(found)
    there = evidence.results.rows if evidence.results else 0
    broken = [seam.sentence() for seam in (*gaps(rows), *overlaps(rows))]
    return (
        line("results", there == judged, f"results {there:,} = ledger {judged:,}", "they differ"),
        line(
            "dead letters",
            evidence.letters == refused,
            f"dead letters {evidence.letters:,} = ledger {refused:,}",
            "they differ",
        ),
        line("offsets", not broken, "every offset once, in turn", "; ".join(broken)),
        _produced(evidence),
    )


def _produced(evidence: RuleEvidence) -> Line:
    topic = evidence.on_broker
    if topic is None:
        return Line("produced", Verdict.WARN, "the topic was not asked", evidence.why_no_broker)
    done = last_offsets(topic.of(evidence.rows))
    left = sum(max(0, end - done.get(p, topic.begin.get(p, 0))) for p, end in topic.end.items())
    words = "all that is on the topic was judged"
    if left:  # nobody has to judge everything at once; what was read must add up
        return Line("produced", Verdict.WARN, words, f"{left:,} records are not judged yet")
    return Line("produced", Verdict.PASS, words)


def _partials(evidence: RuleEvidence) -> Line:
    there = evidence.results.rows if evidence.results else 0
    words = f"rows counted into windows {evidence.rows_counted:,} = results {there:,}"
    return line("windows", evidence.rows_counted == there, words, "they differ")


def _rules(evidence: RuleEvidence) -> Line:
    words = f"rows that rules gave a status {evidence.rules_counted:,} = ledger's counts"
    same = evidence.rules_counted == evidence.rules_settled
    return line("rules", same, words, f"the ledger has {evidence.rules_settled:,}")


def _open(evidence: RuleEvidence) -> Line:
    return open_line(evidence.open_batches, streaming=evidence.streaming)


def windows_of(lake: Lake, table: str) -> int:
    """How many rows its partials have counted into windows."""
    return _sums(lake, table)["rows"]


def gather(settings: Settings, store: OpsStore, lake: Lake, table: str) -> RuleEvidence:
    """All evidence of one rule table."""
    from headgate.core.accounting.broker import ask_broker
    from headgate.core.accounting.table_evidence import table_evidence

    job, rows = job_name(QUALITY, table), store.ledger()
    own = tuple(row for row in rows if row.job == job)
    newest = own[-1].range if own else None
    topic = newest.topic if isinstance(newest, TopicRange) else ""
    on_broker, why = ask_broker(settings, topic) if topic else (None, "")
    sums, letters = _sums(lake, table), letters_by_batch(lake, job)
    results = table_evidence(lake, f"dq.results_{table}")
    partials = table_evidence(lake, f"dq.partials_{table}")
    unsettled = store.unsettled_intents()
    counts = store.newest_rule_counts(job, max(1, len(own)))
    current = {row.id for row in since_rebuild(own)}
    return RuleEvidence(
        table=table,
        ledger=own,
        open_batches=len(store.open_intents(job)),
        streaming=any(run.mode == "streaming" for run in store.runs(job, states=ACTIVE)),
        settled=named_snapshots(store),
        unsettled=unsettled,
        results=results,
        partials=partials,
        letters=sum(letters.values()),
        rows_counted=sums["rows"],
        rules_counted=sums["rule"],
        rules_settled=sum(c.n for id_, found in counts.items() if id_ in current for c in found),
        on_broker=on_broker,
        why_no_broker=why,
        letters_at=letters,
    )


def _sums(lake: Lake, table: str) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    partials = f"dq.partials_{table}"
    if lake.exists(partials):
        query = f"SELECT kind, sum(n) FROM {lake.scan_sql(partials)} GROUP BY kind"
        found.update({str(kind): int(str(n or 0)) for kind, n in lake.query(query)})
    return found


def table_uses(store: OpsStore, run: Run) -> tuple[TableUse, ...]:
    """The tables of rule sets that grow with every batch; keys that were seen are dropped by their own job."""
    return rule_table_uses(store, TABLES, (QUALITY,))


def rule_table_uses(
    store: OpsStore, tables: Iterable[str], kinds: Iterable[str]
) -> tuple[TableUse, ...]:
    """These tables of each rule set and pair whose job ever ran, with its jobs of these kinds."""
    uses: list[TableUse] = []
    for subject in sorted({r.subject for r in store.runs() if r.kind in (QUALITY, RECONCILE)}):
        jobs = frozenset(job_name(kind, subject) for kind in kinds)
        names = [f"{NAMESPACE}.{table}_{subject}" for table in tables]
        uses += (TableUse(name, table_name(name), resuming=jobs) for name in names)
        uses.append(TableUse(DEAD_LETTERS_ROLE, DEAD_LETTERS, writing=jobs))
    return tuple(uses)
