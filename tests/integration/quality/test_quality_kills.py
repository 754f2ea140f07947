"""kill -9 of the engine at each point of a quality batch, then the same command again: nothing shows."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.pipeline import Pipeline, ProducerRecord
from tests.support.quality_job import RULES, UNIQUE, QualityJob, declare_rules, row

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Point

# A restarted engine finishes the broken batch first and passes most points in doing so: the second
# time is in the batch that is new to it.
EARLY = ((Point.AFTER_INTENT, 1), (Point.AFTER_STAGING, 2), (Point.AFTER_DEAD_LETTERS, 2))
LATE = (
    (Point.AFTER_PARTIALS, 1),
    (Point.AFTER_KEYS, 2),
    (Point.AFTER_PUBLISH, 2),
    (Point.BEFORE_OUTCOME, 2),
)
EACH = 40


@pytest.mark.slow
@pytest.mark.parametrize("chain", [EARLY, LATE], ids=["early", "late"])
def test_an_engine_killed_in_the_middle_of_windows_counts_every_row_once(
    pipeline: Pipeline, tmp_path: Path, chain: Sequence[tuple[Point, int]]
) -> None:
    quality = QualityJob(pipeline)
    declare_rules(pipeline, RULES + UNIQUE, on_fail="dead_letter")
    for number, (point, time) in enumerate(chain):
        produce(pipeline, number)
        kill(pipeline, point, time, tmp_path / str(point))
    run = pipeline.command("job", "run", quality.job)
    _, talk = run.communicate(timeout=120)
    assert run.returncode == 0, talk

    rounds = len(chain)
    judged = rounds * EACH
    assert pipeline.outcomes("quality") == {
        "accepted": judged - rounds, "dead_letter": rounds, "refused": rounds, "tombstone": rounds
    }  # fmt: skip
    results = pipeline.select(
        "dq_status, kafka_partition, kafka_offset", f"dq.results_{pipeline.name}"
    )
    assert len({place[1:] for place in results}) == judged
    assert len(results) == judged
    # Half of the keys of a round come twice, and the first one is negative.
    counts = {count.rule: (count.n, count.matched) for count in quality.counts()}
    assert counts == {
        "negative": (rounds, rounds),
        "twice": (EACH // 2 * rounds, EACH // 2 * rounds),
    }
    partials = pipeline.select("kind, sum(n)", f"dq.partials_{pipeline.name}", "TRUE GROUP BY kind")
    assert dict(partials) == {"rows": judged, "rule": rounds + EACH // 2 * rounds}
    assert pipeline.select("count(*)", f"dq.keys_{pipeline.name}") == [(judged,)]
    letters = quality.dead_letters()
    assert max(letters.values()) == 1
    assert letters.total() == 2 * rounds
    assert broken(pipeline.certify()) == ()


def produce(pipeline: Pipeline, number: int) -> None:
    """Rows of one open window: half of the keys come twice, one amount is negative."""
    made = [
        row(n, key=f"k{number}-{n % (EACH // 2)}", second=n / 10, partition=n % 2,
            amount=-1 if n == 0 else 1)
        for n in range(EACH)
    ]  # fmt: skip
    pipeline.produce(
        [
            *made,
            ProducerRecord(b"not a record", partition=0),
            ProducerRecord(None, b"x", partition=1),
        ]
    )


def kill(pipeline: Pipeline, point: Point, time: int, witness: Path) -> None:
    """The command, killed where its engine passes that point for the so many-th time."""
    fault = f"{point}@{time}:{witness}"
    command = pipeline.command("job", "run", f"quality-{pipeline.name}", fault=fault)
    _, talk = command.communicate(timeout=120)
    assert command.returncode == -signal.SIGKILL, (point, talk)
    assert witness.read_text() == point
