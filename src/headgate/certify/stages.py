"""Judges each stage of the validation: services, jobs, data, marts. Pure: facts in, findings out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from headgate.certify.account import Evidence, account, produced, sums
from headgate.core.accounting.evidence import Line, TableEvidence, Verdict
from headgate.core.engine.job_kind import find_kafka_options
from headgate.core.engine.run_options import TopicRunForm
from headgate.core.ledger.model import Run, RunState

# What a dataset is processed by.
BATCH_JOBS = ("bronze", "silver")


@dataclass(frozen=True)
class Finding:
    """One check before it has a number."""

    name: str
    value: str
    limit: str
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True)
class Answer:
    """What a service said when it was asked."""

    name: str
    ok: bool
    words: str
    limit: str = "answers"


class GeneratorCount(Protocol):
    """How many events the generator's last run sent, and to which topic."""

    @property
    def events(self) -> int: ...
    @property
    def topic(self) -> str: ...


@dataclass(frozen=True)
class Pipeline:
    """What stage 3 judges."""

    evidence: Evidence
    generator: GeneratorCount | None
    generator_refused: int
    completeness: float
    dlq_max: int
    silver_on_demand: bool = False


def finding(name: str, holds: bool, value: str, limit: str, detail: str = "") -> Finding:
    verdict = Verdict.PASS if holds else Verdict.FAIL
    return Finding(name, value, limit, verdict, "" if holds else detail)


def services(answers: Sequence[Answer]) -> list[Finding]:
    """Stage 1: broker, engine and storage answer."""
    return [finding(a.name, a.ok, a.words, a.limit) for a in answers]


def jobs(
    before: Sequence[Run],
    after: Sequence[Run],
    *,
    streams: int = 0,
    just_restarted: Collection[str] = (),
    earlier: Sequence[Run] = (),
) -> list[Finding]:
    """Stage 2: the jobs started since the last `up`, looked at twice.

    `streams` is how many must run, 0 in batch mode; `just_restarted` are jobs whose last restart is
    so young that the next one may follow. `earlier` are runs from before the last `up`: what they
    finished stands in the tables, whatever was restarted since.
    """
    if not streams:
        return [_finished((*earlier, *after)), _restarts(after), _failed(after)]
    ongoing = _ongoing(before, after, just_restarted)
    return [_running(after, streams), _stream_restarts(after, ongoing), _failed(after)]


def _finished(runs: Sequence[Run]) -> Finding:
    done = {run.kind for run in runs if run.state is RunState.FINISHED and _processes(run)}
    found = [kind for kind in BATCH_JOBS if kind in done]
    words, wanted = ", ".join(found) or "none", " and ".join(BATCH_JOBS)
    return finding("finished jobs", len(found) == len(BATCH_JOBS), words, wanted, "make process")


def _processes(run: Run) -> bool:
    """Not maintenance, a backfill, a repair or an accepted gap: these read no new record."""
    options = find_kafka_options(run)
    return run.kind in BATCH_JOBS and (options is None or options.form is TopicRunForm.READ)


def _running(runs: Sequence[Run], wanted: int) -> Finding:
    found = [run.job for run in runs if run.state is RunState.RUNNING and run.mode == "streaming"]
    words = f"{len(found)}" + (f" ({', '.join(found)})" if found else "")
    fix = "make process-streaming"
    return finding("running streams", len(found) >= wanted, words, f"at least {wanted}", fix)


def _restarts(runs: Sequence[Run]) -> Finding:
    names = sorted({run.job for run in runs if run.restarts})
    total = sum(run.restarts for run in runs)
    return finding("restarts", total == 0, str(total), "0", ", ".join(names))


def _ongoing(
    before: Sequence[Run], after: Sequence[Run], just_restarted: Collection[str]
) -> list[str]:
    """What restarted between the two looks or just before them, or waits to be tried again."""
    known = {(run.job, run.number): run.restarts for run in before}
    told: dict[str, str] = {}
    for run in (run for run in after if run.state is RunState.RUNNING):
        again = run.restarts > known.get((run.job, run.number), run.restarts)
        if again or run.error_text or (run.restarts and run.job in just_restarted):
            told[run.job] = (run.error_text or "it restarted just now").split(" | ")[0]
    return [f"{job}: {words}" for job, words in sorted(told.items())]


