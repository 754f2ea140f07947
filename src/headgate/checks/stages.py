"""What each stage of the validation judges. Pure: facts in, findings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.checks.accounts import account
from headgate.checks.facts import Evidence, TableEvidence, Verdict, sums
from headgate.checks.produced import produced
from headgate.store.model import Run, RunState

if TYPE_CHECKING:
    from headgate.checks.dbt_results import DbtReport

BATCH_JOBS, STREAMING_JOBS = 2, 1


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


@dataclass(frozen=True)
class GeneratorMetrics:
    """What the generator wrote of its last run."""

    events: int
    invalid: int
    topic: str


@dataclass(frozen=True)
class Pipeline:
    """What stage 3 judges."""

    evidence: Evidence
    generator: GeneratorMetrics | None
    generator_refused: int
    completeness: float
    dlq_max: int


def finding(name: str, holds: bool, value: str, limit: str, detail: str = "") -> Finding:
    verdict = Verdict.PASS if holds else Verdict.FAIL
    return Finding(name, value, limit, verdict, "" if holds else detail)


def services(answers: Sequence[Answer]) -> list[Finding]:
    """Stage 1: broker, engine and storage answer."""
    return [finding(a.name, a.ok, a.words, a.limit) for a in answers]


def jobs(before: Sequence[Run], after: Sequence[Run], *, streaming: bool) -> list[Finding]:
    """Stage 2: the jobs started since the last `up`, looked at twice."""
    wanted = _running(after) if streaming else _finished(after)
    return [wanted, _restarts(before, after, streaming=streaming), _failed(after)]


def _finished(runs: Sequence[Run]) -> Finding:
    count = sum(run.state is RunState.FINISHED for run in runs)
    return finding("finished jobs", count >= BATCH_JOBS, str(count), f"at least {BATCH_JOBS}")


def _running(runs: Sequence[Run]) -> Finding:
    count = sum(run.state is RunState.RUNNING for run in runs)
    limit = f"at least {STREAMING_JOBS}"
    return finding("running jobs", count >= STREAMING_JOBS, str(count), limit)


def _restarts(before: Sequence[Run], after: Sequence[Run], *, streaming: bool) -> Finding:
    known = {(run.job, run.number): run.restarts for run in before}
    ongoing = [r.job for r in after if r.restarts > known.get((r.job, r.number), r.restarts)]
    total = sum(run.restarts for run in after)
    if streaming and total and not ongoing:
        return Finding("restarts", str(total), "none going on", Verdict.WARN, "they are past")
    names = sorted({run.job for run in after if run.restarts})
    limit = "none going on" if streaming else "0"
    return finding("restarts", total == 0, str(total), limit, ", ".join(ongoing or names))


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
        *(
            Finding(
                f"{name} account",
                lines[name].words,
                "exact",
                lines[name].verdict,
                lines[name].detail,
            )
            for name in ("produced", "silver")
        ),
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


def marts(report: DbtReport) -> list[Finding]:
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
