"""The width of a table's windows: once some are counted, it stays."""

from __future__ import annotations

from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.compile_fragments import job_name
from headgate.errors import ConflictError
from headgate.quality.revision import RulesRevision, deployed, fetch, running_mark


def refuse_other_width(store: OpsStore, declared: RulesRevision) -> None:
    """Refuse windows of another width than those that the job has counted.

    A window's sums are those of its partials, found by its start alone: with two widths, windows that
    begin together would be added up. A snapshot is counted anew each time.
    """
    job = job_name(declared.kind, declared.name)
    known = _known(store, job, declared.name)
    if known is None or known.window == declared.window or not declared.follows_a_topic:
        return
    if not store.windows(job, limit=1):
        return
    raise ConflictError(
        f"{job} has counted windows of {known.window}, and cannot go on with {declared.window}",
        why=f"windows of two widths would be added up in {declared.partials}",
        fix=f"keep the window of {known.window}, or declare the table under another name:"
        " it gets tables of its own",
    )


def _known(store: OpsStore, job: str, table: str) -> RulesRevision | None:
    """The revision that judged last, as far as the store still knows it."""
    running = store.read_mark(running_mark(job))
    hash_ = running.value if running else deployed(store, table)
    return fetch(store, hash_) if hash_ and store.revision(hash_) else None
