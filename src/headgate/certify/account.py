"""The account of a dataset: every line that must hold between topic, ledger, bronze, silver and dead letters.

Pure: evidence in, check results out; no clock, no disk. The account holds when no line is FAIL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headgate.core.accounting.evidence import (
    NOT_COUNTED,
    AcceptedGap,
    BatchCount,
    Line,
    OnTopic,
    Recount,
    TableEvidence,
    TopicEvidence,
    Verdict,
    begun_late,
    differing,
    line,
    on_topic,
    open_line,
)
from headgate.core.accounting.table_history import (
    batches_line,
    certified_lines,
    history_line,
    misfits,
)
from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.offset_ranges import gaps, last_offsets, overlaps, since_rebuild
from headgate.core.ledger.ranges import is_rebuild
from headgate.core.sql.fragments import job_name
from headgate.errors import count_of

# What a backfill has added (its net) comes to silver again as one of these.
DUPLICATES = ("duplicate", "replaced", "backfilled")


@dataclass(frozen=True)
class Evidence:
    """Everything that the account of one dataset rests on.

    `settled` are the snapshots that the whole ledger names, other datasets included: they share
    the dead-letter table.
    """

    dataset: str
    topic: str
    streaming: bool
    bronze_ledger: tuple[LedgerRow, ...]
    silver_ledger: tuple[LedgerRow, ...]
    open_batches: int
    settled: frozenset[int]
    bronze: TableEvidence | None
    silver: TableEvidence | None
    dead_letters: TableEvidence | None
    repeated_origins: int
    on_broker: TopicEvidence | None
    why_no_broker: str = ""
    recount: Recount = NOT_COUNTED
    backfill_ledger: tuple[LedgerRow, ...] = ()
    gaps: tuple[AcceptedGap, ...] = ()
    declared_topic: str = ""
    is_declared: bool = True

    @property
    def confirmed(self) -> TopicEvidence | None:
        """The topic that the newest batch has read, where the broker still has it."""
        topic = self.on_broker
        return topic if topic and not topic.made_again(self.bronze_ledger) else None


@dataclass(frozen=True)
class Sums:
    """The ledger of one dataset, summed."""

    read: int
    gaps: int
    expired: int
    accepted: int
    refused: int
    tombstones: int
    kept: int
    duplicates: int
    filtered: int


def sums(evidence: Evidence) -> Sums:
    bronze, silver = evidence.bronze_ledger, since_rebuild(evidence.silver_ledger)
    net = sum(row.net for row in backfills(evidence))
    return Sums(
        read=sum(row.read for row in bronze),
        gaps=sum(row.gaps for row in bronze if not row.is_accepted_gap),
        expired=sum(row.gaps for row in bronze if row.is_accepted_gap),
        accepted=_outcome(bronze, "accepted"),
        refused=_outcome(bronze, "refused"),
        tombstones=_outcome(bronze, "tombstone"),
        kept=_outcome(silver, "kept") + net,
        duplicates=sum(_outcome(silver, name) for name in DUPLICATES) - net,
        filtered=_outcome(silver, "filtered"),
    )


def backfills(evidence: Evidence) -> tuple[LedgerRow, ...]:
    """Those that still count: what a rebuild found there, it has replaced."""
    silver = since_rebuild(evidence.silver_ledger)
    rows = evidence.backfill_ledger
    return tuple(row for row in rows if silver and row.committed_at > silver[0].committed_at)


def _outcome(rows: Sequence[LedgerRow], name: str) -> int:
    return sum(row.outcomes.get(name, 0) for row in rows)


MOST_TOLD = 5


def produced(evidence: Evidence) -> int:
    """Records ever put on the topic, by the broker when it answers, else by the ledger."""
    return _on_topic(evidence).produced


def produced_line(evidence: Evidence, total: Sums) -> Line:
    found, parts = _on_topic(evidence), total.accepted + total.refused + total.tombstones
    under_way = max(0, found.after) if evidence.streaming and evidence.confirmed else 0
    found = OnTopic(found.produced - under_way, found.before, found.after - under_way)
    words = (
        f"produced {found.produced:,} = bronze {total.accepted:,}"
        f" + dead letters {total.refused:,} + tombstones {total.tombstones:,}"
    )
    if found.produced != parts:
        return line("produced", False, words, _unread(evidence, found, found.produced - parts))
    note = f"{under_way:,} more wait on the topic" if under_way else _why_alone(evidence)
    return Line("produced", Verdict.WARN if note else Verdict.PASS, words, note)


def _on_topic(evidence: Evidence) -> OnTopic:
    if evidence.on_broker is None:
        return OnTopic(sum(row.read for row in evidence.bronze_ledger))
    return on_topic(evidence.bronze_ledger, evidence.on_broker, evidence.recount)


def _unread(evidence: Evidence, found: OnTopic, rest: int) -> str:
    """Why more or fewer records were produced than have an outcome."""
    after = f"{found.after:,} records on the topic are not yet processed"
    if evidence.on_broker and not evidence.confirmed:
        job = job_name("bronze", evidence.dataset)
        after += f": it was made again (headgate job repair {job})"
    reasons = (
        (found.before > 0, f"{found.before:,} records before the first batch have not been read"),
        (found.after > 0, after),
        (found.after < 0, f"the topic ends {-found.after:,} offsets before the last batch does"),
    )
    told = [words for holds, words in reasons if holds]
    return "; ".join(told) or f"{rest:+,} not accounted for"


def _why_alone(evidence: Evidence) -> str:
    """Why the broker cannot confirm what the ledger says; nothing when it can."""
    if evidence.confirmed:
        return ""
    again = f"the topic {evidence.topic} was made again"
    return f"by the ledger alone: {again if evidence.on_broker else evidence.why_no_broker}"


def counted_lines(evidence: Evidence) -> tuple[Line, ...]:
    """The topic's records, counted anew; the produced line says when there is no topic to count."""
    topic, found = evidence.confirmed, evidence.recount
    if topic is None or not evidence.bronze_ledger:
        return ()
    if found.why_not:
        words = "records and gaps were not counted again on the topic"
        return (Line("counted", Verdict.WARN, words, found.why_not),)
    left = (
        f", {count_of(found.left, 'batch', 'batches')} no longer whole there" if found.left else ""
    )
    words = f"{found.counted:,} records counted on the topic = ledger {found.read:,}{left}"
    wrong = differing(found, topic)
    if not wrong and found.counted < found.read:
        words = words.replace(" = ", " ≤ ")
        detail = "the topic is compacted: the others may have been removed since"
        return (Line("counted", Verdict.WARN, words, detail),)
    return (line("counted", not wrong, words, "; ".join(map(_told, wrong[:MOST_TOLD]))),)


