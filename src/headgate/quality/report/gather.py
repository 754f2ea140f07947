"""Gathers the evidence of a run from ops store and lake, builds its report and writes page and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake, Row
from headgate.core.ledger.model import LedgerRow, Run
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.core.metrics.windows import restored
from headgate.core.sql.fragments import job_name
from headgate.core.sql.script import PLACEHOLDERS
from headgate.declarations.errors import Declared
from headgate.errors import HeadgateError, OperationError, UsageError
from headgate.quality.compile.resolve import JudgedTable, judged_table, rule_words
from headgate.quality.compile.tables import QUALITY
from headgate.quality.explain import verdict_line
from headgate.quality.report.build import (
    Evidence,
    StatusCount,
    make_report,
    moment,
)
from headgate.quality.report.model import (
    QualityReport,
    Sample,
    VerdictLine,
    WindowLine,
    Windows,
)
from headgate.quality.report.page import report_html, report_json
from headgate.quality.report.rows import (
    MOST_ROWS,
    failed_row,
    sample_sql,
    sensitive_columns,
    shown_row,
    stratified,
)
from headgate.quality.revision import RulesRevision, fetch
from headgate.quality.spec.loader import find_table, load_rules
from headgate.quality.spec.rule_set import SEVERITIES, RuleTable
from headgate.terminal.report import ReportFiles, report_folder, write_files

SEED = 5
# A stream's run may be weeks long: its report looks back this far.
MOST_BATCHES = 5_000
MOST_WINDOWS = 120
MOST_VERDICTS = 300


@dataclass(frozen=True)
class Wanted:
    """Which report: of a run, the newest with a batch when it is None; drawn with this seed."""

    table: str
    run: int | None = None
    seed: int = SEED
    rows: int = MOST_ROWS


def quality_report(settings: Settings, store: OpsStore, wanted: Wanted) -> QualityReport:
    """The report of one run of a table's quality job."""
    declared_now = _declared_now(settings, wanted.table)
    if declared_now is not None and declared_now.is_pair:
        raise UsageError(
            f"{wanted.table} has two sources, so it has no report of a quality job",
            fix=f"headgate reconcile report {wanted.table}",
        )
    job = job_name(QUALITY, wanted.table)
    rows = store.newest_batches(job, MOST_BATCHES)
    run = _run(store, job, rows, wanted)
    batches = tuple(row for row in rows if row.run <= run.number)
    own = [row for row in batches if row.run == run.number]
    revision = fetch(store, own[-1].revisions[-1] if own else run.revision)
    judged = judged_revision(revision)
    hidden = sensitive_columns(judged.table)
    if declared_now is not None:  # a column may be tagged after the run that wrote it down
        hidden |= sensitive_columns(declared_now)
    with Lake.open(settings) as lake:
        found = _Found(lake, revision, judged, own, hidden, replaced=_replaced(revision, rows, run))
        windows = found.windows()
        evidence = Evidence(
            run=run,
            batches=batches,
            counts=store.newest_rule_counts(job, len(rows)),
            statuses=found.statuses(),
            windows=windows,
            verdicts=_verdicts(store, judged, job, windows, hidden),
            sample=found.sample(wanted),
            notes=found.notes(),
            judged=store.judged_rows(job),
        )
    return make_report(judged, evidence, utc_now())


def judged_revision(revision: RulesRevision) -> JudgedTable:
    """The rules as they were when the run judged by them."""
    rule_set = revision.rule_set
    return judged_table(Declared(rule_set, revision.file, {}), rule_set.table(revision.name))


def _declared_now(settings: Settings, table: str) -> RuleTable | None:
    """The table as it is declared today; None where it is not, or not soundly."""
    try:
        declared = load_rules(find_table(settings.root, table), PLACEHOLDERS)
    except HeadgateError:
        return None
    return declared.value.table(table)


def _run(store: OpsStore, job: str, rows: Sequence[LedgerRow], wanted: Wanted) -> Run:
    if wanted.run is not None:
        return store.run(job, wanted.run)
    if not rows:
        raise OperationError(
            f"{job} has judged nothing yet",
            why="no batch of it is in the ledger",
            fix=f"headgate job run {job}",
        )
    return store.run(job, rows[-1].run)


def _replaced(revision: RulesRevision, rows: Sequence[LedgerRow], run: Run) -> bool:
    """Whether a later run has written the tables anew, so that this one's rows are gone."""
    return not revision.follows_a_topic and bool(rows) and rows[-1].run != run.number


