from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.manifests import ROOT

from headgate.certify.account import Evidence
from headgate.certify.stages import (
    Answer,
    Finding,
    Pipeline,
    jobs,
    marts,
    pipeline,
    services,
)
from headgate.certify.validation import (
    ValidationReport,
    _Stages,
    attempt,
    numbered,
    refuse_unless_ok,
    text,
)
from headgate.config.settings import Settings
from headgate.core.accounting.evidence import TableEvidence, TopicEvidence, Verdict
from headgate.core.engine.job_kind import find_kafka_options
from headgate.core.engine.run_options import TopicRunForm, TopicRunOptions
from headgate.core.ledger.model import JobSpec, LedgerRow, Run, RunOptions, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import Range, TableRange, TopicRange
from headgate.core.sql.script import PLACEHOLDERS
from headgate.errors import DifferenceError, UnavailableError
from headgate.pipeline.accounting import GeneratorMetrics
from headgate.pipeline.dbt.models import DataTest, DbtReport
from headgate.pipeline.job_kinds import SilverRunForm
from headgate.pipeline.loader import load_dataset

TIME = datetime(2024, 1, 1, tzinfo=UTC)


TOPIC = TopicRunOptions(
    topic="orders", dlq_topic="orders.dlq", trigger_seconds=None, max_offsets_per_batch=100
)


def run(job: str, state: RunState, number: int = 1, restarts: int = 0) -> Run:
    kind = job.partition("-")[0]
    options = TOPIC.model_dump(mode="json") if kind == "bronze" else {}
    return Run(job, number, kind, "orders", "batch", "r", options, state, restarts, TIME)


def stream(job: str, restarts: int = 0) -> Run:
    return replace(run(job, RunState.RUNNING, restarts=restarts), mode="streaming")


FINISHED = (run("bronze-orders", RunState.FINISHED), run("silver-orders", RunState.FINISHED))


def row(range_: Range, job: str, **outcomes: int) -> LedgerRow:
    n = sum(outcomes.values())
    return LedgerRow(None, job, 1, range_, ("r",), TIME, 0, n, n, 0, outcomes, {}, TIME)


def table(name: str, rows: int) -> TableEvidence:
    return TableEvidence(name, rows, "abc", ("a",), "m.json", 77, TIME, ())


@pytest.fixture
def facts() -> Pipeline:
    """A hundred events, three of them refused; silver keeps 90."""
    evidence = Evidence(
        dataset="orders",
        topic="orders",
        streaming=False,
        bronze_ledger=(
            row(
                TopicRange("orders", "id1", {"0": 0}, {"0": 100}),
                "bronze-orders",
                accepted=97,
                refused=3,
            ),
        ),
        silver_ledger=(
            row(
                TableRange("bronze.orders", "u", None, 1),
                "silver-orders",
                kept=90,
                duplicate=3,
                filtered=4,
            ),
        ),
        open_batches=0,
        settled=frozenset(),
        bronze=table("bronze.orders", 97),
        silver=table("silver.orders", 90),
        dead_letters=table("headgate.dead_letters", 3),
        repeated_origins=0,
        on_broker=TopicEvidence("id1", {"0": 0}, {"0": 100}),
    )
    return Pipeline(evidence, GeneratorMetrics(100, 0, "orders"), 0, 0.95, 3)


def failed(findings: list[Finding]) -> list[str]:
    return [found.name for found in findings if found.verdict is Verdict.FAIL]


def test_runs_that_finished_before_the_services_were_restarted_count() -> None:
    assert failed(jobs((), (), earlier=FINISHED)) == []


def test_runs_of_the_store_count_after_the_services_were_restarted(tmp_path: Path) -> None:
    settings = Settings(root=ROOT, home=tmp_path)
    with OpsStore.open(settings.ops_store_url) as store:
        for done in FINISHED:
            options = find_kafka_options(done) or RunOptions()
            spec = JobSpec(done.job, done.kind, done.subject, done.mode, done.revision, options)
            made = store.submit(spec)
            store.claim(made.job, made.number, "an engine")
            store.move(made.job, made.number, RunState.FINISHED)
        store.note_services_ready()
        orders = load_dataset(ROOT / "datasets" / "orders" / "dataset.yml", PLACEHOLDERS).value
        assert failed(list(_Stages(settings, orders, store).gather(2)())) == []


