"""Windows of a quality job: sums from its partials, closed when the watermark passes or the job falls silent.

`Partials` answers what one batch found and what a window adds up to. A run closes its own windows; those that
a stopped, failed or killed run leaves open are closed by a thread of the engine (`closing_idle`).
"""

from __future__ import annotations

import json
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from headgate.conditions.literals import spark_literal
from headgate.config.settings import Settings
from headgate.core.engine.run import RunContext
from headgate.core.lake.spark import sql
from headgate.core.ledger.model import ACTIVE, Intent, Judged, RuleCount, TouchedWindow
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.core.ledger.ranges import is_rebuild
from headgate.core.metrics.windows import (
    FIRST,
    IDLE,
    LAST,
    AggregateVerdict,
    Emitter,
    WindowShape,
    WindowSums,
    moment,
)
from headgate.quality.revision import RulesRevision, fetch
from headgate.quality.store import RuleStore

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


VIEWS = "spark_catalog.default"
_OF_BATCH = """
SELECT name, metric, severity, CAST(NULL AS BIGINT) AS start, CAST(NULL AS BIGINT) AS newest,
  sum(n) AS n, sum(matched) AS matched
FROM {table}
WHERE {at} AND kind = 'rule'
GROUP BY name, metric, severity
UNION ALL
SELECT NULL, NULL, NULL, unix_micros(window_start), unix_micros(max(newest)),
  sum(CASE WHEN kind = 'rows' THEN n END), NULL
FROM {table}
WHERE {at}
GROUP BY window_start"""
_OF_WINDOWS = """
SELECT unix_micros(window_start) AS start, kind, metric, severity, sum(n) AS n,
  max(batch_time) AS judged_at, max_by(revision, batch_time) AS revision
FROM {table}
WHERE {at} AND kind IN ('rows', 'rule')
GROUP BY window_start, kind, metric, severity"""
_VERDICTS = """
SELECT unix_micros(window_start) AS start, name, grp, value, failed
FROM {view}
WHERE {at}"""


class Partials:
    """The table of partials; every answer is one Spark job over the few files it needs."""

    def __init__(self, session: SparkSession, table: str) -> None:
        self._session, self._table = session, table

    def judged(self, intent: Intent) -> Judged:
        """What the rules found in this batch, and the windows that it counted into."""
        at = f"batch_time = {spark_literal(intent.batch_time)}"
        rows = sql(self._session, _OF_BATCH.format(table=self._table, at=at)).collect()
        counts = (
            RuleCount(str(r["name"]), str(r["metric"]), str(r["severity"]), *_counts(r))
            for r in rows
            if r["name"] is not None
        )
        touched = (
            TouchedWindow(moment(int(r["start"])), _instant(r["newest"]))
            for r in rows
            if r["name"] is None
        )
        # Those that the calendar does not have are one: its first, or its last.
        windows = {window.start: window for window in touched}.values()
        judged = sum(int(r["n"] or 0) for r in rows if r["name"] is None)
        anew = is_rebuild(intent.range)
        return Judged(tuple(sorted(counts)), tuple(sorted(windows)), anew, judged)

    def greatest_event_time(self, before: datetime) -> datetime | None:
        """How far event time had come in the batches before a time."""
        now = spark_literal(before)
        earlier = f"batch_time < {now} AND newest <= {now}"
        query = f"SELECT unix_micros(max(newest)) AS newest FROM {self._table} WHERE {earlier}"
        (row,) = sql(self._session, query).collect()
        return _instant(row["newest"])

    def sums(
        self, rules: RulesRevision, starts: Sequence[datetime]
    ) -> Mapping[datetime, WindowSums]:
        """All that is counted into these windows, by the window's start."""
        inside = _inside(starts)
        found: defaultdict[datetime, list[Row]] = defaultdict(list)
        for row in sql(self._session, _OF_WINDOWS.format(table=self._table, at=inside)).collect():
            found[moment(int(row["start"]))].append(row)
        verdicts = self._verdicts(rules, inside)
        return {start: _sums(rows, verdicts.get(start, ())) for start, rows in found.items()}

    def _verdicts(
        self, rules: RulesRevision, inside: str
    ) -> Mapping[datetime, Sequence[AggregateVerdict]]:
        found: defaultdict[datetime, list[AggregateVerdict]] = defaultdict(list)
        if not rules.aggregates:
            return found
        limits = {aggregate.name: aggregate for aggregate in rules.aggregates}
        view = f"{VIEWS}.dq_aggregates_{rules.name}"
        for row in sql(self._session, _VERDICTS.format(view=view, at=inside)).collect():
            start, declared = moment(int(row["start"])), limits.get(str(row["name"]))
            if declared is None or start in (FIRST, LAST):
                continue  # of a revision before, or of one of many windows that are told as one
            verdict = AggregateVerdict(
                name=declared.name,
                measure=declared.measure,
                value=None if row["value"] is None else float(row["value"]),
                failed=bool(row["failed"]),
                severity=declared.severity,
                group=json.loads(row["grp"]) if row["grp"] else None,
                min=declared.min,
                max=declared.max,
            )
            found[start].append(verdict)
        return found


