"""The four-stage validation: numbered checks, each with a value, a limit and a verdict.

A stage whose dependency is away fails and says so; the others still run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from headgate.app import GENERATOR_COUNTS, SERVICE_PROBE, TEST_MARTS, load
from headgate.certify.stages import (
    BATCH_JOBS,
    Answer,
    Finding,
    GeneratorCount,
    MartReport,
    Pipeline,
    jobs,
    marts,
    pipeline,
    services,
)
from headgate.config.settings import Settings, streams_of
from headgate.core.accounting.evidence import Verdict
from headgate.core.ledger.model import ACTIVE, Run
from headgate.core.sql.fragments import job_name
from headgate.errors import DifferenceError, HeadgateError, UnavailableError

if TYPE_CHECKING:
    from headgate.certify.evidence import DeclaredDataset
    from headgate.core.lake.duckdb_reader import Lake
    from headgate.core.ledger.ops_store import OpsStore

# A stream that fails for good does so again within this time.
YOUNG = timedelta(seconds=60)
STAGES = ("services", "jobs", "data", "marts")
MARKS = {Verdict.PASS: "✓", Verdict.WARN: "!", Verdict.FAIL: "✗"}
Watch = Callable[[str], None]


@dataclass(frozen=True)
class Check:
    """One numbered check: `2.1` is the first of stage 2."""

    stage: int
    number: str
    name: str
    value: str
    limit: str
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True)
class ValidationReport:
    """All four stages at one moment."""

    dataset: str
    at: datetime
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return not self.failed

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.verdict is Verdict.FAIL)

    @property
    def nothing_answers(self) -> bool:
        """Broker and engine both away. That a local folder can be written is no answer."""
        asked = [c for c in self.checks if c.stage == 1 and c.name != "storage"]
        return bool(asked) and all(c.verdict is Verdict.FAIL for c in asked)


def processed_datasets(settings: Settings) -> tuple[str, ...]:
    """The declared datasets whose bronze job has ever run."""
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.declarations.project import available_datasets

    with OpsStore.open(settings.ops_store_url) as store:
        known = available_datasets(settings.root)
        return tuple(name for name in known if store.latest(job_name("bronze", name)))


def numbered(stage: int, findings: Sequence[Finding]) -> tuple[Check, ...]:
    return tuple(
        Check(stage, f"{stage}.{i}", f.name, f.value, f.limit, f.verdict, f.detail)
        for i, f in enumerate(findings, 1)
    )


def attempt(gather: Callable[[], Sequence[Finding]], name: str) -> Sequence[Finding]:
    """The stage's findings; what it needs and does not find is a finding too."""
    try:
        return gather()
    except HeadgateError as error:
        words = f"{error.what}: {error.why}" if error.why else error.what
        return [Finding(name, "could not be checked", "", Verdict.FAIL, words)]


def run_validation(
    settings: Settings, watch: Watch = lambda words: None, name: str = ""
) -> ValidationReport:
    """Run all four stages on this dataset, or the active one."""
    from headgate.certify.evidence import declared
    from headgate.core.ledger.ops_store import OpsStore, utc_now

    dataset = declared(settings, name or settings.need("dataset"))
    with OpsStore.open(settings.ops_store_url) as store:
        stages = _Stages(settings, dataset, store)
        found: dict[int, Sequence[Finding]] = {}
        # Stage 2 comes last, so that a job which restarts meanwhile is seen to do so.
        for stage in (1, 3, 4, 2):
            watch(STAGES[stage - 1])
            found[stage] = attempt(stages.gather(stage), STAGES[stage - 1])
    checks = tuple(check for stage in sorted(found) for check in numbered(stage, found[stage]))
    return ValidationReport(dataset.name, utc_now(), checks)


