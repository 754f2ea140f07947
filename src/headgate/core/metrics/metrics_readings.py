"""Every metric's values now: from the ledger's sums, the runs, the windows and the engine itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate import __version__
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Run, RunState
from headgate.core.metrics import gauges
from headgate.core.metrics import metrics_names as names
from headgate.core.metrics.dimensions import Dimensions, all_dimensions, dimensions_of, told_by
from headgate.core.metrics.family import Family
from headgate.core.metrics.metrics_names import Metric
from headgate.core.metrics.sums import JobSums, Sums
from headgate.filters import filters

HIGH = 1.0
# As a run of a stream keeps it among its options.
TRIGGER = "trigger_seconds"


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
    ) -> None:
        self._store, self._engine, self._lags = store, engine, lags
        self._sums = Sums(store)

    def families(self) -> tuple[Family, ...]:
        """Every metric that has a value, in the order of the table, then those of rules."""
        begun = time.perf_counter()
        self._sums.refresh()
        found = [*self._jobs(), *self._runs(), *self._windows(), *self._sinks(), *self._here()]
        found += filters.families(self._store, self._sums.filters)
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
            run.job: [took / float(run.options[TRIGGER]) for took in sums.last_durations]
            for run in active
            if TRIGGER in run.options and (sums := self._sums.jobs.get(run.job)) is not None
        }
        known = sorted((job, found) for job, found in ratios.items() if found)
        yield _by_job(names.BACKPRESSURE, ((job, found[-1]) for job, found in known))
        yield _by_job(names.BACKPRESSURE_HIGH, ((job, int(_is_high(f))) for job, f in known))

    def _windows(self) -> Iterator[Family]:
        counts = sorted(self._store.window_counts().items())
        for at, metric in enumerate((names.WINDOWS_OPEN, names.WINDOWS_CLOSED, names.WINDOWS_LATE)):
            yield _by_job(metric, ((job, found[at]) for job, found in counts))
        for metric, values in gauges.kept(self._store).items():
            yield _by_job(metric, sorted(values.items()))
        for metric, values in gauges.kept_labelled(self._store).items():
            yield Family(metric, tuple(sorted(values.items())))

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
        dimensions = all_dimensions(self._store)
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
