"""What notebooks, SQL files and the report of a reconciled pair ask has answers on the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.pipeline import Pipeline, ProducerRecord
from tests.support.reconcile_job import Message, Pair, cloud, onprem, tombstone

from headgate.quality.notebook import compile_notes
from headgate.quality.revision import declared_table
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.reconcile.report.gather import Wanted, reconcile_report
from headgate.reconcile.report.model import ReconcileReport
from headgate.reconcile.report.render import last_report, write_report
from headgate.reconcile.row_diff import Difference, RowDifference


@pytest.fixture
def pair(pipeline: Pipeline) -> Pair:
    found = Pair(pipeline)
    found.send(
        onprem("same"), cloud("same", read=2),
        onprem("other"), cloud("other", number=2),
        onprem("absent"), cloud("absent", number=None),
        onprem("late"), cloud("late", read=700),
        onprem("gone", version=1, action="DELETE"), tombstone("cloud", "gone", read=3),
        Message("onprem", ProducerRecord(b"not json", partition=1)),
    )  # fmt: skip
    found.process()
    return found


def report(pair: Pair, before: Path | None = None) -> ReconcileReport:
    judged = declared_table(pair.pipeline.settings.root, pair.name)
    wanted = Wanted(
        judged,
        judged.table.reconcile or Reconcile(),
        before,
        lambda keys: [
            RowDifference(key, "different", (Difference("col1", "case", "'a'", "'A'"),))
            for key in keys
        ],
    )
    return reconcile_report(pair.pipeline.settings, pair.pipeline.store, wanted)


@pytest.mark.slow
def test_every_query_of_the_notebooks_runs_and_the_report_says_the_same(
    pair: Pair, tmp_path: Path
) -> None:
    judged = declared_table(pair.pipeline.settings.root, pair.name)
    asked = [query for note in compile_notes(judged) for query in note.queries]
    answers = {query.title: pair.sql(query.sql) for query in asked}
    assert len(asked) >= 15
    standing = {row["dq_status"]: row["cnt"] for row in answers["How the keys stand"]}
    assert standing == {
        "MATCH": 1, "MISMATCH": 1, "MISSING_CLOUD": 1, "LATE_MATCH": 1, "DELETE_EVENT": 1,
    }  # fmt: skip

    made = report(pair)
    assert {line.status: line.keys for line in made.statuses} == standing
    assert made.adds_up
    assert [line.kind for line in made.kinds.lines] == ["case"]
    assert [line.code for line in made.letters] == ["not_json"]
    assert [line.key for line in made.repair.shown] == ["absent", "other"]
    assert made.points[-1].statuses == standing

    write_report(tmp_path, made)
    pair.send(cloud("absent", version=800, read=800))
    pair.process()
    second = report(pair, last_report(tmp_path))
    assert second.since is not None
    assert [(m.before, m.after) for m in second.since.moves] == [("MISSING_CLOUD", "LATE_MATCH")]
    assert replace(second, since=None).adds_up
