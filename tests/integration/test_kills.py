"""kill -9 of the engine at each point of a batch, then the same command again: nothing shows."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.dataset_events import events
from tests.support.oracle import expected_bronze
from tests.support.pipeline import TYPES, Pipeline, ProducerRecord

from headgate.checks.certificate import broken
from headgate.engine.faults import Point

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
SHORT = (CHAIN[0], CHAIN[2], CHAIN[3])


@pytest.mark.timeout(1200)  # four engines at the least are started, one after the other
@pytest.mark.parametrize("chain", [SHORT, pytest.param(CHAIN, marks=pytest.mark.slow)])
def test_an_engine_killed_at_every_point_loses_and_repeats_nothing(
    pipeline: Pipeline, tmp_path: Path, chain: Sequence[tuple[Point, int, int]]
) -> None:
    produced = 0
    for point, time, records in chain:
        produce(pipeline, produced, records)
        produced += records
        kill(pipeline, point, time, tmp_path / str(point))
    run(pipeline)

    records = pipeline.records()
    sound = [record for record in records if record.value not in (None, BAD)]
    assert len(sound) == produced
    assert pipeline.bronze() == expected_bronze(sound, TYPES)
    assert len(pipeline.dead_letters()) == len(chain)
    each = len(chain)
    assert pipeline.outcomes() == {"accepted": produced, "refused": each, "tombstone": each}
    sent = {letter.header("headgate.offset") for letter in pipeline.dead_letters_on_topic()}
    assert len(sent) == len(chain)
    (only_run,) = pipeline.store.runs(f"bronze-{pipeline.name}")
    assert only_run.restarts == len(chain)

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
