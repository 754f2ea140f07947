"""Every metric's value now: sums over the ledger, runs, windows, sinks, gauges kept by jobs, and the engine itself.

Sums begin at the ledger's first row and are kept up to date by reading only newer rows, so that counters survive
every restart. Gauges that only a running job can measure are kept in the ops store.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from headgate import __version__
from headgate.app import COLLECTORS, load
from headgate.core.ledger.model import Dimensions, LedgerRow, RuleCount, Run, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics import names
from headgate.core.metrics.names import KEPT_GAUGES, Family, Metric
from headgate.core.metrics.windows import dimensions_of, told_by

AT_ONCE = 5_000
REMEMBERED = 3


@dataclass
class JobSums:
    """All batches of one job."""

    read: int = 0
    judged: int = 0
    gaps: int = 0
    batches: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    last_durations: tuple[float, ...] = ()
    last_read: int = 0
    last_at: datetime | None = None

    def add(self, row: LedgerRow) -> None:
        self.read += row.read
        self.gaps += row.gaps
        self.outcomes.update(row.outcomes)
        if row.is_accepted_gap:
            return  # nobody worked on it
        took = max(0.0, (row.committed_at - row.batch_time).total_seconds())
        self.batches += 1
        self.seconds += took
        self.last_durations = (*self.last_durations, took)[-REMEMBERED:]
        self.last_read, self.last_at = row.read, row.committed_at


class Collector(Protocol):
    """Metrics of a capability, named in `app.COLLECTORS` and made with the store."""

    def add(self, after: int, until: int) -> None:
        """Count the batches of these ledger rows, `after` exclusive."""
        ...

    def families(self) -> Iterable[Family]:
        """Every metric of the capability, as it is now."""
        ...


class Sums:
    """Per job the sums of its batches, and per rule what it found."""

    def __init__(self, store: OpsStore, collectors: Sequence[Collector]) -> None:
        self._store, self._collectors = store, collectors
        self._until = 0
        self.jobs: dict[str, JobSums] = {}
        self.rules: dict[tuple[str, str, str, str], tuple[int, int]] = {}

    def refresh(self) -> None:
        """Add the rows that were settled since; rows are settled one after the other."""
        while rows := self._store.ledger_after(self._until, AT_ONCE):
            last = rows[-1].id
            assert last is not None
            for job, count in self._store.rule_counts_between(self._until, last):
                self._add(job, count)
            for collector in self._collectors:
                collector.add(self._until, last)
            for row in rows:
                self.jobs.setdefault(row.job, JobSums()).add(row)
            self._until = last

    def _add(self, job: str, count: RuleCount) -> None:
        if not count.rule:
            self.jobs.setdefault(job, JobSums()).judged += count.n
            return
        key = (job, count.rule, count.metric, count.severity)
        n, matched = self.rules.get(key, (0, 0))
        self.rules[key] = (n + count.n, matched + count.matched)


HIGH = 1.0


@dataclass(frozen=True)
class EngineReading:
    """What only the process that hosts Spark knows of itself."""

    executors: int
    cores: int
    cores_free: int
    heap_used: int
    heap_max: int


@dataclass(frozen=True)
class JobLag:
    """Offsets of a job's topic that are not settled."""

    job: str
    topic: str
    records: int


