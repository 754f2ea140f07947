"""Records that become no rows: each is counted once, by an observation or by a pass of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.dataset_events import events
from tests.support.oracle import expected_bronze
from tests.support.pipeline import TYPES, Pipeline, ProducerRecord, produce_in_transaction

from headgate.core.engine.staging import RecordCounter, RecordCounts
from headgate.core.sql.script import Script
from headgate.errors import OperationError

COUNT = 3_000
BAD, GONE = b"not JSON", None
# The first and the last offset, some in a row, and one alone.
ODD: dict[int, bytes | None] = {
    0: BAD,
    COUNT - 1: GONE,
    127: BAD,
    128: GONE,
    **dict.fromkeys(range(320, 352), BAD),
    1_777: BAD,
}


def records(first: int) -> list[ProducerRecord]:
    made = events(11, COUNT, first=first)
    return [
        ProducerRecord(ODD.get(number, value), b"k", partition=partition)
        for partition in (0, 1)
        for number, value in enumerate(made)
    ]


@pytest.fixture
def observes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each batch that had to count its records had observed them."""
    observes: list[bool] = []
    count = RecordCounter.count

    def note(self: RecordCounter, written: int, offsets: int) -> RecordCounts:
        observes.append(self.observes)
        return count(self, written, offsets)

    monkeypatch.setattr(RecordCounter, "count", note)
    return observes


def test_every_odd_record_is_found_wherever_it_stands(
    new_pipeline: Callable[..., Pipeline], observes: list[bool]
) -> None:
    pipeline = new_pipeline(partitions=2)
    for first in (0, COUNT):
        pipeline.produce(records(first))
        pipeline.process("bronze")
    sound = [record for record in pipeline.records() if record.value not in (BAD, GONE)]
    assert pipeline.bronze() == expected_bronze(sound, TYPES)
    tombstones = 4 * sum(value is GONE for value in ODD.values())
    refused = 4 * len(ODD) - tombstones
    accepted = 4 * COUNT - tombstones - refused
    assert pipeline.outcomes() == {
        "accepted": accepted,
        "refused": refused,
        "tombstone": tombstones,
    }
    assert len(pipeline.dead_letters()) == refused == len(pipeline.dead_letters_on_topic())
    assert observes == [False, True]


def test_a_batch_of_odd_records_alone_is_counted_too(
    new_pipeline: Callable[..., Pipeline], observes: list[bool]
) -> None:
    """Three batches: all records are odd, every second, and every sixth."""
    pipeline = new_pipeline(partitions=1)
    odd = (BAD, GONE)
    made: list[bytes | None] = []
    for every in (1, 2, 6):
        batch = [odd[n // every % 2] if n % every == 0 else v for n, v in enumerate(events(3, 300))]
        made += batch
        pipeline.produce(ProducerRecord(value, b"k") for value in batch)
        pipeline.process("bronze")
        expected = {
            "accepted": len(made) - made.count(BAD) - made.count(GONE),
            "refused": made.count(BAD),
            "tombstone": made.count(GONE),
        }
        assert pipeline.outcomes() == {name: n for name, n in expected.items() if n}
    assert len(pipeline.dead_letters()) == made.count(BAD) == len(pipeline.dead_letters_on_topic())
    assert observes == [False, True, True]


def test_rows_that_stand_there_twice_hide_no_record(
    new_pipeline: Callable[..., Pipeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A template that a person edited can do that; the batch stops instead of adding up wrongly."""
    one, twice = Script.one, ""

    def edited(self: Script, name: str) -> str:
        statement, read = one(self, name), f"{pipeline.name}_read"
        both = f"(SELECT * FROM {read} UNION ALL SELECT * FROM {read} WHERE {twice})"
        return statement.replace(f"FROM {read}", f"FROM {both}") if name == "accept" else statement

    pipeline = new_pipeline(partitions=1)
    monkeypatch.setattr(Script, "one", edited)
    values: list[bytes | None] = [*events(4, 300)]
    for number in (2, 100, 200, 250):
        values[number] = BAD
    pipeline.produce(ProducerRecord(value, b"k") for value in values)
    for twice in ("TRUE", "kafka_offset = 5", "kafka_offset IN (99, 100, 101)"):
        with pytest.raises(OperationError, match=r"wrote more rows|does not add up"):
            pipeline.process("bronze")
        assert not pipeline.bronze(), twice
        assert not pipeline.ledger(), twice


def test_a_batch_in_transactions_has_its_bad_records_found_and_its_gaps_counted(
    new_pipeline: Callable[..., Pipeline], observes: list[bool]
) -> None:
    pipeline = new_pipeline(partitions=1)
    bootstrap = str(pipeline.settings.bootstrap_servers)
    values = events(5, 2_000)
    values[700] = BAD
    produce_in_transaction(bootstrap, pipeline.topic, values[:1_000], commit=True)
    produce_in_transaction(bootstrap, pipeline.topic, values[1_000:1_010], commit=False)
    produce_in_transaction(bootstrap, pipeline.topic, values[1_010:], commit=True)
    pipeline.process("bronze")
    assert pipeline.outcomes() == {"accepted": 1_989, "refused": 1}
    assert [letter.origin[-1] for letter in pipeline.dead_letters()] == [700]
    assert sum(row.gaps for row in pipeline.ledger()) == 10 + 3
    assert observes == [False]