def test_advice_is_that_of_the_stages_that_failed() -> None:
    report = validated(s4=[Finding("dbt tests", "0 of 3 passed", "0", Verdict.FAIL)])
    with pytest.raises(DifferenceError) as refused:
        refuse_unless_ok(report)
    assert refused.value.fix == "make dbt-build, then make validate"


def test_several_datasets_are_told_apart() -> None:
    bad = validated(s2=jobs((), ()))
    with pytest.raises(DifferenceError) as refused:
        refuse_unless_ok(bad, replace(validated(), dataset="other"))
    assert refused.value.why.startswith(f"{bad.dataset}: 2.1 finished jobs")


def test_batch_wants_bronze_and_silver_finished() -> None:
    assert failed(jobs(FINISHED, FINISHED)) == []
    assert failed(jobs(FINISHED[:1], FINISHED[:1])) == ["finished jobs"]
    rebuilt = (FINISHED[0], replace(FINISHED[1], options={"form": SilverRunForm.FULL}))
    assert failed(jobs(rebuilt, rebuilt)) == []


@pytest.mark.parametrize("other", ["maintain-orders", "backfill-orders", "bronze-orders"])
def test_runs_that_read_no_new_record_are_no_processing(other: str) -> None:
    beside = tuple(run(other, RunState.FINISHED, number) for number in (2, 3))
    runs = (FINISHED[0], *beside)
    assert failed(jobs(runs, runs)) == ["finished jobs"]


@pytest.mark.parametrize("form", [TopicRunForm.REPAIR, TopicRunForm.ACCEPT_GAP])
def test_a_mended_bronze_is_not_a_processed_one(form: TopicRunForm) -> None:
    runs = (replace(FINISHED[0], options={**FINISHED[0].options, "form": form}), FINISHED[1])
    assert failed(jobs(runs, runs)) == ["finished jobs"]


def test_silver_on_demand_may_be_behind_but_not_ahead(facts: Pipeline) -> None:
    (step,) = facts.evidence.silver_ledger
    behind = with_silver(facts, replace(step, outcomes={"kept": 90, "duplicate": 2}))
    assert failed(pipeline(behind)) == ["silver account"]
    (found,) = [
        f for f in pipeline(replace(behind, silver_on_demand=True)) if f.verdict is not Verdict.PASS
    ]
    assert (found.name, found.verdict) == ("silver account", Verdict.WARN)
    assert found.detail == "silver has not read 5 rows: make process-silver"
    ahead = with_silver(facts, replace(step, outcomes={"kept": 90, "duplicate": 9}))
    assert failed(pipeline(replace(ahead, silver_on_demand=True))) == ["silver account"]


def with_silver(facts: Pipeline, step: LedgerRow) -> Pipeline:
    return replace(facts, evidence=replace(facts.evidence, silver_ledger=(step,)))


def test_batch_allows_no_restart() -> None:
    runs = (replace(FINISHED[0], restarts=1), FINISHED[1])
    assert failed(jobs(runs, runs)) == ["restarts"]


def test_a_failure_counts_only_while_it_is_the_newest_run_of_its_job() -> None:
    mended = (run("bronze-orders", RunState.FINISHED, 2), run("bronze-orders", RunState.FAILED, 1))
    assert failed(jobs((), (*mended, FINISHED[1]))) == []
    broken = (*FINISHED, run("bronze-orders", RunState.FAILED, 2))
    assert failed(jobs((), broken)) == ["failed jobs"]


def test_a_stream_warns_of_past_restarts_and_fails_on_those_going_on() -> None:
    calm = (stream("bronze-orders", restarts=2),)
    verdicts = [found.verdict for found in jobs(calm, calm, streams=1)]
    assert verdicts == [Verdict.PASS, Verdict.WARN, Verdict.PASS]
    again = (replace(calm[0], restarts=3),)
    assert failed(jobs(calm, again, streams=1)) == ["restarts"]
    assert failed(jobs(calm, calm, streams=1, just_restarted=["bronze-orders"])) == ["restarts"]
    waiting = (replace(calm[0], restarts=0, error_text="the broker is away | why | fix"),)
    (found,) = [f for f in jobs(waiting, waiting, streams=1) if f.verdict is Verdict.FAIL]
    assert found.detail == "bronze-orders: the broker is away"


