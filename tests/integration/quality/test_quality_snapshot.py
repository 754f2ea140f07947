"""Evaluations of snapshots: a table is judged by its current one, and anew when it has grown."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.pipeline import InjectedFaultError, Pipeline, fail_at
from tests.support.quality_job import QualityJob, declare_rules

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Point
from headgate.core.ledger.ranges import is_rebuild
from headgate.errors import DeclarationError
from headgate.quality.report.gather import Wanted, quality_report

ROWS = (
    "('a', 'UPSERT', 1, TIMESTAMP '2024-01-01 10:00:00Z'), ('b', 'DELETE', 1, NULL),"
    " (NULL, 'UPSERT', 1, NULL)"
)
STATUSES = {"VALID": 1, "DELETE_EVENT": 1}
OUTCOMES = {"accepted": 2, "refused": 1}


@pytest.fixture
def quality(pipeline: Pipeline) -> QualityJob:
    found = QualityJob(pipeline)
    found.sql("CREATE NAMESPACE IF NOT EXISTS lake.given")
    found.sql(
        "CREATE TABLE lake.given.{t} (id STRING, action STRING, amount DOUBLE, at TIMESTAMP)"
        " USING iceberg"
    )
    found.sql(f"INSERT INTO lake.given.{{t}} VALUES {ROWS}")
    declare_rules(pipeline, source=f"iceberg: given.{pipeline.name}", on_fail="dead_letter")
    return found


def test_a_table_is_judged_by_its_snapshot_and_anew_when_it_has_grown(quality: QualityJob) -> None:
    pipeline = quality.pipeline
    pipeline.process("quality")
    assert quality.statuses() == STATUSES
    assert pipeline.outcomes("quality") == OUTCOMES
    (row,) = pipeline.ledger("quality")
    assert row.range.source == f"table:given.{pipeline.name}"
    assert is_rebuild(row.range)

    quality.sql(
        "INSERT INTO lake.given.{t} VALUES ('c', 'UPSERT', -1, TIMESTAMP '2024-01-01 10:00:01Z')"
    )
    pipeline.process("quality")
    assert quality.statuses() == {"VALID": 1, "DELETE_EVENT": 1, "NEGATIVE": 1}
    assert pipeline.ledger("quality")[-1].outcomes == {
        "accepted": 2,
        "dead_letter": 1,
        "refused": 1,
    }
    codes = Counter(code for code, _, _ in quality.dead_letters().elements())
    assert codes == {"dq_missing_pk": 1, "dq_negative": 1}
    records = {w.sequence: w.record for w in pipeline.store.windows(quality.job) if w.record}
    assert records[2]["late"] is False
    first = quality_report(pipeline.settings, pipeline.store, Wanted(pipeline.name, run=1))
    assert (first.judged, first.clean, first.sample.rows) == (2, 1, ())
    assert "written the tables anew" in first.notes[0]
    newest = quality_report(pipeline.settings, pipeline.store, Wanted(pipeline.name))
    assert newest.adds_up, newest.sums
    assert [point.rows for point in newest.trend.points] == [2, 3]
    certificate = pipeline.certify()
    assert broken(certificate) == ()
    (account,) = certificate.rules
    words = {line.name: line.words for line in account.lines}
    assert words["dead letters"] == "dead letters of all evaluations 2, the last refused 2"


def test_columns_are_checked_before_a_run_and_each_dead_letter_is_written_once(
    quality: QualityJob,
) -> None:
    pipeline = quality.pipeline
    file = pipeline.settings.root / "rules" / f"{pipeline.name}.yml"
    sound = file.read_text()
    file.write_text(sound.replace("amount: DOUBLE", 'amount: "DECIMAL(10, 2)"'))
    with pytest.raises(DeclarationError) as caught:
        pipeline.process("quality")
    assert "amount: declared as DECIMAL(10, 2), and given." in caught.value.why
    assert "has DOUBLE" in caught.value.why
    assert pipeline.ledger("quality") == ()

    file.write_text(sound)
    for _ in range(2):
        pipeline.process("quality")
        assert pipeline.ledger("quality")[-1].outcomes == OUTCOMES
        assert Counter(code for code, _, _ in quality.dead_letters().elements()) == {
            "dq_missing_pk": 1
        }


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [
        Point.AFTER_INTENT,
        Point.AFTER_STAGING,
        Point.AFTER_DEAD_LETTERS,
        Point.AFTER_PARTIALS,
        Point.AFTER_PUBLISH,
        Point.BEFORE_OUTCOME,
    ],
)
def test_an_evaluation_broken_off_at_any_point_is_done_once(
    quality: QualityJob, point: Point
) -> None:
    with pytest.raises(InjectedFaultError):
        quality.pipeline.process("quality", fail_at(point))
    quality.pipeline.process("quality")
    assert quality.statuses() == STATUSES
    assert quality.pipeline.outcomes("quality") == OUTCOMES
    assert sum(n for (_, name), n in quality.windows().items() if name == "rows") == 2
    assert quality.dead_letters().total() == 1
    assert {count.rule: count.n for count in quality.counts()} == {"deleted": 1}
