"""What jobs still need of a table: their newest markers, their positions as readers, open batches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from headgate.core.lake.markers import Marker, is_fence
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import SNAPSHOT, Intent, Range
from headgate.maintenance.maintenance import Needs


@dataclass(frozen=True)
class Books:
    """The ops store as maintenance needs it: per job how far it is settled, and what is open."""

    settled: Mapping[str, Range | None]
    open: tuple[Intent, ...]

    @classmethod
    def read(cls, store: OpsStore, jobs: Iterable[str]) -> Books:
        """Of these jobs and of every job that ever ran."""
        known = {*jobs, *(run.job for run in store.runs())}
        return cls(
            {job: store.settled_range(job) for job in known},
            tuple(intent for job in known for intent in store.open_intents(job)),
        )


def needs_of(
    source: str,
    newest: Mapping[str, Marker],
    resuming: Collection[str],
    readers: Mapping[str, Marker],
    books: Books,
    writing: Collection[str] = (),
) -> Needs:
    """What stays needed of the table that ranges call `source`.

    `newest` are the newest markers in it, `resuming` the jobs that go on from theirs, `readers` the
    markers, in other tables, of jobs that read this one, `writing` those that may write to it: the
    first batch of one has left no marker yet.
    """
    return Needs(
        markers=frozenset(
            job
            for job, found in newest.items()
            if job in resuming or not (is_fence(job) or _is_settled(found, books))
        ),
        positions=_positions(source, readers, books),
        open_since=_open_since({*newest, *resuming, *writing}, books),
    )


def _is_settled(found: Marker, books: Books) -> bool:
    """Whether the ledger has this job's batch: then its outcome needs the marker no more."""
    settled = books.settled.get(found.job)
    if settled is None or any(intent.job == found.job for intent in books.open):
        return False
    if settled.source_id != found.range.source_id:
        return True  # the topic was made again, and nothing of the old one is open
    if settled.is_table:
        return settled.end == found.range.end
    return all(settled.end.get(key, 0) >= end for key, end in found.range.end.items())


def _positions(source: str, readers: Mapping[str, Marker], books: Books) -> dict[int, str]:
    found: dict[int, str] = {}
    for job, reader in readers.items():
        for seen in (reader.range, books.settled.get(job)):
            if seen is not None and seen.source == source and SNAPSHOT in seen.end:
                found.setdefault(seen.end[SNAPSHOT], job)
    for intent in books.open:
        if intent.range.source == source:
            for place in (intent.range.start, intent.range.end):
                if SNAPSHOT in place:
                    found.setdefault(place[SNAPSHOT], f"an open batch of {intent.job}")
    return found


def _open_since(writers: Collection[str], books: Books) -> datetime | None:
    """When the oldest open batch began that may write here."""
    return min((i.batch_time for i in books.open if i.job in writers), default=None)
