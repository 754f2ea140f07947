"""A quality job as a stream: a new revision takes over between two batches, and nothing shows of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.pipeline import Pipeline, ProducerRecord
from tests.support.quality_job import (
    RULES,
    START,
    UNIQUE,
    QualityJob,
    declare_rules,
    row,
    rows,
    window_of,
)
from tests.support.streams import Stream

from headgate.core.engine.job_kind import KINDS
from headgate.core.engine.job_status import view
from headgate.core.ledger.ops_store import utc_now
from headgate.quality.deploy import deploy, plan_deployment
from headgate.quality.revision import dq_table
from headgate.quality.store import RuleStore

LARGE = """
      - {name: large, when: "amount > 90", description: more than usual,
         emit: {dq_status: LARGE, metric: large, severity: WARN}}
"""


@pytest.fixture
def quality(pipeline: Pipeline) -> QualityJob:
    pipeline.settings = pipeline.settings.model_copy(update={"trigger_seconds": 0.5})
    return QualityJob(pipeline)


def test_a_deployed_revision_judges_from_the_next_batch_on(quality: QualityJob) -> None:
    pipeline, store = quality.pipeline, quality.pipeline.store
    declare_rules(pipeline)
    before = rows(50, 1)
    after = [row(n, amount=95, second=n, partition=0) for n in range(50, 60)]
    pipeline.produce(before)
    run = pipeline.ask_for("quality", "streaming")
    stream = Stream(pipeline, pipeline.context(run))
    try:
        stream.wait_until_read(50)
        first = run.revision
        declare_rules(pipeline, RULES + LARGE + UNIQUE)
        planned = plan_deployment(pipeline.settings, store, pipeline.name)
        assert planned.changes == ("new rule large", "new rule twice")
        assert planned.streaming
        assert deploy(pipeline.settings, store, planned)
        running = store.part(RuleStore).running_revision(quality.job)
        assert running == planned.revision != first
        pipeline.produce(after)
        stream.wait_until_read(60)
    finally:
        stream.stop()

    judged = {r.revisions for r in pipeline.ledger("quality")}
    assert judged == {(first,), (planned.revision,)}
    by = {r["revision"]: r["n"] for r in quality.sql(BY_REVISION)}
    assert by == {first: 50, planned.revision: 10}
    # Windows that were open keep what the revision before counted into them.
    expected = {first: windows_of(before), planned.revision: windows_of(after)}
    shared = window_of(START + timedelta(seconds=55))
    assert expected[first][shared] > 0
    assert expected[planned.revision] == {shared: 10}
    counted: dict[str, dict[datetime, int]] = {first: {}, planned.revision: {}}
    for at, revision, n in quality.sql(WINDOWS):
        counted[revision][EPOCH + timedelta(microseconds=at)] = n
    assert counted == expected
    wide = quality.sql("SELECT unix_micros(window_start), `dq.test.large` AS n FROM dq_metrics_{t}")
    assert {EPOCH + timedelta(microseconds=at): n for at, n in wide if n} == {shared: 10}
    # A table that the new revision brought is told of without a restart.
    keys = dq_table("keys", pipeline.name)
    told = {r.revisions[0]: keys in r.snapshots for r in pipeline.ledger("quality")}
    assert told == {first: False, planned.revision: True}
    seen = view(KINDS[run.kind], run, store.newest_batches(quality.job, 60), 0.5, utc_now())
    last = seen.last[-1]
    assert getattr(last, "revision", None) == planned.revision[:12]
    assert "0:" in str(getattr(last, "offsets", ""))


def windows_of(sent: Sequence[ProducerRecord]) -> dict[datetime, int]:
    times = [datetime.fromisoformat(json.loads(one.value or b"")["at"]) for one in sent]
    return dict(Counter(window_of(at) for at in times))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WINDOWS = (
    "SELECT unix_micros(window_start), revision, sum(n) FROM lake.dq.partials_{t}"
    " WHERE kind = 'rows' GROUP BY 1, 2"
)
BY_REVISION = "SELECT revision, count(*) AS n FROM lake.dq.results_{t} GROUP BY 1"
