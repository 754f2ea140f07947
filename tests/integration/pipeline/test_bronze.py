"""Bronze holds every record that can be a row, exactly as it was sent, and accounts for the rest.

One pipeline goes through a stream and four batch runs; the tests look at what was there after each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from tests.support.dataset_events import compact, event, events
from tests.support.oracle import Record, expected_bronze
from tests.support.pipeline import (
    TYPES,
    DeadLetter,
    Pipeline,
    ProducerRecord,
    produce_in_transaction,
)
from tests.support.streams import stream_job

from headgate.core.kafka.topics import Topics
from headgate.core.ledger.model import LedgerRow
from headgate.local.process import wait_until

GOOD = compact(event(Random(1), 1))
FIELDS = event(Random(2), 2)
# One record, written in every sound way.
WAYS = (
    json.dumps(FIELDS).encode(),
    json.dumps(FIELDS, indent=2).encode(),
    b"\n\t " + compact(FIELDS) + b" \r\n",
    compact(dict(reversed(FIELDS.items()))),
    compact({**FIELDS, "unknown": {"a": [1, {"b": None}]}, "_unparsed": "x"}),
    compact({"id": 5}),
    compact({"ID": 5, "At": "x"}),
    b"{}",
    compact({**FIELDS, "name": "\x00\u2028\ufeff"}),
    compact({**FIELDS, "name": "x" * 100_000}),
    json.dumps({**FIELDS, "name": "😀"}).encode(),
    compact(FIELDS).replace(b'"id"', b'"\\u0069d"'),
    compact({**FIELDS, "name": "\\ud800 is only text here"}),
)
TRACED = ProducerRecord(b'{"id": "\xff\xfe', b"key\xff", [("trace", b"\x00\x01")], partition=1)
LARGE = b"x" * 2_000_000
# The last one alone fits into the dead-letter topic.
TOO_LARGE = (
    ProducerRecord(LARGE, b"value"),
    ProducerRecord(b"no", LARGE),
    ProducerRecord(b"no", b"headers", [("h", b"y" * 950_000)]),
    ProducerRecord(b"no"),
)
TOMBSTONES = (ProducerRecord(None, b"gone"), ProducerRecord(None, b"gone too"))
BAD = {b"not JSON", TRACED.value, LARGE, b"no"}
NewPipeline = Callable[..., Pipeline]


@dataclass(frozen=True)
class Seen:
    """What there was after a run."""

    records: list[Record]
    rows: Counter[tuple[Any, ...]]
    outcomes: dict[str, int]
    ledger: tuple[LedgerRow, ...]
    letters: list[DeadLetter]

    @classmethod
    def of(cls, pipeline: Pipeline) -> Seen:
        return cls(
            pipeline.records(),
            pipeline.bronze(),
            pipeline.outcomes(),
            pipeline.ledger(),
            pipeline.dead_letters(),
        )

    @property
    def expected(self) -> Counter[tuple[Any, ...]]:
        """The rows of every record that is sound."""
        sound = [r for r in self.records if r.value is not None and r.value not in BAD]
        return expected_bronze(sound, TYPES)


@dataclass(frozen=True)
class Runs:
    """The runs of one pipeline, in their order."""

    pipeline: Pipeline
    stream: Seen
    nothing_new: Seen
    mixed: Seen
    letters_on_topic: list[Record]
    more_partitions: Seen
    wrong_format: Seen


@pytest.fixture(scope="module")
def runs(new_module_pipeline: NewPipeline) -> Runs:
    pipeline = new_module_pipeline(largest=12_000_000)
    pipeline.produce(ProducerRecord(value, b"k%d" % n) for n, value in enumerate(events(7, 500)))
    with stream_job(pipeline, "bronze") as running:
        running.wait_until_read(500)
    stream = Seen.of(pipeline)
    pipeline.process("bronze")
    nothing_new = Seen.of(pipeline)
    pipeline.produce([*events(9, 50, first=500), b"not JSON", *WAYS])
    pipeline.produce([*TOMBSTONES, TRACED, *TOO_LARGE])
    pipeline.process("bronze")
    mixed, letters_on_topic = Seen.of(pipeline), pipeline.dead_letters_on_topic()
    add_partitions(str(pipeline.settings.bootstrap_servers), pipeline.topic, 4)
    pipeline.produce(
        ProducerRecord(value, partition=n % 4) for n, value in enumerate(events(2, 40, 600))
    )
    pipeline.process("bronze")
    more_partitions = Seen.of(pipeline)
    pipeline.declare(ts_format="dd/MM/yyyy HH:mm")
    pipeline.produce([GOOD])
    pipeline.process("bronze")
    wrong_format = Seen.of(pipeline)
    return Runs(
        pipeline, stream, nothing_new, mixed, letters_on_topic, more_partitions, wrong_format
    )


def test_rows_equal_what_was_sent_and_a_second_run_adds_nothing(runs: Runs) -> None:
    for seen in (runs.stream, runs.nothing_new):
        assert len(seen.records) == 500
        assert seen.rows == seen.expected
        assert seen.outcomes == {"accepted": 500}
        assert len(seen.ledger) == 1


def test_a_batch_run_goes_on_where_a_stream_stopped(runs: Runs) -> None:
    assert runs.mixed.rows == runs.mixed.expected
    assert [row.read for row in runs.mixed.ledger] == [500, 50 + 1 + len(WAYS) + 2 + 1 + 4]


def test_new_records_are_appended_and_refused_ones_and_tombstones_are_counted(runs: Runs) -> None:
    assert runs.mixed.rows > runs.stream.rows
    accepted = 500 + 50 + len(WAYS)
    assert runs.mixed.outcomes == {"accepted": accepted, "refused": 6, "tombstone": 2}
    codes = Counter(letter.code for letter in runs.mixed.letters)
    assert codes == {"not_json": 5, "not_utf8": 1}


def test_a_record_may_be_written_in_any_sound_way(runs: Runs) -> None:
    assert {letter.value for letter in runs.mixed.letters} == BAD
    ways = [record for record in runs.mixed.records if record.value in WAYS]
    assert len(ways) == len(WAYS)
    assert expected_bronze(ways, TYPES) <= runs.mixed.rows


def test_a_wrong_ts_format_makes_dead_letters_that_name_the_field(runs: Runs) -> None:
    (letter,) = [letter for letter in runs.wrong_format.letters if letter.value == GOOD]
    assert letter.code == "wrong_type"
    assert "at = 2024-01-" in letter.reason
    assert runs.wrong_format.rows == runs.more_partitions.rows


def test_a_dead_letter_keeps_the_original_bytes_and_says_where_it_came_from(runs: Runs) -> None:
    (row,) = [letter for letter in runs.mixed.letters if letter.value == TRACED.value]
    (sent,) = [record for record in runs.letters_on_topic if record.value == TRACED.value]
    assert row.key == sent.key == TRACED.key
    assert [dict(header) for header in row.headers or ()] == [{"key": "trace", "value": b"\0\1"}]
    assert sent.headers[0] == ("trace", b"\x00\x01")
    (source,) = [record for record in runs.mixed.records if record.value == TRACED.value]
    facts = {key: value for key, value in sent.headers[1:] if value is not None}
    assert {key: value.decode() for key, value in facts.items()} == {
        "headgate.topic": runs.pipeline.topic,
        "headgate.partition": "1",
        "headgate.offset": str(source.offset),
        "headgate.timestamp": "2024-01-01 10:00:00",
        "headgate.job": f"bronze-{runs.pipeline.name}",
        "headgate.revision": sent.header("headgate.revision"),
        "headgate.reason_code": "not_utf8",
        "headgate.reason": row.reason,
    }


def test_a_record_too_large_for_the_dead_letter_topic_is_a_reference_there(runs: Runs) -> None:
    values = sorted((letter.value for letter in runs.mixed.letters), key=len)
    assert values[:3] == [b"no"] * 3
    assert values[-1] == LARGE
    assert len(runs.letters_on_topic) == 6
    references = [r for r in runs.letters_on_topic if r.header("headgate.reference")]
    assert {r.header("headgate.reference") for r in references} == {"lake.headgate.dead_letters"}
    assert [r.value for r in references] == [None] * 3
    assert {r.header("headgate.reason_code") for r in references} == {"not_json"}


def test_a_partition_that_is_added_later_is_read_from_its_beginning(runs: Runs) -> None:
    assert {record.partition for record in runs.more_partitions.records} == {0, 1, 2, 3}
    assert runs.more_partitions.rows == runs.more_partitions.expected
    added = runs.more_partitions.outcomes["accepted"] - runs.mixed.outcomes["accepted"]
    assert added == 40


def test_batches_without_a_row_and_what_transactions_leave_are_accounted_for(
    new_module_pipeline: NewPipeline,
) -> None:
    pipeline = new_module_pipeline()
    pipeline.produce([b"no", b"not this either"])
    pipeline.process("bronze")
    pipeline.produce(
        [ProducerRecord(None, b"a"), ProducerRecord(None, b"b"), ProducerRecord(None, b"c")]
    )
    pipeline.process("bronze")
    assert [dict(row.outcomes) for row in pipeline.ledger()] == [
        {"accepted": 0, "refused": 2},
        {"accepted": 0, "tombstone": 3},
    ]
    assert pipeline.bronze().total() == 0

    bootstrap = str(pipeline.settings.bootstrap_servers)
    produce_in_transaction(bootstrap, pipeline.topic, events(1, 10), commit=True)
    produce_in_transaction(bootstrap, pipeline.topic, events(2, 5, 10), commit=False)
    pipeline.process("bronze")
    assert pipeline.bronze().total() == 10
    produce_in_transaction(bootstrap, pipeline.topic, events(3, 5, 20), commit=False)
    pipeline.process("bronze")
    produce_in_transaction(bootstrap, pipeline.topic, events(4, 10, 30), commit=True)
    pipeline.process("bronze")
    assert sorted(row[0] for row in pipeline.bronze()) == [*range(10), *range(30, 40)]
    assert pipeline.outcomes() == {"accepted": 20, "refused": 2, "tombstone": 3}
    assert sum(row.gaps for row in pipeline.ledger()) == 10 + 4  # aborted, and the ends of each


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.create_partitions([NewPartitions(topic, total)]).values():
        future.result(60)
    assert wait_until(lambda: Topics(bootstrap).found(topic).partitions == total, 60)
