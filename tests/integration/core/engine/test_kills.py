"""kill -9 of the engine at each point of a batch, then the same command again: nothing shows."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.dataset_events import events
from tests.support.oracle import expected_bronze
from tests.support.pipeline import TYPES, InjectedFaultError, Pipeline, ProducerRecord, fail_at

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Point

BAD = b"not a record"
# A restarted engine finishes the broken batch first and passes most points in doing so: the second
# time is in the batch that is new to it.
CHAIN = (
    (Point.AFTER_INTENT, 1, 300),
    (Point.MID_WRITE, 2, 10_000),
    (Point.AFTER_STAGING, 2, 300),
    (Point.AFTER_PUBLISH, 2, 300),
    (Point.BEFORE_OUTCOME, 2, 300),
    (Point.AFTER_DEAD_LETTERS, 1, 300),
)
ONE = ((Point.AFTER_PUBLISH, 1, 300),)
# In the order of a batch.
POINTS = (
    Point.AFTER_INTENT,
    Point.AFTER_STAGING,
    Point.AFTER_DEAD_LETTERS,
    Point.AFTER_PUBLISH,
    Point.BEFORE_OUTCOME,
)


@pytest.mark.timeout(1200)  # up to seven engines are started, one after the other
@pytest.mark.parametrize("chain", [ONE, pytest.param(CHAIN, marks=pytest.mark.slow)])
def test_an_engine_killed_at_every_point_loses_and_repeats_nothing(
    pipeline: Pipeline, tmp_path: Path, chain: Sequence[tuple[Point, int, int]]
) -> None:
    produced = 0
    for point, time, records in chain:
        produce(pipeline, produced, records)
        produced += records
        kill(pipeline, point, time, tmp_path / str(point))
    run(pipeline)

    check_rows(pipeline, produced, len(chain))
    (only_run,) = pipeline.store.runs(f"bronze-{pipeline.name}")
    assert only_run.restarts == len(chain)

    check_certificate(pipeline)


def test_a_batch_broken_off_at_every_point_in_turn_is_one_batch(pipeline: Pipeline) -> None:
    """Each run is broken off a step later than the one before, in this process."""
    produce(pipeline, 0, 300)
    for point in POINTS:
        blow = fail_at(point)
        with pytest.raises(InjectedFaultError):
            pipeline.process("bronze", blow)
        assert blow.hits == 1, point
    pipeline.process("bronze")
    check_rows(pipeline, 300, 1)
    assert [row.read for row in pipeline.ledger()] == [302]
    check_certificate(pipeline)


def check_rows(pipeline: Pipeline, produced: int, batches: int) -> None:
    """Every record has its outcome once; each batch has one bad record and one tombstone."""
    sound = [record for record in pipeline.records() if record.value not in (None, BAD)]
    assert len(sound) == produced
    assert pipeline.bronze() == expected_bronze(sound, TYPES)
    assert len(pipeline.dead_letters()) == batches
    assert pipeline.outcomes() == {"accepted": produced, "refused": batches, "tombstone": batches}
    sent = {letter.header("headgate.offset") for letter in pipeline.dead_letters_on_topic()}
    assert len(sent) == batches


def check_certificate(pipeline: Pipeline) -> None:
    pipeline.process("silver")
    assert broken(pipeline.certify()) == ()
    again = pipeline.recheck()
    assert again.returncode == 0, again.stdout


def produce(pipeline: Pipeline, first: int, records: int) -> None:
    values = [
        ProducerRecord(value, partition=n % 2)
        for n, value in enumerate(events(first, records, first))
    ]
    extra = [ProducerRecord(BAD, partition=0), ProducerRecord(None, b"gone", partition=0)]
    pipeline.produce([*values, *extra])


def kill(pipeline: Pipeline, point: Point, time: int, witness: Path) -> None:
    """The command, killed where its engine passes that point for the so many-th time."""
    command = pipeline.command("job", "run", "bronze", fault=f"{point}@{time}:{witness}")
    _, talk = command.communicate(timeout=300)
    assert command.returncode == -signal.SIGKILL, (point, talk)
    assert witness.read_text() == point


def run(pipeline: Pipeline) -> None:
    command = pipeline.command("job", "run", "bronze")
    _, talk = command.communicate(timeout=300)
    assert command.returncode == 0, talk