def _told(batch: BatchCount) -> str:
    row = batch.batch
    return f"run {row.run} batch {row.batch_id}: {batch.counted:,} counted, {row.read:,} read"


def topic_lines(evidence: Evidence) -> tuple[Line, ...]:
    """The account is of the topic that was read; another one may be meant by now."""
    if evidence.declared_topic in ("", evidence.topic):
        return ()
    words = f"the account is of the topic {evidence.topic}"
    detail = f"declared is {evidence.declared_topic}, of which nothing was read since"
    return (Line("topic", Verdict.WARN, words, detail),)


def expired_lines(evidence: Evidence, total: Sums) -> tuple[Line, ...]:
    """What nobody has read and nobody will: it is named in every certificate from then on."""
    if not total.expired:
        return ()
    words = f"{count_of(total.expired, 'record')} expired on the topic before they were read"
    told = "; ".join(gap.sentence for gap in evidence.gaps)
    return (Line("expired", Verdict.WARN, words, told),)


def gaps_line(evidence: Evidence, total: Sums) -> Line:
    if not total.gaps:
        return Line("gaps", Verdict.PASS, "no offset is without a record")
    verb = "is" if total.gaps == 1 else "are"
    words = f"{count_of(total.gaps, 'offset')} {verb} without a record"
    topic = evidence.on_broker
    if topic and topic.compacted:
        return Line("gaps", Verdict.PASS, f"{words}: the topic is compacted")
    if topic and topic.transactions:
        return Line("gaps", Verdict.PASS, f"{words}: its broker has had transactions")
    unknown = "the topic is not compacted, and its broker knows of no transaction"
    return Line("gaps", Verdict.WARN, words, unknown if topic else evidence.why_no_broker)


def account(evidence: Evidence) -> tuple[Line, ...]:
    """Every line of the account; it holds when none of them is FAIL."""
    if not evidence.is_declared and evidence.bronze is None and evidence.silver is None:
        words = f"{evidence.dataset} is no longer declared, and its tables are gone"
        return (Line("declared", Verdict.WARN, words, "it is left out of the account"),)
    total = sums(evidence)
    return (
        *_declared_lines(evidence),
        _something(total),
        produced_line(evidence, total),
        _silver_sum(total),
        *topic_lines(evidence),
        *counted_lines(evidence),
        gaps_line(evidence, total),
        *expired_lines(evidence, total),
        _offsets(evidence),
        _steps(evidence),
        _open_batches(evidence),
        _origins(evidence),
        _rows("bronze rows", evidence.bronze, total.accepted),
        _rows("dead letters", evidence.dead_letters, total.refused),
        _rows("silver rows", evidence.silver, total.kept),
        *_history_lines(evidence),
    )


