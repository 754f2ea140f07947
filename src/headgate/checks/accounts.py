"""Do the accounts of a dataset add up? Evidence in, lines of the account out; no clock, no disk."""

from __future__ import annotations

from headgate.checks.facts import (
    Evidence,
    Line,
    Sums,
    TableEvidence,
    backfills,
    line,
    open_line,
    sums,
)
from headgate.checks.produced import (
    counted_lines,
    expired_lines,
    gaps_line,
    produced_line,
    topic_lines,
)
from headgate.checks.topic import begun_late
from headgate.store.coverage import gaps, last_offsets, overlaps, since_rebuild


def account(evidence: Evidence) -> tuple[Line, ...]:
    """Every line of the account; it holds when none of them is FAIL."""
    total = sums(evidence)
    return (
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
        *(_history(table, evidence) for table in _tables(evidence)),
    )


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
    words = f"{len(last_offsets(rows))} partitions, {len(rows)} batches, every offset once, in turn"
    late = begun_late(rows, evidence.on_broker) if evidence.on_broker else 0
    if late:
        words += f"; {late} begin above 0, and what was before is no longer on the topic"
    return line("offsets", not broken, words, "; ".join(seam.sentence() for seam in broken))


def _steps(evidence: Evidence) -> Line:
    rows = since_rebuild(evidence.silver_ledger)
    broken = [seam.sentence() for seam in gaps(rows)]
    if rows and not rows[0].range.starts_anew:
        broken.append("its first step does not start from nothing")
    words = f"silver followed bronze in {len(rows)} steps without a break"
    if filled := backfills(evidence):
        words += f", {len(filled)} backfills beside"
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


def _tables(evidence: Evidence) -> tuple[TableEvidence, ...]:
    found = (evidence.bronze, evidence.dead_letters, evidence.silver)
    return tuple(table for table in found if table is not None)


def _history(table: TableEvidence, evidence: Evidence) -> Line:
    known = evidence.settled
    foreign = [c for c in table.commits if not c.is_ours(known) and not c.only_rewrites()]
    words = f"all {len(table.commits)} snapshots of {table.name} are ours"
    if not table.commits:
        words = f"{table.name} is empty: nobody has written to it"
    detail = ", ".join(f"{c.operation} {c.id}" for c in foreign)
    return line(f"history of {table.name}", not foreign, words, f"not ours: {detail}")
