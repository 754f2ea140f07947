"""A quality job as a stream: a new revision takes over between two batches, and nothing shows of it."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.integration.quality import RULES, Quality, declare, row, rows
from tests.integration.spark import Pipeline
from tests.integration.test_streaming import Stream

from headgate.checks.job_view import view
from headgate.jobs.quality_marks import running_mark
from headgate.jobs.rules_deploy import deploy, plan_deployment
from headgate.store.ops import utc_now

LARGE = """
      - {name: large, when: "amount > 90", description: more than usual,
         emit: {dq_status: LARGE, metric: large, severity: WARN}}
"""


@pytest.fixture
def quality(pipeline: Pipeline) -> Quality:
    pipeline.settings = pipeline.settings.model_copy(update={"trigger_seconds": 0.5})
    return Quality(pipeline)


class QualityStream(Stream):
    """The same of a quality job."""

    def until_judged(self, records: int) -> None:
        from headgate.local.process import wait_until

        def there() -> bool:
            return sum(row.read for row in self.pipeline.ledger("quality")) >= records

        assert wait_until(lambda: there() or not self.alive, 60)
        assert self.error is None
        assert there()


def test_a_deployed_revision_judges_from_the_next_batch_on(quality: Quality) -> None:
    pipeline, store = quality.pipeline, quality.pipeline.store
    declare(pipeline)
    pipeline.produce(rows(50, 1))
    run = pipeline.ask_for("quality", "streaming")
    stream = QualityStream(pipeline, pipeline.context(run))
    try:
        stream.until_judged(50)
        first = run.revision
        declare(pipeline, RULES + LARGE)
        planned = plan_deployment(pipeline.settings, store, pipeline.name)
        assert planned.changes == ("new rule large",)
        assert planned.streaming
        assert deploy(pipeline.settings, store, planned)
        running = store.read_mark(running_mark(quality.job))
        assert running is not None
        assert running.value == planned.revision != first
        pipeline.produce([row(n, amount=95, second=n, partition=0) for n in range(50, 60)])
        stream.until_judged(60)
    finally:
        stream.end()

    judged = {r.revisions for r in pipeline.ledger("quality")}
    assert judged == {(first,), (planned.revision,)}
    by = {r["revision"]: r["n"] for r in quality.sql(BY_REVISION)}
    assert by == {first: 50, planned.revision: 10}
    # Windows that were open keep what the revision before counted into them.
    sums: Counter[str] = Counter()
    for (_, name), n in quality.windows().items():
        sums[name] += n
    assert sums["rows"] == 60
    assert sums["large"] == 10
    wide = quality.sql("SELECT sum(`dq.test.large`) AS n FROM dq_metrics_{t}")
    assert wide[0]["n"] == 10
    seen = view(run, store.newest_batches(quality.job, 60), None, 0.5, utc_now())
    last = seen.last[-1]
    assert getattr(last, "revision", None) == planned.revision[:12]
    assert "0:" in str(getattr(last, "offsets", ""))


BY_REVISION = "SELECT revision, count(*) AS n FROM lake.dq.results_{t} GROUP BY 1"
