"""What the hasher decides without Kafka or Cassandra."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.quality.record_parser import read_path
from headgate.quality.spec.loader import load_rules
from headgate.reconcile.cassandra.rows import Row
from headgate.reconcile.hasher.consumer import Offsets
from headgate.reconcile.hasher.lookups import Lookups, Table
from headgate.reconcile.hasher.metrics import Counts, HasherMetrics
from headgate.reconcile.hasher.publisher import Publisher, stamp_of
from headgate.reconcile.hasher.readings import (
    CloudForm,
    Reading,
    Rereads,
    differs,
    newest,
    reading_of,
)
from headgate.reconcile.hasher.requests import (
    Asked,
    EventForm,
    Known,
    Record,
    Skipped,
    asked_of,
    behind_the_frame,
    changed_of,
    event_form,
    key_of,
    request_of,
)

AT = datetime(2026, 3, 1, 12, 0, 0, 123_000, tzinfo=UTC)
PATH = read_path("partitionColumns[type='PK'].value")
FORM = EventForm("pk", PATH, "action", "hash_onprem", "hash_version", "event_ts")
NO_LOOKUPS = Lookups(cast("Table", None))
CLOUD = CloudForm("pk", "hash_cloud", "hash_version", "cloud_ts", 2)


def record(value: object, key: bytes | None = b"k") -> Record:
    body = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return Record("topic1", 0, 7, AT, key, body)


def event(**changes: object) -> dict[str, object]:
    fields = {
        "event_id": "e",
        "hash_onprem": "ab",
        "hash_version": 2,
        "partitionColumns": [{"type": "PK", "value": "k1"}, {"type": "CK", "value": "x"}],
        "event_ts": "2026-03-01T12:00:00.123456Z",
    }
    return {name: v for name, v in {**fields, **changes}.items() if v is not None}


def asked_for(**changes: object) -> Asked:
    found = asked_of(record(event(**changes)), FORM)
    assert isinstance(found, Asked)
    return found


def test_an_event_asks_for_the_key_on_its_path_at_its_version() -> None:
    asked = asked_for()
    assert (asked.key, asked.hash, asked.hash_version, asked.deleted) == ("k1", "ab", 2, False)
    assert asked.version == datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)


def test_an_event_without_a_time_has_the_version_of_its_record() -> None:
    assert asked_for(event_ts=None).version == AT


@pytest.mark.parametrize("far", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_a_time_that_no_calendar_has_in_utc_gives_way_to_the_records_own(far: str) -> None:
    assert asked_for(event_ts=far).version == AT


ROOT = Path(__file__).parents[3]
SOUND = json.loads((ROOT / "tests/fixtures/reconcile/sound.json").read_text("utf-8"))
TOPIC1 = load_rules(ROOT / "rules/topic1.yml", {}).value.table("business")


@pytest.mark.parametrize("name", SOUND)
def test_the_hasher_answers_what_the_job_takes_and_nothing_else(name: str) -> None:
    """What the job says of these records is asked of Spark in test_reconcile_sql.py."""
    assert TOPIC1.reconcile is not None
    case = SOUND[name]
    found = asked_of(record(case["text"].encode()), event_form(TOPIC1, TOPIC1.reconcile, PATH))
    assert isinstance(found, Asked) == case["sound"]
    if isinstance(found, Asked):
        own = datetime.fromisoformat(case["version"]) if case["version"] else AT
        assert (found.key, found.version) == (case["key"], own)


@pytest.mark.parametrize("head", [b"\x00\x00\x00\x00\x07", b"\x00\xff\xff\xff\xff"])
def test_a_framed_event_is_asked_for_whatever_schema_it_names_as_the_job_takes_it(
    head: bytes,
) -> None:
    """What the job says of framed values is asked of Spark in test_rules_framed.py."""
    asked = asked_of(record(head + json.dumps(event()).encode()), FORM, behind_the_frame)
    assert isinstance(asked, Asked)
    assert asked.key == "k1"


@pytest.mark.parametrize(
    "value",
    [
        json.dumps(event()).encode(),
        b"\x01\x00\x00\x00\x01" + json.dumps(event()).encode(),
        b"\x00\x00\x00\x00\x01\x04ab",
        b"\x00\x00\x00\x00\x01",
        b"\x00\x00\x00\x01",
        b"",
    ],
)
def test_a_value_without_a_frame_or_without_json_behind_it_is_left_to_the_job(
    value: bytes,
) -> None:
    assert asked_of(record(value), FORM, behind_the_frame) == Skipped("not_json")


def test_a_time_without_zone_is_utc() -> None:
    assert asked_for(event_ts="2026-03-01 12:00:00.123").version == AT


def test_a_tombstone_asks_whether_the_key_of_its_record_is_gone() -> None:
    asked = asked_of(record(None, "schlüssel".encode()), FORM)
    assert isinstance(asked, Asked)
    assert (asked.key, asked.deleted, asked.version) == ("schlüssel", True, AT)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"no json", "not_json"),
        (b"[1]", "not_json"),
        (b"\xff", "not_json"),
        (b"[" * 100_000, "not_json"),
        (event(event_ts="yesterday"), "wrong_type"),
        (event(partitionColumns=[]), "missing_pk"),
        (event(partitionColumns="k1"), "missing_pk"),
        (event(partitionColumns=[{"type": "PK", "value": "\ud800"}]), "not_json"),
        (event(action="TRUNCATE"), "unknown_action"),
        (event(action="delete"), "unknown_action"),
    ],
)
def test_what_cannot_take_part_is_left_to_the_job(value: object, why: str) -> None:
    assert asked_of(record(value), FORM) == Skipped(why)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("action", ["CREATE", "UPDATE", "UPSERT", None])
def test_an_action_that_keeps_the_row_expects_it(action: str | None) -> None:
    assert not asked_for(action=action).deleted


def test_s1_94_a_delete_is_looked_up_as_gone() -> None:
    assert asked_for(action="DELETE").deleted


@pytest.mark.parametrize(
    ("path", "data", "key"),
    [
        ("id", {"id": 7}, "7"),
        ("id", {"id": 1.50}, "1.50"),
        ("id", {"id": True}, "true"),
        ("id", {"id": {"a": "b"}}, '{"a":"b"}'),
        ("a.b", {"a": {"b": "x"}}, "x"),
        ("a.b", {"a": 1}, None),
        ("a[1].b", {"a": [{"b": "x"}, {"b": "y"}]}, "y"),
        ("a[2].b", {"a": [{"b": "x"}]}, None),
        ("a[t='PK'].v", {"a": [{"t": "PK", "v": 1}, {"t": "PK", "v": 2}]}, '["1","2"]'),
        ("a[t='PK'].v", {"a": [{"t": "CK", "v": 1}]}, None),
        ("a[t='PK'].v", {"a": [{"t": "PK"}]}, None),
    ],
)
def test_a_key_is_found_as_the_rule_set_finds_it(path: str, data: object, key: str | None) -> None:
    text = json.dumps(data).replace("1.5", "1.50")
    loaded = json.loads(text, parse_int=str, parse_float=str)
    assert key_of(loaded, read_path(path)) == key


def test_a_request_names_a_key_and_a_version() -> None:
    asked = request_of(record({"pk": "k9", "event_ts": "2026-03-01T12:00:00.123Z"}))
    assert isinstance(asked, Asked)
    assert (asked.key, asked.version, asked.expects) == ("k9", AT, False)
    assert request_of(record(b"{", b"k")) == Skipped("not_json")
    assert request_of(record({}, None)) == Skipped("missing_pk")


def test_a_reading_is_written_with_the_declared_names() -> None:
    assert CLOUD.fields(Reading("k", None, AT)) == {
        "pk": "k",
        "hash_cloud": None,
        "hash_version": 2,
        "cloud_ts": "2026-03-01T12:00:00.123Z",
    }


def test_s1_111_a_partial_row_is_hashed_and_counted() -> None:
    row = Row({"col1": None, "col2": "x"}, AT, None)
    reading = reading_of(asked_for(), row, lambda values: f"h{len(values)}", frozenset({"col1"}))
    assert reading == Reading("k1", "h2", asked_for().version, partial=True)
    assert not reading_of(asked_for(), row, lambda _: "h", frozenset({"col2"})).partial


def test_a_row_without_its_version_column_has_its_greatest_writetime() -> None:
    written = AT + timedelta(microseconds=5)
    row = Row({"col1": "a"}, None, written)
    assert reading_of(asked_for(), row, lambda _: "h", frozenset()).version == written


def test_a_row_that_comes_after_it_was_missed_is_no_older_than_the_reading_that_missed_it() -> None:
    asked = replace(asked_for(), version=AT + timedelta(microseconds=456))
    missed = reading_of(asked, None, lambda _: "h", frozenset())
    for own, version in ((AT, asked.version), (AT - timedelta(milliseconds=1),) * 2):
        found = reading_of(asked, Row({"col1": "a"}, own, None), lambda _: "h", frozenset())
        assert found.version == version
        assert (found.version >= missed.version) == (own == AT)


@pytest.mark.parametrize(
    ("changes", "hashed", "version", "again"),
    [
        ({}, "ab", AT, False),
        ({}, "cd", AT, True),
        ({}, None, AT, True),
        ({}, "ab", AT - timedelta(milliseconds=1), True),
        ({"hash_version": 1}, "cd", AT, False),
        ({"hash_onprem": None}, "cd", AT, False),
        ({"action": "DELETE"}, "ab", AT, True),
        ({"action": "DELETE"}, None, AT, False),
    ],
)
def test_only_what_differs_or_is_older_is_read_again(
    changes: dict[str, object], hashed: str | None, version: datetime, again: bool
) -> None:
    assert differs(asked_for(**changes), Reading("k1", hashed, version), 2) is again


def test_of_those_who_wait_for_one_key_the_newest_version_counts() -> None:
    old, new = asked_for(event_ts="2026-01-01T00:00:00Z"), asked_for()
    assert newest((new, old)) is new
    assert newest((old, new)) is new


def test_a_key_is_read_again_once_when_its_time_has_come() -> None:
    rereads = Rereads(10)
    rereads.plan(asked_for(), Reading("k1", "cd", AT), now=0)
    assert list(rereads.due(9.9)) == []
    (again,) = rereads.due(10)
    assert (again.key, again.before, again.expects) == ("k1", Known("cd", AT), False)
    assert list(rereads.due(1000)) == []


def test_a_newer_event_of_a_key_takes_the_place_of_the_older_second_look() -> None:
    rereads = Rereads(10)
    rereads.plan(asked_for(), Reading("k1", "cd", AT), now=0)
    rereads.plan(asked_for(), Reading("k1", "ef", AT), now=5)
    assert list(rereads.due(10)) == []
    assert [again.before for again in rereads.due(15)] == [Known("ef", AT)]


def test_a_key_that_agrees_by_now_is_not_read_again() -> None:
    rereads = Rereads(10)
    rereads.plan(asked_for(), Reading("k1", "cd", AT), now=0)
    rereads.settle("k1")
    assert list(rereads.all_now()) == []


def test_second_looks_are_bounded_and_those_left_out_are_counted_and_said_once() -> None:
    said: list[str] = []
    rereads = Rereads(10, said.append, most=1)
    for n in range(3):
        key = [{"type": "PK", "value": f"k{n}"}]
        rereads.plan(asked_for(partitionColumns=key), Reading(f"k{n}", None, AT), now=0)
    assert (len(rereads), rereads.left_out, len(said)) == (1, 2, 1)
    metrics = HasherMetrics("business", "hasher-business", Counts(), NO_LOOKUPS, rereads)
    told = {family.metric.name: family.samples for family in metrics.families()}
    assert told["headgate_hasher_rereads_left_out_total"] == ((("business",), 2),)


@given(st.permutations(range(8)))
def test_an_offset_is_settled_only_when_all_before_it_are_done(order: list[int]) -> None:
    offsets, partition = Offsets(), ("t", 0)
    offsets.assign([partition])
    epoch = offsets.epoch(partition)
    for offset in range(8):
        offsets.begin(partition, offset)
    left = set(range(8))
    for offset in order:
        offsets.done(partition, offset, epoch)
        left.remove(offset)
        assert offsets.settled() == {partition: min(left, default=8)}


def test_what_comes_of_a_partition_that_was_given_away_moves_nothing() -> None:
    offsets, partition = Offsets(), ("t", 0)
    offsets.assign([partition])
    before = offsets.epoch(partition)
    offsets.begin(partition, 5)
    offsets.revoke([partition])
    offsets.assign([partition])
    offsets.begin(partition, 5)
    offsets.done(partition, 5, before)
    assert offsets.settled() == {partition: 5}
    assert not offsets.has(partition, before)


def test_the_end_of_a_partition_is_settled_though_no_record_stands_there() -> None:
    offsets, partition = Offsets(), ("t", 0)
    offsets.assign([partition])
    offsets.passed(partition, 12)
    assert offsets.untold() == {partition: 12}
    offsets.told({partition: 12})
    assert offsets.untold() == {}


def test_a_change_event_gives_the_key_and_whether_it_was_deleted() -> None:
    cell = {"value": "k1", "deletion_ts": None, "set": True}
    value = {"ts_ms": 1_772_366_400_123, "op": "d", "after": {"pk": cell, "col1": None}}
    asked = changed_of(record(value), ("pk",))
    assert isinstance(asked, Asked)
    assert (asked.key, asked.deleted, asked.version) == ("k1", True, AT)
    moments = {"ts_us": 1_772_366_399_000_001, "ts_ms": 1_772_366_399_000}
    timed = changed_of(record({**value, "source": moments}), ("pk",))
    assert isinstance(timed, Asked)
    assert timed.version == datetime(2026, 3, 1, 11, 59, 59, 1, tzinfo=UTC), "not of the sending"
    far = changed_of(record({**value, "source": {"ts_us": 10**18}}), ("pk",))
    assert isinstance(far, Asked)
    assert far.version == AT
    whole = changed_of(record({**value, "op": "u"}), ("pk", "pk"))
    assert isinstance(whole, Asked)
    assert (whole.key, whole.deleted) == ('["k1", "k1"]', False)
    assert changed_of(record({"op": "i", "after": {"pk": None}}), ("pk",)) == Skipped("missing_pk")


@pytest.mark.parametrize(
    ("deleted_at", "stamp"),
    [
        (AT, 1_772_366_400_123),
        (AT + timedelta(microseconds=1), 1_772_366_400_124),
        (datetime(1960, 1, 1, tzinfo=UTC), 1),
        (datetime(2099, 1, 1, tzinfo=UTC), 1_772_452_800_123),
    ],
)
def test_the_time_of_a_tombstone_is_not_before_what_it_deletes_nor_after_now(
    deleted_at: datetime, stamp: int
) -> None:
    assert stamp_of(deleted_at, AT + timedelta(days=1)) == stamp


class Taken:
    """Stands for the producer: keeps the times that records are sent with."""

    def __init__(self) -> None:
        self.times: dict[str, int] = {}

    def produce(self, topic: str, _value: object, key: bytes, **how: object) -> None:
        self.times[key.decode()] = cast("int", how["timestamp"])

    def __len__(self) -> int:
        return 0


def test_s1_149_a_tombstone_has_the_time_of_the_delete_and_a_reading_that_of_its_sending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = Taken()
    monkeypatch.setattr("headgate.reconcile.hasher.publisher.open_producer", lambda *_: taken)
    publisher = Publisher("", "hasher-business")
    publisher.bury("topic2", "dead", AT, [record({})], lambda: None)
    publisher.send("topic2", "alive", b"{}", [record({})], lambda: None)
    assert taken.times == {"dead": 1_772_366_400_123, "alive": 0}


def test_readings_that_wait_for_a_broker_that_is_away_are_known() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # nobody listens there
        publisher = Publisher(f"127.0.0.1:{nobody.getsockname()[1]}", "hasher-business")
        assert not publisher.is_waiting
        publisher.send("topic2", "k1", b"{}", [], lambda: None)
        until = time.monotonic() + 120
        # librdkafka counts an error that it has not reported yet beside the reading.
        while (publisher.is_waiting, publisher.unacknowledged) != (True, 1):
            assert time.monotonic() < until
            publisher.poll(0.1)
