"""What a comparison of two tables found, and how a person reads it: kinds of difference, sensitive values masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headgate.config.reference import MASK
from headgate.reconcile.decision_table import statuses
from headgate.reconcile.row_diff import Difference, row_difference, shown_value
from headgate.reconcile.table_compare.plan import MATCH, MISMATCH, STATUSES, Plan, Unlike

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


NULL = "NULL"


@dataclass(frozen=True)
class SampleRow:
    """One key or row that is not equal on both sides."""

    status: str
    key: dict[str, str | None]
    differences: tuple[Difference, ...]
    onprem_rows: int
    cloud_rows: int


@dataclass(frozen=True)
class TablesReport:
    """The whole answer; `statuses` count keys, or rows where there is no key."""

    onprem: str
    cloud: str
    how: str
    same: bool
    rows: Mapping[str, int]
    statuses: Mapping[str, int]
    rollup: Mapping[str, int]
    columns: Mapping[str, int]
    only_onprem: tuple[str, ...]
    only_cloud: tuple[str, ...]
    unlike: tuple[Unlike, ...]
    repeated: Repeated
    samples: tuple[SampleRow, ...]
    notes: tuple[str, ...]


def tables_report(found: Found) -> TablesReport:
    plan = found.plan
    return TablesReport(
        onprem=plan.onprem.name,
        cloud=plan.cloud.name,
        how=found.how,
        same=found.same,
        rows=dict(found.rows),
        statuses=found.by_status,
        rollup=found.rollup,
        columns=dict(found.columns),
        only_onprem=plan.only_onprem,
        only_cloud=plan.only_cloud,
        unlike=plan.unlike,
        repeated=found.repeated,
        samples=tuple(_sample(sample, plan.hidden) for sample in found.samples),
        notes=(*plan.notes, *found.notes),
    )


def tables_text(report: TablesReport) -> str:
    return "\n".join([*_head(report), *_columns(report), *_schema(report), *_samples(report)])


def _sample(sample: Sample, hidden: frozenset[str]) -> SampleRow:
    key = {
        name: MASK if name in hidden and value is not None else shown_value(value)
        for name, value in sample.key.items()
    }
    differences: tuple[Difference, ...] = ()
    if sample.status == MISMATCH and sample.onprem is not None and sample.cloud is not None:
        # Which columns differ is Spark's to say: it knows the tolerances.
        differences = row_difference(
            "", sample.onprem, sample.cloud, sample.columns, hidden, _never
        ).differences
    return SampleRow(sample.status, key, differences, sample.onprem_rows, sample.cloud_rows)


def _never(column: str, onprem: object, cloud: object) -> bool:
    return False


def _head(report: TablesReport) -> Iterator[str]:
    verdict = "are the same" if report.same else "differ"
    yield f"{report.onprem} and {report.cloud} {verdict}, compared {report.how}"
    yield f"  on-prem {report.rows['onprem']:,} rows, cloud {report.rows['cloud']:,} rows"
    for status, count in report.statuses.items():
        yield f"  {status:<15}{count:>14,}"
    yield "  " + ", ".join(f"{count:,} {name}" for name, count in report.rollup.items())
    if report.repeated.onprem or report.repeated.cloud:
        often = f"{report.repeated.onprem:,} on-prem, {report.repeated.cloud:,} in the cloud"
        yield f"  keys that repeat: {often}; each is judged once, by all its rows together"
    yield from (f"  note: {words}" for words in report.notes)


def _columns(report: TablesReport) -> Iterator[str]:
    found = sorted(((n, name) for name, n in report.columns.items() if n), key=lambda f: -f[0])
    if found:
        yield "columns that differ, and in how many keys"
        width = max(len(name) for _, name in found)
        yield from (f"  {name:<{width}}  {n:>12,}" for n, name in found)


def _schema(report: TablesReport) -> Iterator[str]:
    if report.only_onprem:
        yield f"columns only on-prem: {', '.join(report.only_onprem)}"
    if report.only_cloud:
        yield f"columns only in the cloud: {', '.join(report.only_cloud)}"
    for each in report.unlike:
        yield f"not comparable: {each.name} is {each.onprem} on-prem, {each.cloud} in the cloud"


def _samples(report: TablesReport) -> Iterator[str]:
    if report.samples:
        yield "samples"
    for sample in report.samples:
        yield f"  {sample.status}  {_key(sample)}{_copies(sample)}"
        for each in sample.differences:
            values = f"{_value(each.onprem)} on-prem, {_value(each.cloud)} in the cloud"
            yield f"    {each.column}: {values} ({each.kind})"


def _key(sample: SampleRow) -> str:
    return ", ".join(f"{name} = {_value(value)}" for name, value in sample.key.items())


def _copies(sample: SampleRow) -> str:
    if (sample.onprem_rows, sample.cloud_rows) == (1, 1):
        return ""
    return f": {sample.onprem_rows} rows on-prem, {sample.cloud_rows} in the cloud"


def _value(value: str | None) -> str:
    return NULL if value is None else value
