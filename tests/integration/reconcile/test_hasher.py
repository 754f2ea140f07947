"""The hasher against a real Cassandra and a real broker."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.hasher_harness import (
    AT,
    HasherHarness,
    RecordedProgress,
    event,
    hash_of,
    run_in_background,
)

from headgate.errors import SettingsError, UnavailableError
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.cassandra.session import Cassandra, Place, session_at
from headgate.reconcile.decision_table import judge
from headgate.reconcile.hasher.publisher import Publisher, ask_again, cloud_letters, keys_of
from headgate.reconcile.hasher.requests import reread_topic
from headgate.reconcile.state import Reading, merge, of_message


@pytest.fixture(scope="module")
def session(cassandra: Any) -> Iterator[Cassandra]:
    place = Place((cassandra.service.contact_points,), cassandra.service.port)
    with session_at(place) as opened:
        yield opened


@pytest.fixture
def harness(broker: Any, session: Cassandra, tmp_path: Path) -> HasherHarness:
    return HasherHarness(broker, session, tmp_path)


def test_each_event_has_the_hash_of_its_row_on_topic_2(harness: HasherHarness) -> None:
    keys = [f"k{n}" for n in range(500)]
    harness.write([{"pk": key} for key in keys])
    harness.send([event(key) for key in keys])
    done = harness.run()
    found = {reading["pk"]: reading for reading in harness.readings()}
    assert found.keys() == set(keys)
    assert all(found[key]["hash_cloud"] == hash_of(key) for key in keys)
    assert found["k7"] == {
        "pk": "k7",
        "hash_cloud": hash_of("k7"),
        "hash_version": 2,
        "cloud_ts": "2026-03-01T12:00:00.123Z",
    }
    assert (done.records, done.readings, done.dead_letters) == (500, 500, 0)


def test_s1_105_row_not_found_gives_a_null_hash_at_the_version_asked_for(
    harness: HasherHarness,
) -> None:
    harness.send([event("gone", event_ts="2026-03-01T12:00:00.123456Z")])
    done = harness.run()
    assert harness.readings() == [
        {
            "pk": "gone",
            "hash_cloud": None,
            "hash_version": 2,
            "cloud_ts": "2026-03-01T12:00:00.123456Z",
        }
    ]
    assert done.not_found == 1


def test_a_reading_is_keyed_by_the_bare_key_and_says_where_it_comes_from(
    harness: HasherHarness,
) -> None:
    harness.write([{"pk": "k1"}])
    harness.send([event("k1")])
    harness.run()
    (record,) = harness.records(harness.cloud_topic)
    assert record.key == b"k1"
    assert record.headers["headgate.topic"] == harness.topic
    assert record.headers["headgate.offset"] == "0"
    assert record.headers["headgate.job"] == "hasher-business"


def test_s1_106_the_job_says_missing_cloud_and_s1_107_counts_it(harness: HasherHarness) -> None:
    harness.send([event("gone")])
    harness.run()
    (reading,) = harness.readings()
    cloud = datetime.fromisoformat(reading["cloud_ts"])
    seen = [
        of_message("onprem", "gone", Reading(AT, 0, 0, hash_of("gone"), 2, "UPSERT", AT)),
        of_message("cloud", "gone", Reading(cloud, 0, 0, reading["hash_cloud"], 2, None, AT)),
    ]
    verdict = judge(merge(*seen), AT, Limits())
    assert (verdict.status, verdict.settled) == ("MISSING_CLOUD", True)
    assert str(verdict.metric).removeprefix("dq_") == "missing_cloud"


def test_s1_111_a_partial_row_is_hashed_with_its_nulls_and_s1_112_counted(
    harness: HasherHarness,
) -> None:
    harness.write([{"pk": "p1", "col1": None, "col4": None}, {"pk": "p2"}])
    harness.send([event("p1"), event("p2")])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.bind(("127.0.0.1", 0))
        agent.settimeout(60)
        done = harness.run(agent=f"127.0.0.1:{agent.getsockname()[1]}")
        assert agent.recv(2_000) == b"dq_partial_row:1|c|#table:business"
    found = {reading["pk"]: reading["hash_cloud"] for reading in harness.readings()}
    assert found == {"p1": hash_of("p1", col1=None, col4=None), "p2": hash_of("p2")}
    assert done.partial == 1


def test_a_row_without_last_updated_has_its_greatest_writetime(harness: HasherHarness) -> None:
    harness.write([{"pk": "w1", "last_updated": None}])
    harness.cassandra.execute(
        f"UPDATE {harness.table} USING TIMESTAMP 4102444800000001 SET col1 = 'new' WHERE pk = 'w1'"
    )
    harness.send([event("w1")])
    harness.run()
    assert harness.readings()[0]["cloud_ts"] == "2100-01-01T00:00:00.000001Z"


def test_a_confirmed_delete_is_a_null_hash_at_its_version(harness: HasherHarness) -> None:
    harness.write([{"pk": "alive"}])
    harness.send(
        [event("dead", action="DELETE", hash_onprem=None), event("alive", action="DELETE")]
    )
    harness.run()
    found = {reading["pk"]: reading["hash_cloud"] for reading in harness.readings()}
    assert found == {"dead": None, "alive": hash_of("alive")}


def test_s1_149_a_delete_propagates_as_a_tombstone_when_asked_to(harness: HasherHarness) -> None:
    harness.write([{"pk": "alive"}])
    deleted = [event("dead", action="DELETE"), ("buried", None), event("alive", action="DELETE")]
    harness.send([*deleted, event("missing")])
    done = harness.run(harness.plan(tombstones=True))
    records = harness.records(harness.cloud_topic)
    found = {record.key: record.value for record in records}
    times = {record.key: record.timestamp for record in records}
    assert times[b"dead"] == AT.timestamp() * 1000, "the time of the delete, not of the sending"
    assert (found[b"dead"], found[b"buried"]) == (None, None)
    assert found[b"alive"] is not None
    assert found[b"missing"] is not None  # not there, but nobody said it was deleted
    assert (done.tombstones, done.not_found) == (2, 1)


def test_what_cannot_take_part_is_counted_and_passed_over(harness: HasherHarness) -> None:
    harness.write([{"pk": "k1"}])
    broken = [(None, b"no json"), ("k1", {"action": "UPSERT"}), event("k1", action="MOVE")]
    harness.send([*broken, event("k1")])
    done = harness.run()
    assert done.skipped == {"not_json": 1, "missing_pk": 1, "unknown_action": 1}
    assert [reading["pk"] for reading in harness.readings()] == ["k1"]
    assert harness.run().records == 0  # the group stands at the end


def test_a_row_that_the_contract_cannot_hash_is_a_dead_letter_and_harms_no_other(
    harness: HasherHarness,
) -> None:
    harness.write([{"pk": f"k{n}"} for n in range(200)])
    far = 9_000_000_000_000_000
    harness.cassandra.execute(f"UPDATE {harness.table} SET col3 = {far} WHERE pk = 'k7'")
    harness.send([event(f"k{n}") for n in range(200)])
    done = harness.run()
    (letter,) = harness.records(harness.dead_letter_topic)
    assert letter.key == b"k7"
    assert json.loads(letter.value or b"") == event("k7")[1]
    assert letter.headers["headgate.stage"] == "Hash"
    assert letter.headers["headgate.reason_code"] == "dq_hash_refused"
    assert (done.readings, done.dead_letters, done.pauses) == (199, 1, 0)


def test_s1_78_letters_are_listed_and_their_keys_read_again_once_mended(
    harness: HasherHarness,
) -> None:
    harness.write([{"pk": "k1"}, {"pk": "k2"}])
    harness.cassandra.execute(f"UPDATE {harness.table} SET col3 = 9000000000000000 WHERE pk = 'k2'")
    harness.send([event("k1"), event("k2")])
    harness.run()
    (letter,) = cloud_letters(harness.plan())
    assert (letter.pk, letter.stage, letter.reason_code) == ("k2", "Hash", "dq_hash_refused")
    assert (letter.job, letter.version) == ("hasher-business", AT)
    harness.write([{"pk": "k2"}])
    ask_again(harness.plan(), keys_of([letter]))
    assert harness.run().dead_letters == 0
    assert {one["pk"]: one["hash_cloud"] for one in harness.readings()} == {
        "k1": hash_of("k1"),
        "k2": hash_of("k2"),
    }


def test_a_key_that_differs_is_read_once_more_and_sent_only_if_it_changed(
    harness: HasherHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = AT + timedelta(seconds=1)
    send, seen = Publisher.send, set[str]()

    def mended(self: Publisher, topic: str, key: str, *more: Any) -> None:
        """Replication catches up after the first reading, and before there can be a second."""
        if key == "slow" and key not in seen:
            harness.write([{"pk": "slow", "last_updated": later}])
        seen.add(key)
        send(self, topic, key, *more)

    monkeypatch.setattr(Publisher, "send", mended)
    harness.write([{"pk": "slow", "col1": "old"}, {"pk": "wrong", "col1": "old"}, {"pk": "good"}])
    harness.send([event("slow"), event("wrong"), event("good"), event("absent")])
    done = harness.run(harness.plan(reread_after=0.05))
    found = [(r["pk"], r["hash_cloud"]) for r in harness.readings()]
    assert sorted(found, key=str) == sorted(
        [
            ("slow", hash_of("slow", col1="old")),
            ("slow", hash_of("slow")),
            ("wrong", hash_of("wrong", col1="old")),
            ("good", hash_of("good")),
            ("absent", None),
        ],
        key=str,
    )
    assert (done.rereads, done.changed, done.readings) == (3, 1, 5)


def test_readings_of_one_key_are_sent_in_the_order_of_their_reads(harness: HasherHarness) -> None:
    harness.write([{"pk": "hot"}])
    harness.send([event("hot", event_id=str(n)) for n in range(2_000)])
    progress, stop = RecordedProgress(), [False]

    def changing() -> None:
        for n in range(100_000):
            if stop[0]:
                return
            harness.write([{"pk": "hot", "last_updated": AT + timedelta(milliseconds=n)}])

    writer = run_in_background(changing)
    done = harness.run(harness.plan(), progress)
    stop[0] = True
    writer.join()
    versions = [reading["cloud_ts"] for reading in harness.readings()]
    assert versions == sorted(versions)
    assert done.records == 2_000
    assert len(versions) < 2_000  # one read answers all who waited for it


def test_a_request_to_read_a_key_again_is_answered_even_if_nothing_changed(
    harness: HasherHarness,
) -> None:
    harness.write([{"pk": "k1"}])
    harness.send([event("k1")])
    harness.run()
    asked = {"pk": "k1", "event_ts": "2026-03-01T12:00:00.123Z", "reason": "repair"}
    harness.send([("k1", asked)], reread_topic(harness.topic))
    harness.run()
    assert [reading["hash_cloud"] for reading in harness.readings()] == [hash_of("k1")] * 2


def test_s1_125_a_new_column_is_not_hashed_and_s1_126_told(harness: HasherHarness) -> None:
    harness.write([{"pk": "k1"}])
    harness.send([event("k1")])
    assert harness.run().new_columns == 0
    harness.cassandra.execute(f"ALTER TABLE {harness.table} ADD extra text")
    harness.cassandra.execute(f"UPDATE {harness.table} SET extra = 'x' WHERE pk = 'k1'")
    harness.send([event("k1")])
    progress = RecordedProgress()
    done = harness.run(progress=progress)
    assert {reading["hash_cloud"] for reading in harness.readings()} == {hash_of("k1")}
    assert done.new_columns == 1
    assert harness.run().new_columns == 0, "a start is no drift"
    assert any("`extra`" in words and "not hashed" in words for words in progress.messages)


def test_s1_127_a_removed_column_hashes_as_null_and_s1_128_is_told(harness: HasherHarness) -> None:
    harness.write([{"pk": "k1"}])
    harness.run()
    harness.cassandra.execute(f"ALTER TABLE {harness.table} DROP col2")
    harness.send([event("k1")])
    progress = RecordedProgress()
    done = harness.run(progress=progress)
    assert harness.readings()[0]["hash_cloud"] == hash_of("k1", col2=None)
    assert (done.removed_columns, done.partial) == (1, 0)
    assert any("`col2`" in words and "hashes as null" in words for words in progress.messages)


def test_change_events_are_looked_up_and_a_delete_is_a_tombstone(harness: HasherHarness) -> None:
    harness.write([{"pk": "k1"}])
    topic = harness.broker.new_topic(1, "cass")

    def change(op: str, key: str) -> tuple[str, dict[str, object]]:
        cell = {"value": key, "deletion_ts": None, "set": True}
        after = {"pk": cell, "col1": None, "_range_start": None, "_range_end": None}
        return key, {"ts_ms": 1_772_366_400_123, "op": op, "source": {}, "after": after}

    harness.send(
        [change("i", "k1"), change("u", "k1"), change("d", "k2"), change("d", "k1")], topic
    )
    done = harness.run(harness.plan(mode="cdc", topic=topic))
    found = {record.key: record.value for record in harness.records(harness.cloud_topic)}
    assert found[b"k2"] is None
    assert json.loads(found[b"k1"] or b"")["hash_cloud"] == hash_of("k1")  # it is there again
    assert done.tombstones == 1


def test_a_change_event_without_a_key_is_a_dead_letter_since_no_job_reads_it(
    harness: HasherHarness,
) -> None:
    topic = harness.broker.new_topic(1, "cass")
    harness.send([("k", {"op": "i", "after": {"pk": None}}), ("k", b"no json")], topic)
    done = harness.run(harness.plan(mode="cdc", topic=topic))
    codes = [
        letter.headers["headgate.reason_code"]
        for letter in harness.records(harness.dead_letter_topic)
    ]
    assert sorted(codes) == ["dq_missing_pk", "dq_not_json"]
    assert done.dead_letters == 2


def test_a_key_that_is_not_the_tables_is_refused(harness: HasherHarness) -> None:
    with pytest.raises(SettingsError, match="is not the primary key"):
        harness.run(replace(harness.plan(), key=("col1",)))


def test_a_table_that_is_not_there_is_said(harness: HasherHarness) -> None:
    with pytest.raises(UnavailableError, match="there is no table"):
        harness.run(replace(harness.plan(), cassandra_table="hasher_lab.nowhere"))


def test_a_cassandra_that_is_away_at_the_start_is_said() -> None:
    with (
        pytest.raises(UnavailableError, match="is away") as raised,
        session_at(Place(("127.0.0.1",), 1)),
    ):
        pass
    assert "local up --with cassandra" in raised.value.fix
