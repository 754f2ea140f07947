"""Which env, data centre, table and topic a job's metrics are labelled with; kept in the store."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.metrics.windows import WindowShape
from headgate.store.canonical import canonical, parse
from headgate.store.ops import OpsStore

_MARK = "dimensions:"


@dataclass(frozen=True)
class Dimensions:
    """The labels that every metric of a job's rules has."""

    env: str
    dc: str
    table: str
    topic: str


def keep_dimensions(store: OpsStore, shape: WindowShape) -> None:
    """Keep them, so that a scrape needs neither the job nor its declaration."""
    found = Dimensions(shape.env, shape.dc, shape.table_name, shape.topic_name)
    name, words = f"{_MARK}{shape.job}", canonical(vars(found))
    known = store.read_mark(name)
    if known is None or known.value != words:
        store.mark(name, words)


def all_dimensions(store: OpsStore) -> dict[str, Dimensions]:
    """The dimensions of every job that has any."""
    return {
        name.removeprefix(_MARK): Dimensions(**parse(mark.value))
        for name, mark in store.marks(_MARK).items()
    }