def _declared_lines(evidence: Evidence) -> tuple[Line, ...]:
    if evidence.is_declared:
        return ()
    words = f"{evidence.dataset} is no longer declared"
    return (Line("declared", Verdict.WARN, words, "its topic and tables are those of the ledger"),)


def _something(total: Sums) -> Line:
    # An account of nothing would hold vacuously.
    words = f"{total.read:,} records read, {total.kept:,} rows in silver"
    return line("records", total.read > 0 and total.kept > 0, words, "nothing has been processed")


def _silver_sum(total: Sums) -> Line:
    words = (
        f"bronze {total.accepted:,} = silver {total.kept:,}"
        f" + duplicates {total.duplicates:,} + filtered {total.filtered:,}"
    )
    rest = total.accepted - total.kept - total.duplicates - total.filtered
    detail = f"silver has not read {rest:,} rows" if rest > 0 else f"silver read {-rest:,} too many"
    return line("silver", rest == 0, words, detail)


def _offsets(evidence: Evidence) -> Line:
    rows = evidence.bronze_ledger
    broken = (*gaps(rows), *overlaps(rows))
    partitions = count_of(len(last_offsets(rows)), "partition")
    batches = count_of(len(rows), "batch", "batches")
    words = f"{partitions}, {batches}, every offset once, in turn"
    late = begun_late(rows, evidence.on_broker) if evidence.on_broker else 0
    if late:
        words += f"; {late} begin above 0, and what was before is no longer on the topic"
    return line("offsets", not broken, words, "; ".join(seam.sentence() for seam in broken))


def _steps(evidence: Evidence) -> Line:
    rows = since_rebuild(evidence.silver_ledger)
    broken = [seam.sentence() for seam in gaps(rows)]
    if rows and not is_rebuild(rows[0].range):
        broken.append("its first step does not start from nothing")
    words = f"silver followed bronze in {count_of(len(rows), 'step')} without a break"
    if filled := backfills(evidence):
        words += f", {count_of(len(filled), 'backfill')} beside"
    return line("steps", not broken, words, "; ".join(broken))


def _open_batches(evidence: Evidence) -> Line:
    return open_line(evidence.open_batches, streaming=evidence.streaming)


def _origins(evidence: Evidence) -> Line:
    words = "every offset of a topic stands once in bronze or in the dead letters"
    found = evidence.repeated_origins
    return line(
        "origins", found == 0, words, f"{found:,} stand more than once, or belong to no batch"
    )


def _rows(name: str, table: TableEvidence | None, expected: int) -> Line:
    if table is None:
        return line(name, expected == 0, f"no table, ledger {expected:,}", "the table is missing")
    words = f"{table.name} {table.rows:,} = ledger {expected:,}"
    return line(name, table.rows == expected, words, f"{table.rows - expected:+,} in the table")


def _history_lines(evidence: Evidence) -> Iterator[Line]:
    """Of each table: its commits, its rows batch by batch, and what was certified before."""
    bronze, silver = evidence.bronze_ledger, evidence.silver_ledger
    own_jobs = {row.job for row in (*bronze, *silver, *evidence.backfill_ledger)}
    known = evidence.settled
    appended = ((evidence.bronze, "accepted"), (evidence.dead_letters, "refused"))
    for table, outcome in appended:
        if table is not None:
            wrong = misfits(table, bronze, lambda row, name=outcome: row.outcomes.get(name, 0))
            yield history_line(table, known, own_jobs=own_jobs, misfits=wrong)
            if table.batches is not None:
                yield batches_line(table, bronze, outcome)
            yield from certified_lines(table)
    if evidence.silver is not None:
        table = evidence.silver
        wrong = (
            *misfits(table, silver, lambda row: row.outcomes.get("kept", 0), rebuilds=True),
            *misfits(table, evidence.backfill_ledger, lambda row: row.net),
        )
        yield history_line(table, known, own_jobs=own_jobs, misfits=wrong)
        rebuilds = (row.snapshots.values() for row in silver if is_rebuild(row.range))
        yield from certified_lines(table, frozenset(id_ for ids in rebuilds for id_ in ids))
