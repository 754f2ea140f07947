"""Second looks of real hashers: planned by one that is killed or stopped, made by the next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.hasher_harness import (
    AT,
    HasherHarness,
    HasherProcess,
    event,
    hash_of,
)

from headgate.local.process import wait_until
from headgate.reconcile.cassandra.session import Cassandra, Place, session_at
from headgate.reconcile.hasher.requests import reread_topic

pytestmark = pytest.mark.slow
YOUNGER = (AT + timedelta(seconds=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture(scope="module")
def session(cassandra: Any) -> Iterator[Cassandra]:
    place = Place((cassandra.service.contact_points,), cassandra.service.port)
    with session_at(place) as opened:
        yield opened


@pytest.fixture
def harness(broker: Any, session: Cassandra, tmp_path: Path) -> HasherHarness:
    return HasherHarness(broker, session, tmp_path)


def begun(harness: HasherHarness, *options: str) -> HasherProcess:
    hasher = HasherProcess(harness, *options)
    assert wait_until(lambda: f"{harness.topic} [" in hasher.text(), 120), hasher.text()
    return hasher


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_one_hasher_missed_the_next_one_finds_though_the_event_is_younger_than_the_row(
    harness: HasherHarness, end: str
) -> None:
    keys = [f"k{n}" for n in range(20)]
    with begun(harness) as first:
        harness.send([event(key, event_ts=YOUNGER) for key in keys])
        topics = harness.broker.topics
        assert wait_until(lambda: topics.found(reread_topic(harness.topic)).span == len(keys), 120)
        getattr(first, end)()
    harness.write([{"pk": key} for key in keys])
    with begun(harness, "--reread-after", "0.5") as then:
        assert wait_until(
            lambda: newest(harness) == {key: (hash_of(key), YOUNGER) for key in keys}, 120
        )
        assert then.stop() == 0
    with begun(harness, "--reread-after", "0.5") as third:
        assert third.stop() == 0
    assert "left to read again" not in third.text()
    told = len(harness.readings())
    harness.run()
    assert len(harness.readings()) == told, "a look that was made is not made again"


def newest(harness: HasherHarness) -> dict[str, tuple[str, str]]:
    found = [json.loads(record.value or b"") for record in harness.records(harness.cloud_topic)]
    return {one["pk"]: (one["hash_cloud"], one["cloud_ts"]) for one in found}


def test_while_two_hashers_change_places_no_second_look_is_lost(harness: HasherHarness) -> None:
    keys = [f"k{n}" for n in range(200)]
    with begun(harness, "--reread-after", "15") as one:
        harness.send([event(key) for key in keys])
        topics = harness.broker.topics
        assert wait_until(lambda: topics.found(reread_topic(harness.topic)).span == len(keys), 120)
        harness.write([{"pk": key} for key in keys])
        with begun(harness, "--reread-after", "15") as other:
            one.kill()
            assert wait_until(lambda: all(hashed for hashed, _ in newest(harness).values()), 120)
            assert other.stop() == 0
    assert {key: hashed for key, (hashed, _) in newest(harness).items()} == {
        key: hash_of(key) for key in keys
    }
