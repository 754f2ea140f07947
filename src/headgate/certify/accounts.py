"""Do the accounts of a dataset add up? Evidence in, lines of the account out; no clock, no disk."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.certify.account_evidence import Evidence, Sums, backfills, sums
from headgate.certify.produced import (
    counted_lines,
    expired_lines,
    gaps_line,
    produced_line,
    topic_lines,
)
from headgate.core.accounting.facts import Line, TableEvidence, Verdict, line, open_line
from headgate.core.accounting.table_history import (
    batches_line,
    certified_lines,
    history_line,
    misfits,
)
from headgate.core.accounting.topic import begun_late
from headgate.core.ledger.coverage import gaps, last_offsets, overlaps, since_rebuild
from headgate.plurals import count_of


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
    if rows and not rows[0].range.starts_anew:
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
        rebuilds = (row.snapshots.values() for row in silver if row.range.starts_anew)
        yield from certified_lines(table, frozenset(id_ for ids in rebuilds for id_ in ids))
