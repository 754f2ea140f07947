"""A batch of a pair broken off at any point, a checkpoint lost or damaged: nothing shows in the verdicts."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.pipeline import InjectedFaultError, Pipeline, ProducerRecord, fail_at
from tests.support.reconcile_job import Message, Pair, cloud, onprem, random_messages
from tests.support.run_requests import REPAIR

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Point
from headgate.core.lake.table import ManagedTable
from headgate.errors import BatchRefusedError

POINTS = (
    Point.AFTER_INTENT,
    Point.AFTER_STAGING,
    Point.AFTER_DEAD_LETTERS,
    Point.AFTER_STATES,
    Point.AFTER_PARTIALS,
    Point.AFTER_PUBLISH,
    Point.BEFORE_OUTCOME,
)
# One before and one after the states are in their table.
QUICK = (Point.AFTER_DEAD_LETTERS, Point.AFTER_PUBLISH)
BAD = Message("onprem", ProducerRecord(b"not json", partition=1))


def broken_off(pair: Pair, point: Point, number: int) -> None:
    """Halves of pairs before it and in it, and a record that cannot take part."""
    pair.send(onprem(f"a{number}"), cloud(f"b{number}"), BAD)
    met = fail_at(point)
    with pytest.raises(InjectedFaultError):
        pair.process(met)
    assert met.hits == 1
    pair.send(cloud(f"a{number}", read=3), onprem(f"b{number}", read=4))


def check(pair: Pair, rounds: int) -> None:
    """What was written adds up, each change once."""
    assert pair.outcomes() == {"accepted": 4 * rounds, "refused": rounds}
    ids = pair.sql("SELECT id FROM lake.dq.results_{t} WHERE settled")
    assert len({row["id"] for row in ids}) == len(ids) >= 2 * rounds
    records = (
        "SELECT sum(n) AS n FROM (SELECT max(records) AS n FROM lake.dq.states_{t} GROUP BY pk)"
    )
    assert pair.sql(records)[0]["n"] == 4 * rounds
    assert broken(pair.pipeline.certify()) == ()


def test_a_batch_broken_off_before_and_after_its_states_is_finished(pipeline: Pipeline) -> None:
    pair = Pair(pipeline)
    for number, point in enumerate(QUICK):
        broken_off(pair, point, number)
    pair.process()
    assert pair.verdicts() == pair.expected()
    check(pair, len(QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_batch_broken_off_at_any_point_is_finished(pipeline: Pipeline, point: Point) -> None:
    pair = Pair(pipeline)
    broken_off(pair, point, 0)
    pair.process()
    assert pair.verdicts() == pair.expected()
    check(pair, 1)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # eight engines are started, one after the other
def test_an_engine_killed_at_each_point_loses_nothing(pipeline: Pipeline, tmp_path: Path) -> None:
    pair = Pair(pipeline)
    for number, point in enumerate(POINTS):
        pair.send(onprem(f"a{number}"), cloud(f"b{number}"), BAD)
        witness = tmp_path / str(point)
        # A restarted engine finishes the broken batch first, and passes most points in doing so.
        fault = f"{point}@{1 if number == 0 else 2}:{witness}"
        command = pipeline.command("job", "run", pair.job, fault=fault)
        _, talk = command.communicate(timeout=180)
        assert command.returncode == -signal.SIGKILL, (point, talk)
        assert witness.read_text() == point
        pair.send(cloud(f"a{number}", read=3), onprem(f"b{number}", read=4))
    run = pipeline.command("job", "run", pair.job)
    _, talk = run.communicate(timeout=180)
    assert run.returncode == 0, talk
    pair.process()
    assert pair.verdicts() == pair.expected()
    check(pair, len(POINTS))


@pytest.mark.slow
def test_a_lost_checkpoint_is_mended_from_the_table_with_no_state(pipeline: Pipeline) -> None:
    pair = Pair(pipeline)
    pair.send(onprem("a"), cloud("b"), onprem("c"), cloud("c"))
    with pytest.raises(InjectedFaultError):
        pair.process(fail_at(Point.AFTER_STATES))
    shutil.rmtree(folder(pair))
    pair.send(cloud("a", read=3), onprem("b", read=4))
    with pytest.raises(BatchRefusedError, match="is lost"):
        pair.process()
    pair.process(request=REPAIR)
    pair.process()
    assert pair.statuses() == {"a": "MATCH", "b": "MATCH", "c": "MATCH"}
    assert pair.verdicts() == pair.expected()
    assert pair.outcomes() == {"accepted": 6}


@pytest.mark.slow
@pytest.mark.parametrize("point", [Point.AFTER_STATES, Point.AFTER_PARTIALS])
def test_a_batch_done_again_without_its_checkpoint_says_what_it_said(
    pipeline: Pipeline, point: Point
) -> None:
    """All is long past its deadline: judged as a whole, halves that waited would be settled at once."""
    pair = Pair(pipeline)
    pair.send(onprem("old"), onprem("new", 8_000), cloud("new", 8_000))
    pair.process()
    pair.send(onprem("newer", 8_100), cloud("newer", 8_100))
    pair.process()
    pair.send(onprem("a", 8_200), cloud("b", 8_200), onprem("c", 8_200), cloud("c", 8_200))
    pair.send(onprem("odd", 8_200), cloud("odd", 8_200, number=2), onprem("late", 100))
    with pytest.raises(InjectedFaultError):
        pair.process(fail_at(point))
    wanted = staged(pair)
    shutil.rmtree(folder(pair))
    pair.send(cloud("a", 8_200, read=8_203), onprem("b", 8_200, read=8_204))
    pair.process(request=REPAIR)
    pair.process()
    again = pair.sql(
        f"SELECT {TOLD} FROM lake.dq.results_{{t}} WHERE processing_time = timestamp_micros("
        f"{wanted[0]['at']}L)"
    )
    assert sorted(again, key=str) == sorted(wanted, key=str)
    assert {row["pk"] for row in again if not row["settled"]} >= {"a", "b"}
    assert pair.verdicts() == pair.expected()
    assert pair.counters()["late_records"] == 1
    assert broken(pair.pipeline.certify()) == ()


TOLD = "pk, dq_status, verdict, settled, origin, id, unix_micros(processing_time) AS at"


def staged(pair: Pair) -> list[Any]:
    """What the batch that was broken off would have told."""
    table = ManagedTable(pair.pipeline.session, f"lake.dq.results_{pair.name}")
    last = max(table.look().snapshots(), key=lambda snapshot: snapshot.timestamp_ms)
    return table.appended(last).selectExpr(*TOLD.split(", ")).collect()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["offsets", "commits", "metadata", "state", "cut"])
def test_a_damaged_checkpoint_is_refused_or_goes_on_exactly(
    pipeline: Pipeline, damage: str
) -> None:
    pair = Pair(pipeline)
    messages = random_messages(5, 40)
    for part in (messages[:30], messages[30:60]):
        pair.send(*part)
        pair.process()
    spoil(folder(pair), damage)
    pair.send(*messages[60:])
    told = refusal(pair)
    if told is not None:
        assert "headgate job repair" in told
        pair.process(request=REPAIR)
        pair.process()
    assert pair.verdicts() == pair.expected()
    assert sum(pair.outcomes().values()) == len(messages)


def refusal(pair: Pair) -> str | None:
    """What is said where the job does not go on; None where it does."""
    try:
        pair.process()
    except BatchRefusedError as refused:
        return refused.fix
    return None


def spoil(checkpoint: Path, damage: str) -> None:
    if damage == "cut":
        newest = max((checkpoint / "offsets").iterdir(), key=lambda file: file.name)
        newest.write_text("v1\n")
        (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    elif damage == "metadata":
        (checkpoint / damage).unlink()
    else:
        shutil.rmtree(checkpoint / damage)


def folder(pair: Pair) -> Path:
    return Path(pair.pipeline.settings.checkpoints) / pair.job