def _counts(row: Row) -> tuple[int, int]:
    return int(row["n"] or 0), int(row["matched"] or 0)


def _sums(rows: Sequence[Row], verdicts: Sequence[AggregateVerdict]) -> WindowSums:
    metrics: defaultdict[str, int] = defaultdict(int)
    severities: defaultdict[str, int] = defaultdict(int)
    total = 0
    for row in rows:
        if row["kind"] == "rows":
            total += int(row["n"] or 0)
        else:
            metrics[str(row["metric"])] += int(row["n"] or 0)
            severities[str(row["severity"])] += int(row["n"] or 0)
    newest = max(rows, key=lambda row: row["judged_at"])
    return WindowSums(total, metrics, severities, tuple(verdicts), str(newest["revision"] or ""))


def _inside(starts: Sequence[datetime]) -> str:
    """Of the first and the last window that there can be, all beyond them are part."""
    found = [f"window_start IN ({', '.join(spark_literal(start) for start in starts)})"]
    found += [f"window_start < {spark_literal(FIRST)}"] if FIRST in starts else []
    found += [f"window_start > {spark_literal(LAST)}"] if LAST in starts else []
    return f"({' OR '.join(found)})"


def _instant(micros: object) -> datetime | None:
    return None if micros is None else moment(int(str(micros)))


def shape_of(job: str, rules: RulesRevision, settings: Settings) -> WindowShape:
    """The dimensions come from the first source."""
    first = rules.first
    return WindowShape(
        job=job,
        table_name=f"{rules.name}_{first.side}",
        topic_name=rules.topic_of(first, settings) if first.topic else str(first.iceberg),
        env=rules.env,
        dc=first.dc,
        namespace=rules.namespace,
        window=rules.window,
        watermark=first.watermark,
        metrics=tuple(dict.fromkeys(rule.metric for rule in rules.rules)),
        anew=not rules.follows_a_topic,
    )


def emitter_of(context: RunContext, rules: RulesRevision) -> Emitter:
    """Closes the windows of this run's job, with sums from its partials."""
    return emitter(context.session, context.store, context.settings, context.run.job, rules)


def emitter(
    session: SparkSession,
    store: OpsStore,
    settings: Settings,
    job: str,
    rules: RulesRevision,
    clock: Callable[[], datetime] = utc_now,
) -> Emitter:
    """The same for any job, whether or not a run of it is under way."""
    partials = Partials(session, rules.partials)
    shape = shape_of(job, rules, settings)
    return Emitter(store, shape, lambda starts: partials.sums(rules, starts), clock)


LOOK_SECONDS = 5.0
STOP_SECONDS = 30.0


@contextmanager
def closing_idle(session: SparkSession, store: OpsStore, settings: Settings) -> Generator[None]:
    """Close what is left open, as long as the engine is there."""
    left, stop = LeftOpen(session.newSession(), store, settings), threading.Event()
    thread = threading.Thread(target=left.keep, args=(stop,), name="windows", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(STOP_SECONDS)


class LeftOpen:
    """Looks for windows that nobody else will close."""

    def __init__(
        self,
        session: SparkSession,
        store: OpsStore,
        settings: Settings,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._session, self._store, self._settings = session, store, settings
        self._clock = clock

    def keep(self, stop: threading.Event) -> None:
        while not stop.wait(LOOK_SECONDS):
            try:
                self.look()
            except Exception as error:  # the store or the lake may be away for a while
                logging.getLogger("headgate").warning("windows: %s", error)

    def look(self) -> int:
        """Close the windows of every job that is idle; how many have a record."""
        jobs = self._store.jobs_with_pending_windows()
        return sum(self._close(job) for job in jobs if self._is_idle(job))

    def _is_idle(self, job: str) -> bool:
        """Whether no run of it is under way, no batch half done, and its last record long ago."""
        latest, last = self._store.latest(job), self._store.last_record_at(job)
        if last is None or (latest is not None and latest.state in ACTIVE):
            return False
        return self._clock() - last >= IDLE

    def _close(self, job: str) -> int:
        name = job.partition("-")[2]
        revision = self._store.part(RuleStore).deployed_revision(name)
        if revision is None:
            return 0
        rules = fetch(self._store, revision)
        with_sums = (self._session, self._store, self._settings, job, rules)
        return emitter(*with_sums, clock=self._clock).close_due()
