"""What a settled batch has counted of its records, for sinks: windows count rows by event time alone.

A record without a key or with an unknown action has no event time, and a duplicate changes no verdict.
So they are told by the batch that read them. Pure: no clock, no store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headgate.core.ledger.canonical import canonical, fingerprint
from headgate.core.ledger.store_model import LedgerRow, Range, RuleCount
from headgate.core.metrics.dimensions import Dimensions
from headgate.core.metrics.metrics_names import (
    DEAD_OUTCOMES,
    DLQ_RECORDS,
    SEVERITY_TOTALS,
    counted_as,
    flat,
    namespaced,
)
from headgate.core.metrics.metrics_windows import instant

_DIGITS = 16


@dataclass(frozen=True)
class BatchRecord:
    """The counters of one batch by their plain names; the id is that of its job and range.

    It is told once and never changes: there is no second sequence of it.
    """

    job: str
    table_name: str
    topic_name: str
    env: str
    dc: str
    namespace: str
    batch_time: datetime
    range: Range
    revision: str
    counters: Mapping[str, int]

    @property
    def id(self) -> str:
        """Another one where the same range is judged anew: the batch has another time."""
        where = canonical(vars(self.range))
        return f"{self.job}/{instant(self.batch_time)}/{fingerprint(where)[:_DIGITS]}"

    def counts(self) -> dict[str, int]:
        """By flat names: a rule may count rows under the same dotted one."""
        return {flat(name): n for name, n in self.counters.items()}


def batch_record(
    row: LedgerRow, counts: Iterable[RuleCount], dimensions: Dimensions
) -> BatchRecord | None:
    """What a batch has to tell beside its windows; None where that is nothing."""
    counters = _counters(row, counts)
    if not counters:
        return None
    return BatchRecord(
        job=row.job,
        table_name=dimensions.table,
        topic_name=dimensions.topic,
        env=dimensions.env,
        dc=dimensions.dc,
        namespace=dimensions.namespace,
        batch_time=row.batch_time,
        range=row.range,
        revision=",".join(row.revisions),
        counters=counters,
    )


def _counters(row: LedgerRow, counts: Iterable[RuleCount]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for count in counts:
        name = counted_as(count.rule, count.metric)
        if name is not None:
            found[name] += count.n
    found[DLQ_RECORDS] += sum(row.outcomes.get(outcome, 0) for outcome in DEAD_OUTCOMES)
    return {name: n for name, n in sorted(found.items()) if n}


def batch_fields(record: BatchRecord) -> dict[str, Any]:
    """A batch as JSON fields; a moment stands for its window, and no row is judged by it."""
    when = instant(record.batch_time)
    dotted = {namespaced(record.namespace, name): n for name, n in record.counters.items()}
    return {
        "window_start": when,
        "env": record.env,
        "dc": record.dc,
        "table_name": record.table_name,
        "topic_name": record.topic_name,
        **{total.name: 0 for total in SEVERITY_TOTALS.values()},
        **(dotted if record.namespace else {}),
        **record.counts(),
        "record": "batch",
        "window_end": when,
        "job": record.job,
        "sequence": 1,
        "again": False,
        "late": False,
        "revision": record.revision,
        "id": record.id,
    }
