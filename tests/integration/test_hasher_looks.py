"""Second looks of real hashers: planned by one that is killed or stopped, made by the next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.hasher_harness import AT, Lab, Started, event, eventually, hash_of

from headgate.feeds.cassandra import Cassandra, Place, session_at
from headgate.feeds.hasher.asked import reread_topic

pytestmark = pytest.mark.slow
YOUNGER = (AT + timedelta(seconds=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture(scope="module")
def session(cassandra: Any) -> Iterator[Cassandra]:
    place = Place((cassandra.service.contact_points,), cassandra.service.port)
    with session_at(place) as opened:
        yield opened


@pytest.fixture
def lab(broker: Any, session: Cassandra, tmp_path: Path) -> Lab:
    return Lab(broker, session, tmp_path)


def begun(lab: Lab, *options: str) -> Started:
    hasher = Started(lab, *options)
    assert eventually(lambda: f"{lab.topic} [" in hasher.text()), hasher.text()
    return hasher


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_one_hasher_missed_the_next_one_finds_though_the_event_is_younger_than_the_row(
    lab: Lab, end: str
) -> None:
    keys = [f"k{n}" for n in range(20)]
    with begun(lab) as first:
        lab.send([event(key, event_ts=YOUNGER) for key in keys])
        topics = lab.broker.topics
        assert eventually(lambda: topics.found(reread_topic(lab.topic)).span == len(keys))
        getattr(first, end)()
    lab.write([{"pk": key} for key in keys])
    with begun(lab, "--reread-after", "0.5") as then:
        assert eventually(lambda: newest(lab) == {key: (hash_of(key), YOUNGER) for key in keys})
        assert then.stop() == 0
    with begun(lab, "--reread-after", "0.5") as third:
        assert third.stop() == 0
    assert "left to read again" not in third.text()
    told = len(lab.readings())
    lab.run()
    assert len(lab.readings()) == told, "a look that was made is not made again"


def newest(lab: Lab) -> dict[str, tuple[str, str]]:
    found = [json.loads(record.value or b"") for record in lab.records(lab.cloud)]
    return {one["pk"]: (one["hash_cloud"], one["cloud_ts"]) for one in found}


def test_while_two_hashers_change_places_no_second_look_is_lost(lab: Lab) -> None:
    keys = [f"k{n}" for n in range(200)]
    with begun(lab, "--reread-after", "15") as one:
        lab.send([event(key) for key in keys])
        topics = lab.broker.topics
        assert eventually(lambda: topics.found(reread_topic(lab.topic)).span == len(keys))
        lab.write([{"pk": key} for key in keys])
        with begun(lab, "--reread-after", "15") as other:
            one.kill()
            assert eventually(lambda: all(hashed for hashed, _ in newest(lab).values()))
            assert other.stop() == 0
    assert {key: hashed for key, (hashed, _) in newest(lab).items()} == {
        key: hash_of(key) for key in keys
    }
