"""Which env, data centre, table and topic a job's metrics are labelled with; kept in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.core.ledger.canonical import canonical, parse
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.metrics_windows import WindowShape

_MARK = "dimensions:"
SWEEP = "sweep-"


@dataclass(frozen=True)
class Dimensions:
    """The labels that every metric of a job's rules has, and what its dotted names begin with."""

    env: str
    dc: str
    table: str
    topic: str
    namespace: str = ""


def keep_dimensions(store: OpsStore, shape: WindowShape) -> None:
    """Keep them, so that a scrape needs neither the job nor its declaration."""
    labels = (shape.env, shape.dc, shape.table_name, shape.topic_name)
    found = Dimensions(*labels, namespace=shape.namespace)
    name, words = f"{_MARK}{shape.job}", canonical(vars(found))
    known = store.read_mark(name)
    if known is None or known.value != words:
        store.mark(name, words)


def told_by(job: str) -> str:
    """The job whose dimensions a job's counts have: sweeps count for the pair that they sweep."""
    return f"reconcile-{job.removeprefix(SWEEP)}" if job.startswith(SWEEP) else job


def dimensions_of(job: str, known: Mapping[str, Dimensions]) -> Dimensions:
    """A job without dimensions yet is labelled with its own name as the table."""
    return known.get(told_by(job)) or Dimensions("", "", job, "")


def all_dimensions(store: OpsStore) -> dict[str, Dimensions]:
    """The dimensions of every job that has any."""
    return {
        name.removeprefix(_MARK): Dimensions(**parse(mark.value))
        for name, mark in store.marks(_MARK).items()
    }
