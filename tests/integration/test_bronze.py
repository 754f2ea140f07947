"""Bronze holds every record that can be a row, exactly as it was sent, and accounts for the rest."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from random import Random

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from tests.support.dataset_events import compact, event, events
from tests.support.oracle import expected_bronze
from tests.support.pipeline import TYPES, Pipeline, ProducerRecord, produce_in_transaction

from headgate.engine.topics import Topics
from headgate.jobs.bronze import run_bronze
from headgate.local.process import wait_until
from headgate.store.model import RunState

GOOD = compact(event(Random(1), 1))
NewPipeline = Callable[..., Pipeline]


def test_rows_equal_what_was_sent_and_a_second_run_adds_nothing(pipeline: Pipeline) -> None:
    pipeline.produce(ProducerRecord(value, b"k%d" % n) for n, value in enumerate(events(7, 500)))
    pipeline.process("bronze")
    expected = expected_bronze(pipeline.records(), TYPES)
    assert pipeline.bronze() == expected
    assert pipeline.outcomes() == {"accepted": 500}
    pipeline.process("bronze")
    assert pipeline.bronze() == expected
    assert len(pipeline.ledger()) == 1


def test_new_records_are_appended_and_refused_ones_and_tombstones_are_counted(
    pipeline: Pipeline,
) -> None:
    pipeline.produce(events(8, 100))
    pipeline.process("bronze")
    more = [ProducerRecord(value) for value in events(9, 50, first=100)]
    pipeline.produce(
        [
            *more,
            ProducerRecord(None, b"gone"),
            ProducerRecord(b"not JSON"),
            ProducerRecord(None, b"gone too"),
        ]
    )
    pipeline.process("bronze")
    sound = [r for r in pipeline.records() if r.value not in (None, b"not JSON")]
    assert pipeline.bronze() == expected_bronze(sound, TYPES)
    assert pipeline.outcomes() == {"accepted": 150, "refused": 1, "tombstone": 2}
    assert [row.read for row in pipeline.ledger()] == [100, 53]
    assert [letter.code for letter in pipeline.dead_letters()] == ["not_json"]


def test_batches_without_a_single_row_are_accounted_for(pipeline: Pipeline) -> None:
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
    pipeline.produce([GOOD])
    pipeline.process("bronze")
    assert pipeline.bronze().total() == 1


def test_a_record_may_be_written_in_any_sound_way(pipeline: Pipeline) -> None:
    fields = event(Random(2), 2)
    ways = [
        json.dumps(fields).encode(),
        json.dumps(fields, indent=2).encode(),
        b"\n\t " + compact(fields) + b" \r\n",
        compact(dict(reversed(fields.items()))),
        compact({**fields, "unknown": {"a": [1, {"b": None}]}, "_unparsed": "x"}),
        compact({"id": 5}),
        compact({"ID": 5, "At": "x"}),
        b"{}",
        compact({**fields, "name": "\x00\u2028\ufeff"}),
        compact({**fields, "name": "x" * 100_000}),
        json.dumps({**fields, "name": "😀"}).encode(),
        compact(fields).replace(b'"id"', b'"\\u0069d"'),
        compact({**fields, "name": "\\ud800 is only text here"}),
    ]
    pipeline.produce(ways)
    pipeline.process("bronze")
    assert [(letter.code, letter.value) for letter in pipeline.dead_letters()] == []
    assert pipeline.bronze() == expected_bronze(pipeline.records(), TYPES)


def test_a_wrong_ts_format_makes_dead_letters_that_name_the_field(
    new_pipeline: NewPipeline,
) -> None:
    pipeline = new_pipeline(ts_format="dd/MM/yyyy HH:mm")
    pipeline.produce([GOOD])
    pipeline.process("bronze")
    (letter,) = pipeline.dead_letters()
    assert letter.code == "wrong_type"
    assert "at = 2024-01-" in letter.reason


def test_a_dead_letter_keeps_the_original_bytes_and_says_where_it_came_from(
    pipeline: Pipeline,
) -> None:
    bad = b'{"id": "\xff\xfe'
    pipeline.produce([ProducerRecord(bad, b"key\xff", [("trace", b"\x00\x01")], partition=1)])
    pipeline.process("bronze")
    (row,) = pipeline.dead_letters()
    (sent,) = pipeline.dead_letters_on_topic()
    assert (row.key, row.value) == (sent.key, sent.value) == (b"key\xff", bad)
    assert [dict(header) for header in row.headers or ()] == [{"key": "trace", "value": b"\0\1"}]
    assert sent.headers[0] == ("trace", b"\x00\x01")
    run = pipeline.store.runs(f"bronze-{pipeline.name}")[0]
    facts = {key: value for key, value in sent.headers[1:] if value is not None}
    assert {key: value.decode() for key, value in facts.items()} == {
        "headgate.topic": pipeline.topic,
        "headgate.partition": "1",
        "headgate.offset": "0",
        "headgate.timestamp": "2024-01-01 10:00:00",
        "headgate.job": run.job,
        "headgate.revision": sent.header("headgate.revision"),
        "headgate.reason_code": "not_utf8",
        "headgate.reason": row.reason,
    }


def test_a_record_too_large_for_the_dead_letter_topic_is_a_reference_there(
    new_pipeline: NewPipeline,
) -> None:
    pipeline = new_pipeline(largest=12_000_000)
    large = b"x" * 2_000_000
    headed = [("h", b"y" * 950_000)]
    pipeline.produce(
        [
            ProducerRecord(large, b"value"),
            ProducerRecord(b"no", large),
            ProducerRecord(b"no", b"headers", headed),
            ProducerRecord(b"no"),
        ]
    )
    pipeline.process("bronze")
    assert sorted((letter.value for letter in pipeline.dead_letters()), key=len) == [b"no"] * 3 + [
        large
    ]
    on_topic = pipeline.dead_letters_on_topic()
    assert len(on_topic) == 4
    references = [r for r in on_topic if r.header("headgate.reference")]
    assert {r.header("headgate.reference") for r in references} == {"lake.headgate.dead_letters"}
    assert [r.value for r in references] == [None] * 3
    assert {r.header("headgate.reason_code") for r in on_topic} == {"not_json"}


def test_a_batch_run_goes_on_where_a_stream_stopped(pipeline: Pipeline) -> None:
    pipeline.produce(events(1, 40))
    run = pipeline.ask_for("bronze", "streaming")
    context = pipeline.context(run)
    stream = threading.Thread(target=run_bronze, args=(context,))
    stream.start()
    assert wait_until(lambda: bool(pipeline.ledger()), 240)
    context.stop.set()
    stream.join(120)
    assert not stream.is_alive()
    pipeline.store.move(run.job, run.number, RunState.CANCELED)
    pipeline.produce(events(2, 40, 40))
    pipeline.process("bronze")
    assert pipeline.bronze() == expected_bronze(pipeline.records(), TYPES)
    assert [row.read for row in pipeline.ledger()] == [40, 40]


def test_a_partition_that_is_added_later_is_read_from_its_beginning(pipeline: Pipeline) -> None:
    pipeline.produce(events(1, 20))
    pipeline.process("bronze")
    add_partitions(str(pipeline.settings.bootstrap_servers), pipeline.topic, 4)
    pipeline.produce(
        ProducerRecord(value, partition=n % 4) for n, value in enumerate(events(2, 40, 20))
    )
    pipeline.process("bronze")
    assert pipeline.bronze() == expected_bronze(pipeline.records(), TYPES)
    assert pipeline.outcomes() == {"accepted": 60}


def test_what_transactions_leave_in_the_topic_is_counted_as_gaps(pipeline: Pipeline) -> None:
    bootstrap = str(pipeline.settings.bootstrap_servers)
    produce_in_transaction(bootstrap, pipeline.topic, events(1, 10), commit=True)
    produce_in_transaction(bootstrap, pipeline.topic, events(2, 5, 10), commit=False)
    pipeline.process("bronze")
    produce_in_transaction(bootstrap, pipeline.topic, events(3, 5, 20), commit=False)
    pipeline.process("bronze")
    produce_in_transaction(bootstrap, pipeline.topic, events(4, 10, 30), commit=True)
    pipeline.process("bronze")
    assert sorted(row[0] for row in pipeline.bronze()) == [*range(10), *range(30, 40)]
    assert pipeline.outcomes() == {"accepted": 20}
    assert sum(row.gaps for row in pipeline.ledger()) == 10 + 4  # aborted, and the ends of each


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.create_partitions([NewPartitions(topic, total)]).values():
        future.result(60)
    assert wait_until(lambda: Topics(bootstrap).found(topic).partitions == total, 60)
