"""What the partials of a rule table say: of one batch, and of windows over all batches."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from pyspark.sql import Row, SparkSession

from headgate.engine.statements import sql
from headgate.expr.literals import spark_literal
from headgate.jobs.rules_revision import RulesRevision
from headgate.metrics.times import moment
from headgate.metrics.windows import AggregateVerdict, WindowSums
from headgate.store.model import Intent, Judged, RuleCount, TouchedWindow

VIEWS = "spark_catalog.default"


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
        touched = [r for r in rows if r["name"] is None]
        windows = (
            TouchedWindow(start, passed(_instant(r["newest"]), intent.batch_time))
            for start, r in {moment(int(r["start"])): r for r in touched}.items()
        )
        judged = sum(int(r["n"] or 0) for r in rows if r["name"] is None)
        anew = intent.range.starts_anew
        return Judged(tuple(sorted(counts)), tuple(sorted(windows)), anew, judged)

    def greatest_event_time(self, before: datetime) -> datetime | None:
        """The greatest event time of the batches before a time."""
        earlier = f"batch_time < {spark_literal(before)}"
        newest = "unix_micros(max(least(newest, batch_time)))"
        query = f"SELECT {newest} AS newest FROM {self._table} WHERE {earlier}"
        (row,) = sql(self._session, query).collect()
        return _instant(row["newest"])

    def sums(
        self, rules: RulesRevision, starts: Sequence[datetime]
    ) -> Mapping[datetime, WindowSums]:
        """All that is counted into these windows, by the window's start."""
        inside = f"window_start IN ({', '.join(spark_literal(start) for start in starts)})"
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
            declared = limits.get(str(row["name"]))
            if declared is None:
                continue  # of a revision before
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
            found[moment(int(row["start"]))].append(verdict)
        return found


_OF_BATCH = """
SELECT name, metric, severity, CAST(NULL AS BIGINT) AS start, CAST(NULL AS BIGINT) AS newest,
  sum(n) AS n, sum(held) AS held
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


def _counts(row: Row) -> tuple[int, int]:
    return int(row["n"] or 0), int(row["held"] or 0)


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


def passed(newest: datetime | None, batch_time: datetime) -> datetime | None:
    """How far event time has come: a row from the future does not carry it along."""
    return newest if newest is None else min(newest, batch_time)


def _instant(micros: object) -> datetime | None:
    return None if micros is None else moment(int(str(micros)))