def _stream_restarts(runs: Sequence[Run], ongoing: Sequence[str]) -> Finding:
    total, limit = str(sum(run.restarts for run in runs)), "none going on"
    if ongoing:
        return Finding("restarts", total, limit, Verdict.FAIL, "; ".join(ongoing))
    if total != "0":
        return Finding("restarts", total, limit, Verdict.WARN, "they are past")
    return Finding("restarts", total, limit, Verdict.PASS)


def _failed(runs: Sequence[Run]) -> Finding:
    newest: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: run.number):
        newest[run.job] = run
    bad = [run for run in newest.values() if run.state is RunState.FAILED]
    words = "; ".join(f"{run.job} run {run.number}: {run.error_text or 'no words'}" for run in bad)
    return finding("failed jobs", not bad, str(len(bad)), "0", words)


def pipeline(facts: Pipeline) -> list[Finding]:
    """Stage 3: what was produced is in bronze, in silver, or among the dead letters."""
    total = sums(facts.evidence)
    bronze, silver = _rows(facts.evidence.bronze), _rows(facts.evidence.silver)
    lines = {line.name: line for line in account(facts.evidence)}
    events, said_by = _events(facts)
    share = bronze / events if events else 0.0
    letters = _rows(facts.evidence.dead_letters) + facts.generator_refused
    return [
        finding("events produced", events > 0, f"{events:,} by {said_by}", "more than 0"),
        finding(
            "bronze completeness",
            events > 0 and share >= facts.completeness,
            f"{share:.2%} ({bronze:,} of {events:,})",
            f"at least {facts.completeness:.0%}",
        ),
        _of_account(lines["produced"]),
        _silver_account(facts, lines["silver"]),
        finding("silver rows", 0 < silver <= bronze, f"{silver:,}", f"1 to {bronze:,}"),
        finding(
            "dead letters",
            letters <= facts.dlq_max,
            f"{letters:,} ({letters - facts.generator_refused:,} by bronze,"
            f" {facts.generator_refused:,} by the generator)",
            f"at most {facts.dlq_max:,}",
            f"{total.refused:,} records could not be parsed",
        ),
        _snapshot("bronze snapshot", facts.evidence.bronze),
        _snapshot("silver snapshot", facts.evidence.silver),
    ]


def _of_account(line: Line) -> Finding:
    return Finding(f"{line.name} account", line.words, "exact", line.verdict, line.detail)


def _silver_account(facts: Pipeline, line: Line) -> Finding:
    """Silver that is made on demand may be behind a bronze that streams; it cannot be ahead."""
    found, total = _of_account(line), sums(facts.evidence)
    behind = total.accepted - total.kept - total.duplicates - total.filtered
    if not facts.silver_on_demand or behind <= 0:
        return found
    return replace(found, verdict=Verdict.WARN, detail=f"{line.detail}: make process-silver")


def _events(facts: Pipeline) -> tuple[int, str]:
    """The events really produced: the generator's own count, or the topic's when it is higher."""
    on_topic = produced(facts.evidence)
    known = facts.generator
    if known is not None and known.topic == facts.evidence.topic and known.events >= on_topic:
        return known.events, "the generator"
    return on_topic, "the topic" if facts.evidence.on_broker else "the ledger"


def _rows(table: TableEvidence | None) -> int:
    return table.rows if table else 0


def _snapshot(name: str, table: TableEvidence | None) -> Finding:
    if table is None or table.snapshot_id is None or table.committed_at is None:
        return finding(name, False, "none", "committed", "the job that makes it has not run")
    words = f"{table.snapshot_id} at {table.committed_at:%Y-%m-%d %H:%M:%S} UTC"
    return finding(name, True, words, "committed")


class MartTest(Protocol):
    """One test of the marts."""

    @property
    def name(self) -> str: ...
    @property
    def status(self) -> str: ...


class MartReport(Protocol):
    """What the tests of the marts came to; `empty` are models without a row."""

    @property
    def tests(self) -> Sequence[MartTest]: ...
    @property
    def passed(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def empty(self) -> Sequence[str]: ...


def marts(report: MartReport) -> list[Finding]:
    """Stage 4: dbt's tests pass, and none of them passed over nothing."""
    bad = {t.name: t.status for t in report.tests if t.status not in ("pass", "warn")}
    tests = f"{report.passed} of {len(report.tests)} passed, {report.failed} failed"
    all_pass = report.failed == 0 and report.passed > 0
    empty = ", ".join(report.empty)
    return [
        finding("dbt tests", all_pass, tests, "0 failures", _pairs(bad) or "nothing was tested"),
        finding("empty models", not report.empty, str(len(report.empty)), "0", empty),
    ]


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