def test_a_mode_wants_its_streams_running() -> None:
    bronze = (stream("bronze-orders"),)
    assert failed(jobs(bronze, bronze, streams=1)) == []
    assert failed(jobs(bronze, bronze, streams=2)) == ["running streams"]
    assert failed(jobs((), FINISHED, streams=1)) == ["running streams"]
    batch = (replace(bronze[0], mode="batch"),)
    assert failed(jobs(batch, batch, streams=1)) == ["running streams"]


def test_sound_data_passes_every_check(facts: Pipeline) -> None:
    assert {found.verdict for found in pipeline(facts)} == {Verdict.PASS}
    values = {found.name: found.value for found in pipeline(facts)}
    assert values["bronze completeness"] == "97.00% (97 of 100)"
    assert values["bronze snapshot"] == "77 at 2024-01-01 00:00:00 UTC"


def test_the_higher_count_of_generator_and_topic_is_what_was_produced(facts: Pipeline) -> None:
    more = replace(facts, generator=GeneratorMetrics(200, 0, "orders"))
    assert failed(pipeline(more)) == ["bronze completeness"]
    stale = replace(facts, generator=GeneratorMetrics(10, 0, "orders"))
    assert pipeline(stale)[0].value == "100 by the topic"
    other = replace(facts, generator=GeneratorMetrics(200, 0, "another"))
    assert failed(pipeline(other)) == []


def test_dead_letters_of_bronze_and_generator_are_held_against_the_limit(facts: Pipeline) -> None:
    assert failed(pipeline(replace(facts, generator_refused=1))) == ["dead letters"]
    assert failed(pipeline(replace(facts, dlq_max=2))) == ["dead letters"]


def test_an_empty_silver_fails(facts: Pipeline) -> None:
    evidence = replace(facts.evidence, silver=None)
    assert failed(pipeline(replace(facts, evidence=evidence))) == ["silver rows", "silver snapshot"]


def report_of(*tests: DataTest, empty: tuple[str, ...] = ()) -> DbtReport:
    bad = sum(test.status == "fail" for test in tests)
    return DbtReport("test", not bad, 1.0, len(tests) - bad, 0, bad, (), tests, empty)


def test_marts_pass_only_when_something_was_tested() -> None:
    good, bad = DataTest("unique_id", "pass", 0, ""), DataTest("not_null", "fail", 2, "")
    assert failed(marts(report_of(good))) == []
    assert failed(marts(report_of(good, bad))) == ["dbt tests"]
    assert failed(marts(report_of())) == ["dbt tests"]
    assert failed(marts(report_of(good, empty=("fct",)))) == ["empty models"]


def validated(**stages: list[Finding]) -> ValidationReport:
    checks = [numbered(int(name[1:]), found) for name, found in stages.items()]
    return ValidationReport("orders", TIME, tuple(check for part in checks for check in part))


def test_checks_are_numbered_by_stage() -> None:
    report = validated(s1=services([Answer("broker", True, "1 broker")]), s2=jobs((), ()))
    assert [check.number for check in report.checks] == ["1.1", "2.1", "2.2", "2.3"]
    words = text(report)
    assert "Stage 2: jobs" in words
    assert "✗ 2.1  finished jobs  none (limit: bronze and silver)" in words


def test_a_failed_check_ends_with_5_and_silence_with_8() -> None:
    up = services(
        [Answer("broker", True, ""), Answer("engine", True, ""), Answer("storage", True, "")]
    )
    refuse_unless_ok(validated(s1=up))
    with pytest.raises(DifferenceError, match="one check failed"):
        refuse_unless_ok(validated(s1=up, s2=jobs((), ())))
    away = services(
        [Answer("broker", False, ""), Answer("engine", False, ""), Answer("storage", True, "")]
    )
    with pytest.raises(UnavailableError, match="no service answers"):
        refuse_unless_ok(validated(s1=away))


def test_a_stage_whose_need_is_away_says_so() -> None:
    def gather() -> list[Finding]:
        raise UnavailableError("the marts are not built yet", why="no file")

    (found,) = attempt(gather, "marts")
    assert (found.verdict, found.detail) == (
        Verdict.FAIL,
        "the marts are not built yet: no file",
    )
