"""Windows of a job's metrics: when one is due, its record, the labels it bears, and closing it in the ops store.

A window closes when event time has passed its end by the watermark, or when no record has come for a while; late
rows close it again under the next sequence number, and equal sums give no new record. Times saturate: a record
may bear any year, and Python knows only the years 1 to 9999. Labels are kept in the ops store, so that a scrape
needs neither the job nor its declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from headgate.core.ledger.model import Closing, Dimensions, Window, canonical, fingerprint
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.names import (
    CLEAN,
    ROWS,
    SEVERITY_TOTALS,
    alias,
    flat,
    namespaced,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime.min.replace(tzinfo=UTC)
# A whole second, so that something is behind it: windows "before the end of time" include it.
LAST = datetime.max.replace(microsecond=0, tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)


def moment(micros: int) -> datetime:
    """So many microseconds after the epoch."""
    try:
        return min(EPOCH + timedelta(microseconds=micros), LAST)
    except OverflowError:
        return FIRST if micros < 0 else LAST


def earlier(time: datetime, by: timedelta) -> datetime:
    try:
        return time - by
    except OverflowError:
        return FIRST


def later(time: datetime, by: timedelta) -> datetime:
    try:
        return time + by
    except OverflowError:
        return END


IDLE = timedelta(seconds=30)
SeverityName = Literal["ERROR", "WARN", "INFO"]


@dataclass(frozen=True)
class WindowShape:
    """What all windows of a job have in common: their dimensions, width, and metrics.

    `metrics` are the names as the rule set has them; each is said of every window, be it 0. Where all
    is judged `anew` each time, a window whose sums changed got no late row: its source is another.
    """

    job: str
    table_name: str
    topic_name: str
    env: str
    dc: str
    namespace: str
    window: timedelta
    watermark: timedelta
    metrics: tuple[str, ...] = ()
    anew: bool = False


@dataclass(frozen=True)
class AggregateVerdict:
    """What an aggregate rule found in one window, or in one group of it."""

    name: str
    measure: str
    value: float | None
    failed: bool
    severity: SeverityName
    group: Mapping[str, Any] | None = None
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class WindowSums:
    """The partials of one window, added up: rows, rows per metric (its plain name) and severity."""

    rows: int = 0
    metrics: Mapping[str, int] = field(default_factory=dict[str, int])
    severities: Mapping[str, int] = field(default_factory=dict[str, int])
    verdicts: tuple[AggregateVerdict, ...] = ()
    revision: str = ""


@dataclass(frozen=True)
class WindowRecord:
    """What is said of a closed window; `id` tells a record that comes twice from a new one.

    `late`: rows came to it after it was closed.
    """

    job: str
    table_name: str
    topic_name: str
    env: str
    dc: str
    namespace: str
    window_start: datetime
    window_end: datetime
    sequence: int
    late: bool
    revision: str
    rows: int
    metrics: Mapping[str, int]
    totals: Mapping[str, int]
    verdicts: tuple[AggregateVerdict, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.job}/{instant(self.window_start)}/{self.sequence}"

    @property
    def again(self) -> bool:
        """Whether it was closed before, with other sums: by late rows, or by other sources."""
        return self.sequence > 1

    @property
    def clean(self) -> int:
        """Rows whose status no rule gave."""
        return self.rows - sum(self.metrics.values())

    def counts(self) -> dict[str, int]:
        """All that can be added up, by the names of sinks without columns: dotted, then totals."""
        named = {namespaced(self.namespace, name): n for name, n in self.named().items()}
        return {**named, **self.totals_by_name()}

    def named(self) -> dict[str, int]:
        """The metrics, and those that have a second name by that as well."""
        found = dict(self.metrics)
        for name, n in self.metrics.items():
            second = alias(name)
            if second is not None:
                found[second] = found.get(second, 0) + n
        return found

    def totals_by_name(self) -> dict[str, int]:
        """The totals that every record has, whatever rules there are."""
        severities = {m.name: self.totals.get(s, 0) for s, m in SEVERITY_TOTALS.items()}
        return {**severities, ROWS.name: self.rows, CLEAN.name: self.clean}


def closes_before(
    shape: WindowShape, greatest: datetime | None, last_record: datetime | None, now: datetime
) -> datetime | None:
    """Windows that begin before this time are due; None while none is.

    Event time has passed a window's end by the watermark, or no record has come for a while.
    """
    if last_record is not None and now - last_record >= IDLE:
        return END
    if greatest is None:
        return None
    passed = earlier(earlier(greatest, shape.watermark), shape.window)
    return later(passed, timedelta(microseconds=1))


def record_of(shape: WindowShape, start: datetime, sums: WindowSums, sequence: int) -> WindowRecord:
    """The record of a window that closes for the `sequence`th time."""
    return WindowRecord(
        job=shape.job,
        table_name=shape.table_name,
        topic_name=shape.topic_name,
        env=shape.env,
        dc=shape.dc,
        namespace=shape.namespace,
        window_start=start,
        window_end=later(start, shape.window),
        sequence=sequence,
        late=sequence > 1 and not shape.anew,
        revision=sums.revision,
        rows=sums.rows,
        metrics={**dict.fromkeys(shape.metrics, 0), **sums.metrics},
        totals={s: sums.severities.get(s, 0) for s in SEVERITY_TOTALS},
        verdicts=sums.verdicts,
    )


def digest(sums: WindowSums) -> str:
    """Equal for equal sums: what was said once is not said again, whoever judged it."""
    said = {
        "rows": sums.rows,
        "metrics": {name: n for name, n in sums.metrics.items() if n},
        "severities": {name: n for name, n in sums.severities.items() if n},
        "verdicts": sorted(canonical(verdict_fields(v)) for v in sums.verdicts),
    }
    return fingerprint(canonical(said))


def verdict_fields(verdict: AggregateVerdict) -> dict[str, Any]:
    return {**vars(verdict), "group": dict(verdict.group) if verdict.group else None}


def instant(time: datetime) -> str:
    """A time as every sink writes it: UTC, milliseconds, Z."""
    words = time.astimezone(UTC).isoformat(timespec="milliseconds")
    return words.replace("+00:00", "Z")


def stored(record: WindowRecord) -> dict[str, Any]:
    """The record as the ops store keeps it."""
    return {
        **vars(record),
        "window_start": record.window_start.isoformat(),
        "window_end": record.window_end.isoformat(),
        "metrics": dict(record.metrics),
        "totals": dict(record.totals),
        "verdicts": [verdict_fields(v) for v in record.verdicts],
    }


def restored(kept: Mapping[str, Any]) -> WindowRecord:
    """A record as it was kept."""
    values = dict(kept)
    for name in ("window_start", "window_end"):
        values[name] = datetime.fromisoformat(values[name])
    values["verdicts"] = tuple(AggregateVerdict(**v) for v in values["verdicts"])
    return WindowRecord(**values)


def window_fields(record: WindowRecord) -> dict[str, Any]:
    """A window as JSON fields: the six of the metrics sink first, then all others."""
    return {
        **_dimensions(record),
        **record.totals_by_name(),
        **{namespaced(record.namespace, name): n for name, n in record.named().items()},
        **{flat(name): n for name, n in record.named().items()},
        "record": "window",
        **_origin(record),
    }


def aggregate_fields(record: WindowRecord, verdict: AggregateVerdict) -> dict[str, Any]:
    """One verdict as JSON fields; its totals count the verdict, not rows."""
    failed = {
        m.name: int(verdict.failed and verdict.severity == s) for s, m in SEVERITY_TOTALS.items()
    }
    return {
        **_dimensions(record),
        **failed,
        "record": "aggregate",
        "aggregate": verdict.name,
        "measure": verdict.measure,
        "group": dict(verdict.group) if verdict.group else None,
        "value": verdict.value,
        "min": verdict.min,
        "max": verdict.max,
        "failed": verdict.failed,
        "severity": verdict.severity,
        **_origin(record, aggregate_suffix(verdict)),
    }


def aggregate_suffix(verdict: AggregateVerdict) -> str:
    group = f"/{canonical(dict(verdict.group))}" if verdict.group else ""
    return f"/{verdict.name}{group}"


def messages(record: WindowRecord) -> tuple[dict[str, Any], ...]:
    """All that is said of a window: itself, then one message per verdict."""
    return (window_fields(record), *(aggregate_fields(record, v) for v in record.verdicts))


def _dimensions(record: WindowRecord) -> dict[str, Any]:
    return {
        "window_start": instant(record.window_start),
        "env": record.env,
        "dc": record.dc,
        "table_name": record.table_name,
        "topic_name": record.topic_name,
    }


def _origin(record: WindowRecord, suffix: str = "") -> dict[str, Any]:
    return {
        "window_end": instant(record.window_end),
        "job": record.job,
        "sequence": record.sequence,
        "again": record.again,
        "late": record.late,
        "revision": record.revision,
        "id": f"{record.id}{suffix}",
    }


SWEEP = "sweep-"


def write_dimensions(store: OpsStore, shape: WindowShape) -> None:
    """Keep the dimensions of the job's metrics: a scrape needs neither the job nor its declaration."""
    labels = (shape.env, shape.dc, shape.table_name, shape.topic_name)
    dimensions = Dimensions(*labels, namespace=shape.namespace)
    if store.dimensions().get(shape.job) != dimensions:
        store.write_dimensions(shape.job, dimensions)