class _Found:
    """What the tables hold of one run."""

    def __init__(
        self,
        lake: Lake,
        revision: RulesRevision,
        judged: JudgedTable,
        own: Sequence[LedgerRow],
        hidden: frozenset[str],
        *,
        replaced: bool,
    ) -> None:
        self._lake, self._judged, self._replaced = lake, judged, replaced
        self._hidden = hidden
        self._results, self._partials = (
            f"dq.{kind}_{revision.name}" for kind in ("results", "partials")
        )
        times = [row.batch_time for row in own]
        self._span = (_literal(min(times)), _literal(max(times))) if times else None

    def notes(self) -> tuple[str, ...]:
        if self._replaced:
            return (
                "A later run has written the tables anew: rows and windows of this run are gone.",
            )
        return ()

    def _has(self, table: str) -> bool:
        return self._span is not None and not self._replaced and self._lake.exists(table)

    def statuses(self) -> tuple[StatusCount, ...]:
        if not self._has(self._results):
            return ()
        rows = self._lake.query(
            "SELECT dq_status, dq_outcome, dq_severity, count(*)\n"
            f"FROM {self._lake.scan_sql(self._results)}\n"
            f"WHERE {self._between('processing_time')}\n"
            "GROUP BY ALL"
        )
        return tuple(
            StatusCount(str(s), str(o), None if v is None else str(v), cast("int", n))
            for s, o, v, n in rows
        )

    def sample(self, wanted: Wanted) -> Sample:
        nothing = Sample(wanted.seed, wanted.rows, 0)
        if not self._has(self._results):
            return nothing
        where, scan = self._between("processing_time"), self._lake.scan_sql(self._results)
        counted = f"SELECT count(*) FROM {scan} WHERE dq_outcome <> 'clean' AND {where}"
        failing = cast("int", self._lake.query(counted)[0][0])
        rows = [failed_row(row) for row in self._lake.query(sample_sql(scan, where, wanted.seed))]
        words = {rule.name: rule_words(rule) for rule in self._judged.rules}
        chosen = stratified(rows, tuple(words), wanted.rows)
        table, hidden = self._judged.table, self._hidden
        shown = tuple(shown_row(row, table, words, hidden) for row in chosen)
        return Sample(wanted.seed, wanted.rows, failing, shown)

    def windows(self) -> Windows:
        if not self._has(self._partials):
            return Windows()
        _, last = self._span or ("", "")
        severities = ", ".join(
            f"coalesce(sum(n) FILTER (kind = 'rule' AND severity = '{name}'), 0)::BIGINT"
            for name in SEVERITIES
        )
        rows = self._lake.query(
            f"SELECT window_start, {_rows('true')}, {_rows('late')}, {severities},\n"
            f"  count(*) OVER (), count_if({_rows('late')} > 0) OVER ()\n"
            f"FROM {self._lake.scan_sql(self._partials)}\n"
            f"WHERE batch_time <= {last}\n"
            f"GROUP BY window_start HAVING bool_or({self._between('batch_time')})\n"
            f"ORDER BY window_start DESC LIMIT {MOST_WINDOWS}"
        )
        return _windows(rows)

    def _between(self, column: str) -> str:
        first, last = self._span or ("NULL", "NULL")
        return f"{column} BETWEEN {first} AND {last}"


def _rows(which: str) -> str:
    return f"coalesce(sum(n) FILTER (kind = 'rows' AND {which}), 0)::BIGINT"


def _literal(at: datetime) -> str:
    return f"TIMESTAMPTZ '{at.astimezone(UTC).isoformat(' ')}'"


def _windows(rows: Sequence[Row]) -> Windows:
    if not rows:
        return Windows()
    shown = tuple(_window(row) for row in reversed(rows))
    every, late = cast("tuple[int, int]", rows[0][-2:])
    return Windows(shown, earlier=every - len(shown), late=late)


def _window(row: Row) -> WindowLine:
    start, rows, late, *counts = row[:-2]
    by_severity = {str(s): n for s, n in zip(SEVERITIES, cast("list[int]", counts), strict=True)}
    at = cast("datetime", start).astimezone(UTC)
    return WindowLine(moment(at), cast("int", rows), by_severity, cast("int", late))


def _verdicts(
    store: OpsStore, judged: JudgedTable, job: str, windows: Windows, hidden: frozenset[str]
) -> tuple[VerdictLine, ...]:
    """Of the windows shown: those outside their limits first, then the newest."""
    if not judged.aggregates:
        return ()
    seen = {window.start for window in windows.shown}
    declared = {aggregate.name: aggregate for aggregate in judged.aggregates}
    lines = [
        verdict_line(verdict, declared.get(verdict.name), moment(found.window_start), hidden)
        for found in reversed(store.windows(job, MOST_WINDOWS))
        if found.record is not None and moment(found.window_start) in seen
        for verdict in restored(found.record).verdicts
    ]
    return tuple(sorted(lines, key=lambda line: line.holds)[:MOST_VERDICTS])


KIND = "rules"


def write_report(folder: Path, report: QualityReport) -> ReportFiles:
    """The two files of this run; a report of the same run takes their place."""
    return write_files(folder, f"run-{report.header.run}", report_html(report), report_json(report))


def make_and_write(
    settings: Settings, store: OpsStore, wanted: Wanted, folder: Path | None = None
) -> tuple[QualityReport, ReportFiles]:
    """The report of a run, written where reports are kept or into `folder`."""
    report = quality_report(settings, store, wanted)
    return report, write_report(folder or report_folder(settings, KIND, wanted.table), report)
