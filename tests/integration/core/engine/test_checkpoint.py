"""A checkpoint that is lost or damaged is noticed before a record is read, and mended exactly."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.dataset_events import events
from tests.support.oracle import expected_bronze
from tests.support.pipeline import TYPES, InjectedFaultError, Pipeline, create_topic, fail_at
from tests.support.run_requests import REPAIR

from headgate.core.engine.batch import Point
from headgate.core.kafka.topics import Topics
from headgate.errors import BatchRefusedError
from headgate.pipeline.bronze import repair_bronze

Damage = Callable[[Path], None]


def put(file: Path, content: bytes) -> None:
    """As if it had always been so: without the checksum that Hadoop keeps beside it."""
    file.write_bytes(content)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def remove(file: Path) -> None:
    file.unlink()
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def _everything_lost(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint)


def _metadata_lost(checkpoint: Path) -> None:
    remove(checkpoint / "metadata")


def _metadata_cut(checkpoint: Path) -> None:
    put(checkpoint / "metadata", b'{"id":"12')


def _offsets_emptied(checkpoint: Path) -> None:
    put(checkpoint / "offsets" / "1", b"")


def _offsets_cut(checkpoint: Path) -> None:
    file = checkpoint / "offsets" / "1"
    put(file, file.read_bytes()[:-5])


def _offsets_garbled(checkpoint: Path) -> None:
    put(checkpoint / "offsets" / "1", b"\x00\xff" * 40)


def _offsets_flipped_under_their_checksum(checkpoint: Path) -> None:
    file = checkpoint / "offsets" / "1"
    file.write_bytes(file.read_bytes().replace(b"batchWatermarkMs", b"batchWatermarkMz"))


def _offsets_of_another_topic(checkpoint: Path) -> None:
    file = checkpoint / "offsets" / "1"
    lines = file.read_bytes().splitlines()
    put(file, b"\n".join([*lines[:-1], b'{"another-topic":{"0":1,"1":1}}']))


def _offsets_changed(checkpoint: Path) -> None:
    file = checkpoint / "offsets" / "1"
    *head, last = file.read_text().splitlines()
    ends = {topic: {p: n - 1 for p, n in of.items()} for topic, of in json.loads(last).items()}
    put(file, "\n".join([*head, json.dumps(ends)]).encode())


def _last_offsets_lost(checkpoint: Path) -> None:
    remove(checkpoint / "offsets" / "1")


def _first_offsets_lost(checkpoint: Path) -> None:
    remove(checkpoint / "offsets" / "0")


def _last_batch_lost(checkpoint: Path) -> None:
    remove(checkpoint / "offsets" / "1")
    remove(checkpoint / "commits" / "1")


def _all_commits_lost(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "commits")


def _commit_garbled(checkpoint: Path) -> None:
    put(checkpoint / "commits" / "1", b"v1\n{not")


def _start_lost(checkpoint: Path) -> None:
    remove(checkpoint / "headgate-start.json")


def _start_garbled(checkpoint: Path) -> None:
    put(checkpoint / "headgate-start.json", b"[]")


REFUSED: tuple[Damage, ...] = (
    _everything_lost,
    _metadata_lost,
    _metadata_cut,
    _offsets_emptied,
    _offsets_cut,
    _offsets_garbled,
    _offsets_flipped_under_their_checksum,
    _offsets_of_another_topic,
    _offsets_changed,
    _last_offsets_lost,
    _first_offsets_lost,
    _last_batch_lost,
    _all_commits_lost,
    _commit_garbled,
    _start_lost,
    _start_garbled,
)


def _last_commit_lost(checkpoint: Path) -> None:
    """As after a kill between our outcome and Spark's commit."""
    newest = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    remove(checkpoint / "commits" / str(newest))


def _sources_lost(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "sources")


def expected(pipeline: Pipeline) -> object:
    return expected_bronze(pipeline.records(), TYPES)


def repair(pipeline: Pipeline) -> dict[str, int]:
    repaired = repair_bronze(pipeline.session, pipeline.settings, pipeline.store, pipeline.name)
    return dict(repaired.offsets)