def told_by(job: str) -> str:
    """The job whose dimensions a job's counts have: sweeps count for the pair that they sweep."""
    return f"reconcile-{job.removeprefix(SWEEP)}" if job.startswith(SWEEP) else job


def dimensions_of(job: str, known: Mapping[str, Dimensions]) -> Dimensions:
    """A job without dimensions yet is labelled with its own name as the table."""
    return known.get(told_by(job)) or Dimensions("", "", job, "")


AT_ONCE = 2000
Sums = Callable[[Sequence[datetime]], Mapping[datetime, WindowSums]]


class Emitter:
    """Closes the windows of one job. `sums` adds up the partials of the windows it is given."""

    def __init__(
        self,
        store: OpsStore,
        shape: WindowShape,
        sums: Sums,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store, self._shape, self._sums, self._clock = store, shape, sums, clock
        write_dimensions(store, shape)

    def close_due(self, *, everything: bool = False) -> int:
        """Close what is due, or everything at the end of a batch run; how many have a record.

        Without a window that is due this reads a few indexed rows and asks for no sums.
        """
        before = None if everything else self._before()
        if before is None and not everything:
            return 0
        closed = 0
        while found := self._store.pending_windows(self._shape.job, before, AT_ONCE):
            closed += self._close(found)
        if closed:
            self._store.forget_records(self._shape.job)
        return closed

    def _before(self) -> datetime | None:
        job = self._shape.job
        now = self._clock()
        greatest = self._store.greatest_event_time(job, now)
        return closes_before(self._shape, greatest, self._store.last_record_at(job), now)

    def _close(self, found: Sequence[Window]) -> int:
        sums = self._sums([window.window_start for window in found])
        closings = [self._closing(w, sums.get(w.window_start)) for w in found]
        return self._store.close_windows(closings)

    def _closing(self, window: Window, sums: WindowSums | None) -> Closing:
        """A window whose rows are all gone is said to be empty, if it was ever said to exist."""
        found = sums or WindowSums(revision=(window.record or {}).get("revision", ""))
        now = digest(found)
        if now == window.digest or (sums is None and not window.sequence):
            return Closing(window, now, None)
        record = record_of(self._shape, window.window_start, found, window.sequence + 1)
        return Closing(window, now, stored(record))
