"""Compares a table's history with the ledger, and what an earlier certificate noted with what the table holds now.

A commit's own metadata proves nothing: any session can write `headgate.job` into a summary. So a commit counts
as ours when a ledger row names it and its row counts are those of that row. Snapshots expire, so the content
that an earlier certificate noted is compared too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime

from headgate.core.accounting.evidence import MARKER, Commit, Line, TableEvidence, Verdict, line
from headgate.core.lake.commits import FENCE, PREFIX
from headgate.core.ledger.model import Intent, LedgerRow
from headgate.core.ledger.ranges import is_rebuild

MAX_LISTED = 5
ExpectedRows = Callable[[LedgerRow], int]


def history_line(
    table: TableEvidence,
    named: frozenset[int],
    *,
    own_jobs: Collection[str] = (),
    unsettled: Iterable[Intent] = (),
    misfits: Sequence[str] = (),
) -> Line:
    """Every snapshot is one that the ledger names, or one that changes no row.

    In a table that jobs share, another job's append is fine: it cannot change a row, and rows that
    it adds in the name of one of `own_jobs` are counted elsewhere. `unsettled` are the batches that
    are under way or were given up; no ledger row names their commits.
    """
    pending = frozenset((intent.job, intent.batch_time.isoformat()) for intent in unsettled)
    foreign = [
        f"{commit.operation} {commit.id}"
        for commit in table.commits
        if not (
            commit.ids & named
            or commit.only_rewrites()
            or commit.only_marks()
            or _is_append_of_another_job(commit, own_jobs)
            or _is_of(commit, pending)
        )
    ]
    words = f"all {len(table.commits)} snapshots of {table.name} are ours"
    if len(table.commits) == 1:
        words = f"the one snapshot of {table.name} is ours"
    if not table.commits:
        words = f"{table.name} is empty: nobody has written to it"
    details = [f"not ours: {', '.join(foreign)}"] if foreign else []
    detail = "; ".join([*details, *misfits[:MAX_LISTED]])
    return line(f"history of {table.name}", not detail, words, detail)


def _is_append_of_another_job(commit: Commit, own_jobs: Collection[str]) -> bool:
    job = commit.metadata.get(MARKER)
    is_other = job is not None and job.removeprefix(FENCE) not in own_jobs
    return bool(own_jobs) and is_other and commit.operation == "append"


def _is_of(commit: Commit, pending: frozenset[tuple[str, str]]) -> bool:
    metadata = commit.metadata
    job = metadata.get(MARKER, "").removeprefix(FENCE)
    return (job, metadata.get(f"{PREFIX}batch-time", "")) in pending


def misfits(
    table: TableEvidence,
    rows: Iterable[LedgerRow],
    expected_rows: ExpectedRows,
    *,
    rebuilds: bool = False,
) -> tuple[str, ...]:
    """A sentence for each commit that brought other rows than the ledger row that names it says.

    `rebuilds` is for a job whose batches that start anew replace all rows, deleting the old ones.
    """
    by_id = {id_: row for row in rows for id_ in row.snapshots.values()}
    sentences: list[str] = []
    for commit in table.commits:
        row = next((by_id[id_] for id_ in commit.ids if id_ in by_id), None)
        if row is None:
            continue
        rebuilt = rebuilds and is_rebuild(row.range)
        found = commit.added if rebuilt else commit.gained
        if found != (expected := expected_rows(row)):
            batch = f"run {row.run} batch {row.batch_id} of {row.job}"
            sentences.append(f"snapshot {commit.id} brought {found:,} rows, {batch} {expected:,}")
    return tuple(sentences)


def batches_line(table: TableEvidence, rows: Sequence[LedgerRow], outcome: str) -> Line:
    """Each batch has as many rows in the table as the ledger says of it alone."""
    expected: dict[datetime, int] = {}
    for row in rows:
        expected[row.batch_time] = expected.get(row.batch_time, 0) + row.outcomes.get(outcome, 0)
    counted = table.batches or {}
    wrong = [
        f"{at:%Y-%m-%d %H:%M:%S}: {counted.get(at, 0):,} rows, ledger {expected.get(at, 0):,}"
        for at in sorted({*expected, *counted})
        if counted.get(at, 0) != expected.get(at, 0)
    ]
    words = f"rows of {table.name} by batch = ledger"
    return line(f"batches of {table.name}", not wrong, words, "; ".join(wrong[:MAX_LISTED]))


def certified_lines(table: TableEvidence, rebuilds: frozenset[int] = frozenset()) -> list[Line]:
    """What was certified before is still there, or can be followed from then to now.

    `rebuilds` are snapshots that replaced all rows: what was before them no longer counts.
    """
    name, before = f"certified rows of {table.name}", table.certified
    if before is None:
        if _reaches_back(table, rebuilds):
            return []
        words = f"the history of {table.name} does not reach back to its first batch"
        return [Line(name, Verdict.WARN, words, "a change before that can no longer be seen")]
    since = f"certified {before.made_at:%Y-%m-%d %H:%M:%S} UTC"
    words = f"{before.rows:,} rows of {table.name}, {since}, are unchanged"
    if table.certified_now is not None:
        rows, content = table.certified_now
        if (rows, content) != (before.rows, before.content_hash):
            detail = f"now {rows:,} rows with content {content}, then {before.content_hash}"
            return [line(name, False, words, detail)]
        if table.until == before.until:
            return [line(name, True, words)]
    if _reaches_back(table, rebuilds):
        return [line(name, True, words if table.certified_now else _followed(table, since))]
    words = words if table.certified_now else f"{table.name} was {since}"
    return [Line(name, Verdict.WARN, words, "snapshots made since have expired: not all is seen")]


def _followed(table: TableEvidence, since: str) -> str:
    return f"every change of {table.name} since it was {since} is in its history"


def _reaches_back(table: TableEvidence, rebuilds: frozenset[int]) -> bool:
    """To the first snapshot, the one that was certified, or one that replaced all rows."""
    if not table.commits:
        return True
    oldest = table.commits[0]
    seen = {oldest.parent_id, *(commit.id for commit in table.commits)}
    certified = table.certified.snapshot_id if table.certified else None
    replaced = any(commit.ids & rebuilds for commit in table.commits)
    return oldest.parent_id is None or certified in seen or replaced