def test_damage_is_refused_in_words_and_repaired_without_loss_or_repetition(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    for first in (0, 100):
        pipeline.produce(events(first, 100, first))
        pipeline.process("bronze")
    ends = dict(pipeline.ledger()[-1].range.end)
    before = pipeline.bronze()
    pipeline.produce(events(3, 50, 200))
    sound = tmp_path / "sound"
    shutil.copytree(pipeline.checkpoint, sound)
    for damage in REFUSED:
        shutil.rmtree(pipeline.checkpoint)
        shutil.copytree(sound, pipeline.checkpoint)
        damage(pipeline.checkpoint)
        with pytest.raises(BatchRefusedError) as refused:
            pipeline.process("bronze")
        words = (damage.__name__, refused.value.what, refused.value.why)
        print(*words)
        assert refused.value.fix.startswith(f"headgate job repair bronze-{pipeline.name}"), words
        assert pipeline.bronze() == before, words
        assert repair(pipeline) == ends, words
    # And by a run of the job, as the command asks for it.
    shutil.rmtree(pipeline.checkpoint)
    with pytest.raises(BatchRefusedError, match="is lost"):
        pipeline.process("bronze")
    assert "goes on at" in pipeline.process("bronze", request=REPAIR).progress.words
    pipeline.process("bronze")
    assert pipeline.bronze() == expected(pipeline)
    assert pipeline.outcomes() == {"accepted": 250}


def test_damage_that_loses_nothing_is_passed_over(pipeline: Pipeline) -> None:
    pipeline.produce(events(1, 20))
    pipeline.process("bronze")
    for batches, damage in enumerate((_last_commit_lost, _sources_lost), 2):
        damage(pipeline.checkpoint)
        pipeline.produce(events(batches, 20, 20 * batches))
        pipeline.process("bronze")
        assert pipeline.bronze() == expected(pipeline), damage.__name__
        assert len(pipeline.ledger()) == batches, damage.__name__


@pytest.mark.parametrize(
    "point", [Point.AFTER_INTENT, pytest.param(Point.AFTER_DEAD_LETTERS, marks=pytest.mark.slow)]
)
def test_a_batch_under_way_survives_the_loss_of_its_checkpoint(
    pipeline: Pipeline, point: Point
) -> None:
    pipeline.produce([*events(1, 20), b"not a record"])
    with pytest.raises(InjectedFaultError):
        pipeline.process("bronze", fail_at(point))
    shutil.rmtree(pipeline.checkpoint)
    pipeline.produce(events(2, 20, 20))
    repair(pipeline)
    pipeline.process("bronze")
    sound = [record for record in pipeline.records() if record.value != b"not a record"]
    assert pipeline.bronze() == expected_bronze(sound, TYPES)
    assert pipeline.outcomes() == {"accepted": 40, "refused": 1}
    assert [row.read for row in pipeline.ledger()] == [21, 20]
    assert pipeline.store.open_intents(f"bronze-{pipeline.name}") == ()


def test_a_batch_on_which_a_revision_failed_is_judged_by_the_next_one(pipeline: Pipeline) -> None:
    pipeline.produce(events(1, 20))
    with pytest.raises(InjectedFaultError):
        pipeline.process("bronze", fail_at(Point.AFTER_STAGING))
    pipeline.declare(ts_format="dd.MM.yyyy")
    pipeline.process("bronze")
    assert pipeline.outcomes() == {"refused": 20}


def test_a_topic_that_was_made_again_is_noticed(pipeline: Pipeline) -> None:
    pipeline.produce(events(1, 20))
    pipeline.process("bronze")
    first = expected(pipeline)
    pipeline.produce(events(2, 10, 20))
    with pytest.raises(InjectedFaultError):
        pipeline.process("bronze", fail_at(Point.AFTER_INTENT))
    bootstrap = str(pipeline.settings.bootstrap_servers)
    Topics(bootstrap).delete([pipeline.topic])
    create_topic(bootstrap, pipeline.topic, 2, 1_048_588)
    pipeline.produce(events(3, 30, 100))
    with pytest.raises(BatchRefusedError, match="deleted and made again"):
        pipeline.process("bronze")
    repair(pipeline)
    pipeline.process("bronze")
    assert pipeline.bronze() == first + expected(pipeline)  # pyright: ignore[reportOperatorIssue]  # both are counters
    assert pipeline.outcomes() == {"accepted": 50}