class _Stages:
    """Gathers what each stage judges."""

    def __init__(self, settings: Settings, dataset: DeclaredDataset, store: OpsStore) -> None:
        self._settings, self._dataset, self._store = settings, dataset, store
        self._since = store.services_ready_at()
        self._runs = self._own_runs()

    def gather(self, stage: int) -> Callable[[], Sequence[Finding]]:
        return (self._services, self._jobs, self._data, self._marts)[stage - 1]

    def _services(self) -> Sequence[Finding]:
        probe: Callable[[Settings, OpsStore], Sequence[Answer]] = load(SERVICE_PROBE)
        return services(probe(self._settings, self._store))

    def _jobs(self) -> Sequence[Finding]:
        after, mode = self._own_runs(), self._settings.mode
        streams = 0 if mode == "batch" else len(streams_of(mode))
        young = just_restarted(after)
        earlier = [run for kind in BATCH_JOBS for run in self._store.runs(self._job(kind))]
        return jobs(self._runs, after, streams=streams, just_restarted=young, earlier=earlier)

    def _job(self, kind: str) -> str:
        return job_name(kind, self._dataset.name)

    def _own_runs(self) -> tuple[Run, ...]:
        """The runs of this dataset's jobs since `up`, and those that went on over it."""
        asked = (*self._store.runs(states=ACTIVE), *self._store.runs(since=self._since))
        runs = {(run.job, run.number): run for run in asked}.values()
        return tuple(run for run in runs if run.subject == self._dataset.name)

    def _data(self) -> Sequence[Finding]:
        from headgate.certify.evidence import gather

        with _lake(self._settings) as lake:
            evidence = gather(self._settings, self._store, lake, self._dataset.name)
        settings, dataset = self._settings, self._dataset
        count: Callable[[Settings, str, str], tuple[GeneratorCount | None, int]]
        count = load(GENERATOR_COUNTS)
        sent, refused = count(settings, dataset.topic, dataset.dlq_topic)
        return pipeline(
            Pipeline(
                evidence,
                sent,
                refused,
                settings.bronze_completeness_ratio,
                settings.dlq_max,
                silver_on_demand=settings.mode == "streaming_bronze",
            )
        )

    def _marts(self) -> Sequence[Finding]:
        test: Callable[[Settings, str], MartReport] = load(TEST_MARTS)
        return marts(test(self._settings, self._dataset.name))


def just_restarted(runs: Sequence[Run]) -> frozenset[str]:
    """Jobs whose last restart is less than YOUNG ago."""
    from headgate.core.ledger.ops_store import utc_now

    since = utc_now() - YOUNG
    return frozenset(run.job for run in runs if run.restarted_at and run.restarted_at > since)


@contextmanager
def _lake(settings: Settings) -> Generator[Lake, None, None]:
    from headgate.core.lake.duckdb_reader import Lake

    with Lake.open(settings) as lake:
        yield lake


def refuse_unless_ok(*reports: ValidationReport) -> None:
    """Raise what the exit code says: 8 when nothing answers, 5 for any other failure."""
    bad = [report for report in reports if not report.ok]
    if not bad:
        return
    why = "\n".join(
        _sentence(r, check, several=len(reports) > 1) for r in bad for check in r.failed
    )
    if all(report.nothing_answers for report in bad):
        raise UnavailableError("no service answers", why=why, fix="headgate local up")
    failed = sum(len(report.failed) for report in bad)
    count = "one check" if failed == 1 else f"{failed} checks"
    raise DifferenceError(f"{count} failed", why=why, fix=_advice(bad))


# What a failed check of each stage calls for.
_ADVICE = {
    1: "headgate local health",
    2: "headgate job list",
    3: "headgate certify",
    4: "make dbt-build, then make validate",
}


def _advice(reports: Sequence[ValidationReport]) -> str:
    stages = {check.stage for report in reports for check in report.failed}
    return "; ".join(_ADVICE[stage] for stage in sorted(stages))


def text(report: ValidationReport) -> str:
    """The report for a person."""
    width = max((len(check.name) for check in report.checks), default=0)
    parts = [f"Validation of {report.dataset}, {report.at:%Y-%m-%d %H:%M:%S} UTC"]
    for stage, checks in groupby(report.checks, key=lambda check: check.stage):
        lines = [f"  {MARKS[c.verdict]} {c.number}  {c.name:<{width}}  {_value(c)}" for c in checks]
        parts.append("\n".join([f"Stage {stage}: {STAGES[stage - 1]}", *lines]))
    passed = sum(check.verdict is Verdict.PASS for check in report.checks)
    warned = sum(check.verdict is Verdict.WARN for check in report.checks)
    tail = f"{passed} passed, {warned} warned, {len(report.failed)} failed"
    return "\n\n".join([*parts, tail])


def _value(check: Check) -> str:
    limit = f" (limit: {check.limit})" if check.limit else ""
    return f"{check.value}{limit}" + (f": {check.detail}" if check.detail else "")


def _sentence(report: ValidationReport, check: Check, *, several: bool) -> str:
    dataset = f"{report.dataset}: " if several else ""
    return f"{dataset}{check.number} {check.name}: {_value(check)}"
