"""The hasher against a real Cassandra and a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hashers import AT, Heard, Lab, event, hash_of

from headgate.feeds.cassandra import Cassandra, Place, session_at


@pytest.fixture(scope="module")
def session(cassandra: Any) -> Iterator[Cassandra]:
    place = Place((cassandra.service.contact_points,), cassandra.service.port)
    with session_at(place) as opened:
        yield opened


@pytest.fixture
def lab(broker: Any, session: Cassandra, tmp_path: Path) -> Lab:
    return Lab(broker, session, tmp_path)


def test_each_event_has_the_hash_of_its_row_on_topic_2(lab: Lab) -> None:
    keys = [f"k{n}" for n in range(500)]
    lab.write([{"pk": key} for key in keys])
    lab.send([event(key) for key in keys])
    done = lab.run()
    found = {reading["pk"]: reading for reading in lab.readings()}
    assert found.keys() == set(keys)
    assert all(found[key]["hash_cloud"] == hash_of(key) for key in keys)
    assert found["k7"] == {
        "pk": "k7",
        "hash_cloud": hash_of("k7"),
        "hash_version": 2,
        "cloud_ts": "2026-03-01T12:00:00.123Z",
    }
    assert (done.records, done.readings, done.dead_letters) == (500, 500, 0)


def test_s1_105_row_not_found_gives_a_null_hash_at_the_version_asked_for(lab: Lab) -> None:
    lab.send([event("gone", event_ts="2026-03-01T12:00:00.123456Z")])
    done = lab.run()
    assert lab.readings() == [
        {
            "pk": "gone",
            "hash_cloud": None,
            "hash_version": 2,
            "cloud_ts": "2026-03-01T12:00:00.123456Z",
        }
    ]
    assert done.not_found == 1


def test_a_reading_is_keyed_by_the_bare_key_and_says_where_it_comes_from(lab: Lab) -> None:
    lab.write([{"pk": "k1"}])
    lab.send([event("k1")])
    lab.run()
    (record,) = lab.records(lab.cloud)
    assert record.key == b"k1"
    assert record.headers["headgate.topic"] == lab.topic
    assert record.headers["headgate.offset"] == "0"
    assert record.headers["headgate.job"] == "hasher-business"
    assert AT.year == 2026
    assert Heard().said == []
