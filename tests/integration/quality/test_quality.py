"""The quality job on a topic: its counts are those of the topic's records, however it is cut or broken off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.pipeline import InjectedFaultError, Pipeline, ProducerRecord, fail_at
from tests.support.quality_job import (
    RULES,
    UNIQUE,
    ExpectedResults,
    QualityJob,
    declare_rules,
    row,
    rows,
)

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Point
from headgate.core.engine.recovery import rebuild_on
from headgate.core.ledger.model import Window
from headgate.core.ledger.ops_store import OpsStore
from headgate.quality.job.topic import StoppedByRuleError

SEED = 5
BAD = [ProducerRecord(b"not a record", partition=0), ProducerRecord(None, b"gone", partition=1)]
POINTS = (
    Point.AFTER_INTENT,
    Point.AFTER_STAGING,
    Point.AFTER_DEAD_LETTERS,
    Point.AFTER_PARTIALS,
    Point.AFTER_PUBLISH,
    Point.BEFORE_OUTCOME,
)


@pytest.fixture
def quality(pipeline: Pipeline) -> QualityJob:
    return QualityJob(pipeline)


@dataclass(frozen=True)
class JudgedTopic:
    """A topic after three runs: the second met a rule that stops the job, the third went on behind it."""

    quality: QualityJob
    first_windows: tuple[Window, ...]
    stopped_by: str
    outcomes_at_stop: Mapping[str, int]
    expected_at_stop: ExpectedResults


@pytest.fixture(scope="module")
def judged(new_module_pipeline: Callable[..., Pipeline]) -> JudgedTopic:
    pipeline = new_module_pipeline()
    quality = QualityJob(pipeline)
    declare_rules(pipeline)
    pipeline.produce([*rows(300, SEED), *BAD])
    pipeline.process("quality")
    # The end of a batch run closes all windows: the rows of the next one come late.
    windows = pipeline.store.windows(quality.job)
    declare_rules(pipeline, on_fail="stop")
    pipeline.produce([*rows(200, SEED + 1, first=300, seconds=30), *BAD])
    with pytest.raises(StoppedByRuleError) as stopped:
        pipeline.process("quality")
    outcomes, expected = pipeline.outcomes("quality"), ExpectedResults.of(pipeline.records())
    pipeline.produce([row(500, second=70, partition=0)])
    pipeline.process("quality")
    return JudgedTopic(quality, windows, str(stopped.value), outcomes, expected)


def test_what_the_job_says_is_what_an_oracle_says(judged: JudgedTopic) -> None:
    quality, pipeline = judged.quality, judged.quality.pipeline
    expected = ExpectedResults.of(pipeline.records())
    print("seed", SEED, expected.outcomes)
    assert quality.results() == expected
    assert expected.outcomes["refused"] == expected.outcomes["tombstone"] == 2
    assert {code for code, _, _ in quality.dead_letters()} == {"not_json"}
    on_topic = pipeline.dead_letters_on_topic()
    assert [letter.value for letter in on_topic] == [b"not a record"] * 2
    wide = quality.sql("SELECT * FROM dq_metrics_{t}")
    assert sum(r["dq.test.negative"] for r in wide) == expected.statuses["NEGATIVE"]
    assert sum(r["dq_error_total"] for r in wide) == expected.statuses["NEGATIVE"]
    assert {(r["env"], r["dc"], r["table_name"]) for r in wide} == {
        ("test", "here", f"{pipeline.name}_onprem")
    }
    listed = {r["viewName"] for r in quality.sql("SHOW VIEWS IN spark_catalog.default")}
    assert {f"dq_results_{pipeline.name}", f"dq_metrics_{pipeline.name}"} <= listed
    certificate = pipeline.certify()
    assert broken(certificate) == ()
    assert certificate.holds


def test_late_rows_are_counted_and_their_windows_said_again(judged: JudgedTopic) -> None:
    """The second run has rows of the first 30 seconds alone, the third one row of a new window."""
    quality = judged.quality
    assert {window.sequence for window in judged.first_windows} == {1}
    assert len(judged.first_windows) == 6
    late = quality.sql(
        "SELECT late, sum(n) FROM lake.dq.partials_{t} WHERE kind = 'rows' GROUP BY 1"
    )
    assert {r[0]: r[1] for r in late} == {False: 301, True: 200}
    windows = quality.pipeline.store.windows(quality.job)
    again = {window.window_start: window for window in windows if window.sequence == 2}
    assert [*again] == [window.window_start for window in judged.first_windows[:3]]
    assert all(w.record is not None and w.record["late"] is True for w in again.values())
    assert [window.sequence for window in windows] == [2, 2, 2, 1, 1, 1, 1]


def test_a_rule_that_stops_the_job_leaves_its_batch_accounted_for(judged: JudgedTopic) -> None:
    negative = sum(
        b"-1.0" in (sent.value or b"") for sent in rows(200, SEED + 1, first=300, seconds=30)
    )
    assert negative > 0
    assert f"negative on {negative} rows" in judged.stopped_by
    assert judged.outcomes_at_stop == judged.expected_at_stop.outcomes
    outcomes = judged.quality.pipeline.outcomes("quality")
    assert outcomes["accepted"] == judged.outcomes_at_stop["accepted"] + 1


@pytest.mark.parametrize(
    "point", [Point.AFTER_KEYS, *(pytest.param(p, marks=pytest.mark.slow) for p in POINTS)]
)
def test_a_batch_broken_off_at_any_point_counts_once(quality: QualityJob, point: Point) -> None:
    pipeline = quality.pipeline
    declare_rules(pipeline, RULES + UNIQUE, on_fail="dead_letter")
    twice = [row(n, key=f"k{n % 40}", second=n, partition=n % 2, amount=n - 3) for n in range(60)]
    pipeline.produce([*twice, *BAD])
    struck = fail_at(point)
    with pytest.raises(InjectedFaultError):
        pipeline.process("quality", struck)
    assert struck.hits
    # The broken batch is finished first, then comes a new one, on another session.
    pipeline.produce([row(100, second=70, partition=0)])
    pipeline.process("quality")

    again = {r["id"]: int(r["n"]) for r in quality.sql(SEEN_TWICE)}
    assert quality.statuses() == {"NEGATIVE": 3, "INVALID": 20, "VALID": 38}
    assert again == {}
    assert pipeline.outcomes("quality") == {
        "accepted": 58, "dead_letter": 3, "refused": 1, "tombstone": 1
    }  # fmt: skip
    assert sorted(code for code, _, _ in quality.dead_letters()) == [
        *["dq_negative"] * 3,
        "not_json",
    ]
    assert max(quality.dead_letters().values()) == 1
    held = {count.rule: (count.n, count.matched) for count in quality.counts()}
    assert held == {"negative": (3, 3), "twice": (20, 20)}
    assert sum(n for (_, name), n in quality.windows().items() if name == "rows") == 61
    assert quality.sql("SELECT count(*) FROM lake.dq.keys_{t}")[0][0] == 61


SEEN_TWICE = """
SELECT concat(kafka_partition, ':', kafka_offset) AS id, count(*) AS n
FROM lake.dq.results_{t} GROUP BY 1 HAVING count(*) > 1"""


@pytest.mark.parametrize("most", [pytest.param(7, marks=pytest.mark.slow), 30])
def test_batch_cuts_do_not_change_the_number_of_duplicates(quality: QualityJob, most: int) -> None:
    pipeline = quality.pipeline
    pipeline.settings = pipeline.settings.model_copy(update={"max_offsets_per_batch": most})
    declare_rules(pipeline, UNIQUE)
    pipeline.produce(row(n, key=f"k{n % 11}", second=n, partition=n % 2) for n in range(44))
    # The same keys two hours later are new ones; within the hour they are not.
    pipeline.produce(row(n, key=f"k{n % 11}", second=7_200 + n, partition=n % 2) for n in range(22))
    pipeline.process("quality")
    assert quality.statuses() == {"INVALID": 44, "VALID": 22}
    assert len(pipeline.ledger("quality")) >= 66 / most


@pytest.mark.slow
def test_a_lost_ledger_is_made_again_with_what_the_rules_found(
    quality: QualityJob, tmp_path: Path
) -> None:
    pipeline = quality.pipeline
    declare_rules(pipeline, on_fail="dead_letter")
    pipeline.produce([*rows(100, SEED), *BAD])
    pipeline.process("quality")
    pipeline.produce(rows(50, SEED, first=100))
    pipeline.process("quality")
    before = quality.results()
    with OpsStore.open(f"sqlite:///{tmp_path}/other.db") as store:
        assert rebuild_on(pipeline.session, pipeline.settings, store).added == 2
        pipeline.store, kept = store, pipeline.store
        again = quality.results()
        pipeline.store = kept
    assert again == before == ExpectedResults.of(pipeline.records(), {"negative": "dead_letter"})


AGGREGATES = """
      - {name: enough_rows, measure: row_count, min: 3}
      - {name: nulls, measure: null_rate, field: amount, max: 0.4, severity: WARN}
      - {name: by_action, measure: row_count, group_by: [action], max: 2}