class Readings:
    """Reads the store cheaply, again and again; not for several threads at once."""

    def __init__(
        self,
        store: OpsStore,
        engine: Callable[[], EngineReading | None] = lambda: None,
        lags: Callable[[], Sequence[JobLag]] = lambda: (),
        find_trigger: Callable[[Run], float | None] = lambda _: None,
    ) -> None:
        self._store, self._engine, self._lags = store, engine, lags
        self._find_trigger = find_trigger
        kinds: Iterable[Callable[[OpsStore], Collector]] = map(load, COLLECTORS)
        self._collectors = tuple(kind(store) for kind in kinds)
        self._sums = Sums(store, self._collectors)

    def families(self) -> tuple[Family, ...]:
        """Every metric that has a value, in the order of the table, then those of rules."""
        begun = time.perf_counter()
        self._sums.refresh()
        found = [*self._jobs(), *self._runs(), *self._windows(), *self._sinks(), *self._here()]
        for collector in self._collectors:
            found += collector.families()
        rules = [*self._rules()]
        took = [Family(names.SCRAPE_SECONDS, (((), time.perf_counter() - begun),))]
        order = {metric.name: at for at, metric in enumerate(names.METRICS)}
        table = sorted(
            (f for f in [*found, *rules, *took] if f.samples),
            key=lambda family: (order.get(family.metric.name, len(order)), family.metric.name),
        )
        return tuple(table)

    def _jobs(self) -> Iterator[Family]:
        jobs = sorted(self._sums.jobs.items())
        outcomes = [((job, name), n) for job, s in jobs for name, n in sorted(s.outcomes.items())]
        yield Family(names.RECORDS, tuple(outcomes))
        for metric, value in _PER_JOB.items():
            pairs = ((job, value(sums)) for job, sums in jobs)
            yield _by_job(metric, ((job, v) for job, v in pairs if v is not None))

    def _runs(self) -> Iterator[Family]:
        runs = self._store.runs()
        active = [run for run in runs if run.state is RunState.RUNNING]
        failed: dict[str, int] = {}
        for run in runs:
            failed[run.job] = failed.get(run.job, 0) + run.restarts + (run.state is RunState.FAILED)
        yield _by_job(names.FAILED_BATCHES, sorted(failed.items()))
        yield Family(names.RUNNING_JOBS, (((), len(active)),))
        newest = {run.job: run for run in reversed(runs)}
        flags = [((r.job, r.kind, r.mode), int(r in active)) for _, r in sorted(newest.items())]
        yield Family(names.JOB_RUNNING, tuple(flags))
        yield from self._backpressure(active)

    def _backpressure(self, active: Iterable[Run]) -> Iterator[Family]:
        ratios = {
            run.job: [took / trigger for took in sums.last_durations]
            for run in active
            if (sums := self._sums.jobs.get(run.job)) is not None
            and (trigger := self._find_trigger(run)) is not None
        }
        known = sorted((job, found) for job, found in ratios.items() if found)
        yield _by_job(names.BACKPRESSURE, ((job, found[-1]) for job, found in known))
        yield _by_job(names.BACKPRESSURE_HIGH, ((job, int(_is_high(f))) for job, f in known))

    def _windows(self) -> Iterator[Family]:
        counts = sorted(self._store.window_counts().items())
        for at, metric in enumerate((names.WINDOWS_OPEN, names.WINDOWS_CLOSED, names.WINDOWS_LATE)):
            yield _by_job(metric, ((job, found[at]) for job, found in counts))
        for metric in KEPT_GAUGES:
            yield Family(metric, tuple(sorted(self._store.gauges(metric.name).items())))

    def _sinks(self) -> Iterator[Family]:
        states = self._store.sinks()
        waiting = [((s.name,), float(self._store.waiting_windows(s))) for s in states]
        yield Family(names.SINK_WAITING, tuple(waiting))
        yield Family(names.SINK_FAILURES, tuple(((s.name,), s.failures) for s in states))

    def _here(self) -> Iterator[Family]:
        lags = [((lag.job, lag.topic), lag.records) for lag in self._lags()]
        yield Family(names.LAG, tuple(lags))
        engine = self._engine()
        if engine is None:
            return
        yield Family(names.UP, (((__version__,), 1),))
        for metric, value in (
            (names.EXECUTORS, engine.executors),
            (names.CORES, engine.cores),
            (names.CORES_FREE, engine.cores_free),
            (names.HEAP_USED, engine.heap_used),
            (names.HEAP_MAX, engine.heap_max),
        ):
            yield Family(metric, (((), value),))

    def _rules(self) -> Iterator[Family]:
        dimensions = self._store.dimensions()
        rules = [(key, found) for key, found in sorted(self._sums.rules.items())]
        by_metric: dict[Metric, dict[tuple[str, ...], float]] = {}
        for (job, rule, metric, severity), (n, matched) in rules:
            labels = _labels(dimensions_of(job, dimensions))
            for name in _names(rule, metric):
                _add(by_metric, names.rule_metric(name), (*labels, rule), n)
            if rule.startswith(names.COUNTED):
                continue
            _add(by_metric, names.MATCHES, (*labels, rule, severity), matched)
            for word, total in names.SEVERITY_TOTALS.items():
                _add(by_metric, total, labels, n if severity == word else 0)
        for job, of in dimensions.items():
            self._add_rows(by_metric, job, _labels(of))
        for metric, samples in by_metric.items():
            yield Family(metric, tuple(sorted(samples.items())))

    def _add_rows(
        self, found: dict[Metric, dict[tuple[str, ...], float]], job: str, labels: tuple[str, ...]
    ) -> None:
        own = [other for other in self._sums.jobs if told_by(other) == job]
        judged = sum(self._sums.jobs[other].judged for other in own)
        given = sum(
            n
            for key, (n, _) in self._sums.rules.items()
            if told_by(key[0]) == job and not key[1].startswith(names.COUNTED)
        )
        _add(found, names.ROWS, labels, judged)
        _add(found, names.CLEAN, labels, judged - given)


_PER_JOB: Mapping[Metric, Callable[[JobSums], float | None]] = {
    names.RECORDS_READ: lambda s: s.read,
    names.OFFSET_GAPS: lambda s: s.gaps,
    names.BATCHES: lambda s: s.batches,
    names.BATCH_SECONDS: lambda s: s.seconds,
    names.DEAD_LETTERS: lambda s: sum(s.outcomes[name] for name in names.DEAD_OUTCOMES),
    names.LAST_BATCH_SECONDS: lambda s: s.last_durations[-1] if s.last_durations else None,
    names.LAST_BATCH_RECORDS: lambda s: s.last_read if s.last_at else None,
    names.LAST_BATCH_TIME: lambda s: s.last_at.timestamp() if s.last_at else None,
}


def _by_job(metric: Metric, values: Iterable[tuple[str, float]]) -> Family:
    return Family(metric, tuple(((job,), value) for job, value in values))


def _labels(found: Dimensions) -> tuple[str, ...]:
    return (found.env, found.dc, found.table, found.topic)


def _names(rule: str, metric: str) -> set[str]:
    """All that a count of a rule is told as."""
    found = (metric, names.alias(metric), names.counted_as(rule, metric))
    return {name for name in found if name is not None}


def _is_high(ratios: Sequence[float]) -> bool:
    return len(ratios) >= 3 and all(ratio > HIGH for ratio in ratios)


def _add(
    found: dict[Metric, dict[tuple[str, ...], float]],
    metric: Metric,
    labels: tuple[str, ...],
    value: float,
) -> None:
    samples = found.setdefault(metric, {})
    samples[labels] = samples.get(labels, 0) + value
