"""What a comparison of two tables found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.reconcile.decisions import statuses
from headgate.reconcile.table_compare.model import MATCH, STATUSES, Plan

Values = Mapping[str, object]


@dataclass(frozen=True)
class Sample:
    """One key, or one row, that is not equal on both sides; the values as Spark gave them."""

    status: str
    key: Values
    columns: tuple[str, ...] = ()
    onprem: Values | None = None
    cloud: Values | None = None
    onprem_rows: int = 1
    cloud_rows: int = 1


@dataclass(frozen=True)
class Repeated:
    """Keys that stand more than once on a side; each is one key in the counts."""

    onprem: int = 0
    cloud: int = 0


@dataclass(frozen=True)
class Found:
    """The answers of one comparison: keys by status, or rows where there is no key."""

    plan: Plan
    how: str
    rows: Mapping[str, int]
    counts: Mapping[str, int]
    columns: Mapping[str, int] = field(default_factory=dict[str, int])
    repeated: Repeated = Repeated()
    samples: tuple[Sample, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether all rows match and both tables have the same columns."""
        others = sum(n for status, n in self.counts.items() if status != MATCH)
        return not others and self.plan.same_columns

    @property
    def by_status(self) -> dict[str, int]:
        return {status: self.counts.get(status, 0) for status in STATUSES}

    @property
    def rollup(self) -> dict[str, int]:
        """The same counts in the words that a stream of verdicts is summed up in."""
        kinds = {status: statuses()[status].rollup for status in STATUSES}
        found: dict[str, int] = {"valid": 0, "invalid": 0, "missing": 0}
        for status, count in self.by_status.items():
            found[kinds[status]] += count
        return found