"""


@pytest.mark.slow
def test_aggregates_are_held_against_their_limits_over_all_batches_of_a_window(
    quality: QualityJob,
) -> None:
    pipeline = quality.pipeline
    declare_rules(pipeline, aggregates=AGGREGATES)
    pipeline.produce([row(1, second=1, amount=None), row(2, second=2, action="DELETE")])
    pipeline.process("quality")
    (before,) = pipeline.store.windows(quality.job)
    assert before.record is not None
    assert before.record["rows"] == 2
    pipeline.produce([row(3, second=3), row(4, second=4), row(5, second=60)])
    pipeline.process("quality")
    first = pipeline.store.windows(quality.job)[0]
    assert first.record is not None
    assert first.sequence == 2
    told = {
        (v["name"], (v["group"] or {}).get("action")): (v["value"], v["failed"])
        for v in first.record["verdicts"]
    }
    assert told == {
        ("enough_rows", None): (4.0, False),
        ("nulls", None): (0.25, False),
        ("by_action", "UPSERT"): (3.0, True),
        ("by_action", "DELETE"): (1.0, False),
    }
    assert first.record["rows"] == 4


@pytest.mark.slow
def test_event_times_that_no_calendar_has_neither_stop_the_job_nor_carry_its_clock_along(
    quality: QualityJob,
) -> None:
    pipeline = quality.pipeline
    declare_rules(pipeline, UNIQUE)
    odd = ["+12345-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"]
    values = [
        f'{{"id": "o{n}", "action": "x", "amount": 1, "at": "{at}"}}' for n, at in enumerate(odd)
    ]
    pipeline.produce([*(value.encode() for value in values), row(1, key="k", second=1)])
    pipeline.process("quality")
    pipeline.produce([row(2, key="k", second=2)])
    pipeline.process("quality")
    assert quality.statuses() == {"VALID": 4, "INVALID": 1}
    assert pipeline.outcomes("quality") == {"accepted": 5}
    assert quality.sql("SELECT count(*) FROM lake.dq.keys_{t}")[0][0] == 5
