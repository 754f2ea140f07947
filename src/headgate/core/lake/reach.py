"""How far a job's table has come: by its newest marker, or by the ledger once markers are expired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.core.lake.iceberg import ManagedTable
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Range
from headgate.errors import BatchRefusedError


@dataclass(frozen=True)
class Reached:
    """Where the next batch must start, in the source with this id."""

    source_id: str
    end: Mapping[str, int]


def topic_reached(table: ManagedTable, store: OpsStore, job: str) -> Reached | None:
    """How far the topic was read into the table; None before the first batch.

    The ledger must not be ahead: a table that was dropped or rolled back has lost rows.
    """
    settled = store.settled_range(job)
    commit = table.committed(job) if table.exists() else None
    if commit is None:
        if settled is None:
            return None
        if not table.exists() or table.look().current() is None:
            raise _behind(table, job, {}, settled)
        return Reached(settled.source_id, settled.end)
    end = commit.marker.range.end
    if (
        settled is not None
        and settled.source_id == commit.marker.range.source_id
        and any(end.get(key, 0) < offset for key, offset in settled.end.items())
    ):
        raise _behind(table, job, end, settled)
    return Reached(commit.marker.range.source_id, end)


def _behind(
    table: ManagedTable, job: str, end: Mapping[str, int], settled: Range
) -> BatchRefusedError:
    return BatchRefusedError(
        f"{table.name} has lost rows that {job} had written",
        why=f"the ledger says up to {dict(settled.end)}, the table {dict(end) or 'is empty'}",
        fix="restore the table, or begin anew with an empty HEADGATE_HOME",
    )
