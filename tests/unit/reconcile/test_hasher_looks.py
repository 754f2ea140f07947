"""Second looks: what they say of a row that came late, and that no kill loses one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.cassandra.rows import Row
from headgate.reconcile.decision_table import judge
from headgate.reconcile.hasher.consumer import Offsets, Partition
from headgate.reconcile.hasher.lookups import Lookups
from headgate.reconcile.hasher.metrics import Counts
from headgate.reconcile.hasher.plan import Given, HasherPlan
from headgate.reconcile.hasher.publisher import Done, Publisher
from headgate.reconcile.hasher.readings import CloudForm, Reading, reading_of, request_for
from headgate.reconcile.hasher.requests import (
    Asked,
    EventForm,
    Known,
    Record,
    Skipped,
    behind_the_frame,
    plainly,
    request_of,
)
from headgate.reconcile.hasher.run import asked_by
from headgate.reconcile.hasher.service import Ends, Hasher
from headgate.reconcile.hasher.table import HashedTable
from headgate.reconcile.state import Reading as Said
from headgate.reconcile.state import State, merge_all, of_message

AT = datetime(2026, 3, 1, 12, 0, 0, 123_000, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EVENTS, REREAD, CLOUD, LETTERS = "t1", "t1.reread", "t2", "dlq"
HASH, OTHER = "a" * 64, "b" * 64


def row(hashed: str, version: datetime = AT) -> Row:
    return Row({"col1": hashed}, version, None)


def hash_of(values: object) -> str:
    return cast("dict[str, str]", values)["col1"]


@dataclass
class Broker:
    """Topics of one partition, and how far the group is; all that is left when a hasher is killed."""

    topics: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    committed: dict[Partition, int] = field(default_factory=dict[Partition, int])

    def send(self, topic: str, key: str, value: object) -> None:
        body = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        log = self.topics[topic]
        log.append(Record(topic, 0, len(log), datetime.now(UTC), key.encode(), body))

    def told(self) -> list[tuple[str, str | None, datetime]]:
        """The readings: key, hash and version."""
        found = [json.loads(record.value or b"") for record in self.topics[CLOUD]]
        return [(f["pk"], f["hash_cloud"], datetime.fromisoformat(f["cloud_ts"])) for f in found]

    def ends(self) -> Ends:
        return Ends({(topic, 0): len(self.topics[topic]) for topic in (EVENTS, REREAD)})


class Member:
    """Stands for the consumer group: this process has both partitions."""

    def __init__(self, broker: Broker, offsets: Offsets) -> None:
        self._broker, self._offsets = broker, offsets
        partitions = [(EVENTS, 0), (REREAD, 0)]
        offsets.assign(partitions)
        self._at = {p: broker.committed.get(p, 0) for p in partitions}

    def records(self, _most: int, _timeout: float) -> Iterator[Record]:
        for (topic, number), at in self._at.items():
            for record in self._broker.topics[topic][at:]:
                self._offsets.begin((topic, number), record.offset)
                epoch = self._offsets.epoch((topic, number))
                yield Record(**{**record.__dict__, "epoch": epoch})
            self._at[topic, number] = len(self._broker.topics[topic])
            self._offsets.passed((topic, number), self._at[topic, number])

    def pause(self, on: bool) -> None:
        assert not on

    def commit(self, wait: bool = False) -> None:
        self._broker.committed.update(self._offsets.untold())

    def committed(self, _partitions: object) -> dict[Partition, int]:
        return self._broker.committed

    def close(self) -> None:
        pass


class Sender:
    """Stands for the producer; `away` are topics that take nothing."""

    unacknowledged, is_waiting = 0, False

    def __init__(self, broker: Broker) -> None:
        self._broker, self.away = broker, set[str]()
        self._done: list[Done] = []

    def send(self, topic: str, key: str, value: bytes, _origin: object, done: Done) -> None:
        if topic not in self.away:
            self._broker.send(topic, key, value)
            self._done.append(done)

    def poll(self, _timeout: float = 0) -> None:
        waiting, self._done = self._done, []
        for done in waiting:
            done()

    def flush(self, _seconds: float | None = None) -> None:
        self.poll()


class Table:
    """Stands for Cassandra: answers at once."""

    there = frozenset({"col1"})

    def __init__(self, rows: dict[str, Row]) -> None:
        self.rows = rows

    def start(self, key: str, when_row: Callable[[Row | None], None], when_failed: object) -> None:
        when_row(self.rows.get(key))

    def probe(self, when_known: object) -> None: ...

    def renew(self) -> None: ...


class InMemoryHasherHarness:
    """A broker, a table, and hashers that are started and killed."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.broker, self.rows, self.messages = Broker(), dict[str, Row](), list[str]()
        patch.setattr("headgate.reconcile.hasher.service.Group", self._member)
        patch.setattr("headgate.reconcile.hasher.service.LOOK_EVERY", 0.0)
        self.sender = Sender(self.broker)

    def _member(self, _b: str, _g: str, _t: object, offsets: Offsets, *_more: object) -> Member:
        return Member(self.broker, offsets)

    def advance(self, records: int) -> None: ...

    def say(self, words: str) -> None:
        self.messages.append(words)

    def hasher(self, delay: float = 100.0, *, once: bool = False, framed: bool = False) -> Hasher:
        self.sender = Sender(self.broker)
        form = EventForm("pk", (), "action", "hash_onprem", None, "event_ts")
        plan = HasherPlan(
            table="business",
            given=Given(once=once),
            bootstrap="",
            topic=EVENTS,
            cloud_topic=CLOUD,
            letters_topic=LETTERS,
            cassandra_table="ks.t",
            key=("pk",),
            version="last_updated",
            fields=("col1",),
            row_hash=hash_of,
            events=form,
            cloud=CloudForm("pk", "hash_cloud", None, "cloud_ts", 2),
            reread_after=delay,
            columns_file=Path("unused"),
            opened=behind_the_frame if framed else plainly,
        )
        table = Table(self.rows)
        return Hasher(
            plan,
            cast("HashedTable", table),
            Lookups(table),
            cast("Publisher", self.sender),
            Counts(),
            self,
            partial(asked_by, plan),
        )

    def run(self, hasher: Hasher, rounds: int = 4) -> Hasher:
        """Some rounds, then a clean stop."""
        left = iter(range(rounds))
        hasher.run(lambda: next(left, None) is None, None)
        return hasher

    def event(self, key: str = "k", version: datetime = AT, **more: object) -> None:
        said = {"pk": key, "hash_onprem": HASH, "event_ts": version.isoformat(), **more}
        self.broker.send(EVENTS, key, said)

    def verdict(self, onprem: datetime, at: datetime = AT) -> str:
        """What the job says of the only key, by all that Topic-2 has of it."""
        states: list[State] = [
            of_message("onprem", "k", Said(onprem, 0, 0, HASH, None, "UPSERT", AT))
        ]
        for offset, (_, hashed, version) in enumerate(self.broker.told()):
            said = Said(version, 0, offset, hashed, None, None, AT)
            states.append(of_message("cloud", "k", said))
        return judge(merge_all(states), at, Limits()).status


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> InMemoryHasherHarness:
    return InMemoryHasherHarness(monkeypatch)


def test_a_row_that_was_missed_at_first_is_no_longer_missing_though_its_event_is_younger(
    harness: InMemoryHasherHarness,
) -> None:
    asked = AT + SECOND
    harness.event(version=asked)
    harness.run(harness.hasher())
    assert harness.verdict(asked) == "MISSING_CLOUD"
    harness.rows["k"] = row(HASH)
    harness.run(harness.hasher(0.0))
    assert harness.broker.told() == [("k", None, asked), ("k", HASH, asked)]
    assert harness.verdict(asked) == "MATCH"


def test_another_row_than_on_prem_has_is_a_mismatch_then_and_never_a_match(
    harness: InMemoryHasherHarness,
) -> None:
    asked = AT + SECOND
    harness.event(version=asked)
    harness.run(harness.hasher())
    harness.rows["k"] = row(OTHER)
    harness.run(harness.hasher(0.0))
    assert harness.verdict(asked) == "PENDING"
    assert harness.verdict(asked, AT + timedelta(hours=1)) == "MISMATCH"


def test_a_row_that_is_older_than_its_event_keeps_its_own_version_and_is_waited_for(
    harness: InMemoryHasherHarness,
) -> None:
    asked = AT + SECOND
    harness.rows["k"] = row(OTHER)
    harness.event(version=asked)
    harness.run(harness.hasher(0.0))
    assert harness.broker.told() == [("k", OTHER, AT)]
    assert harness.verdict(asked) == "PENDING"


def test_a_newer_event_does_not_lose_to_what_an_older_one_has_missed(
    harness: InMemoryHasherHarness,
) -> None:
    hasher = harness.hasher()
    harness.event(version=AT + SECOND)
    harness.run(hasher)
    harness.rows["k"] = row(HASH)
    harness.event(version=AT + SECOND * 2)
    harness.run(harness.hasher())
    assert harness.broker.told()[-1] == ("k", HASH, AT + SECOND)


@pytest.mark.parametrize(("said", "version"), [(AT + SECOND, AT + SECOND), (None, AT)])
def test_who_asks_at_a_version_gets_an_answer_that_is_no_older(
    harness: InMemoryHasherHarness, said: datetime | None, version: datetime
) -> None:
    harness.rows["k"] = row(HASH)
    harness.broker.send(
        REREAD, "k", {"pk": "k", **({"event_ts": said.isoformat()} if said else {})}
    )
    harness.run(harness.hasher())
    assert harness.broker.told() == [("k", HASH, version)]


def test_a_row_that_is_gone_at_the_second_look_is_missing_whatever_version_it_had(
    harness: InMemoryHasherHarness,
) -> None:
    harness.rows["k"] = row(OTHER, AT + SECOND)
    harness.event()
    harness.run(harness.hasher())
    del harness.rows["k"]
    harness.run(harness.hasher(0.0))
    assert harness.broker.told() == [("k", OTHER, AT + SECOND), ("k", None, AT + SECOND)]
    assert harness.verdict(AT) == "MISSING_CLOUD"


@pytest.mark.parametrize("clean", [True, False])
def test_a_second_look_outlives_the_hasher_that_planned_it(
    harness: InMemoryHasherHarness, clean: bool
) -> None:
    harness.event()
    first = harness.run(harness.hasher()) if clean else killed(harness)
    assert first.counts.rereads == 0
    harness.rows["k"] = row(HASH)
    then = harness.run(harness.hasher(0.0))
    assert (then.counts.rereads, then.counts.changed) == (1, 1)
    assert harness.broker.told()[-1] == ("k", HASH, AT)
    assert harness.run(harness.hasher(0.0)).counts.rereads == 0, "it is made once"


def killed(harness: InMemoryHasherHarness) -> Hasher:
    hasher = harness.hasher()
    for _ in range(4):
        hasher._round()
    hasher.group.commit()
    return hasher


def test_an_event_is_done_with_only_when_its_second_look_is_on_the_topic(
    harness: InMemoryHasherHarness,
) -> None:
    harness.event()
    hasher = harness.hasher()
    harness.sender.away.add(REREAD)
    harness.run(hasher)
    assert harness.broker.committed.get((EVENTS, 0), 0) == 0
    harness.run(harness.hasher())
    assert harness.broker.committed[EVENTS, 0] == 1
    assert harness.broker.committed.get((REREAD, 0), 0) == 0, "nor is the look"


def test_what_waits_for_its_second_look_takes_no_room_and_is_no_lag(
    harness: InMemoryHasherHarness,
) -> None:
    for n in range(50):
        harness.event(f"k{n}")
    hasher = harness.run(harness.hasher(), 8)
    assert len(hasher.rereads) == 50
    assert hasher._offsets.under_way == 0
    assert hasher._offsets.reached() == {(EVENTS, 0): 50, (REREAD, 0): 50}
    assert hasher._offsets.settled() == {(EVENTS, 0): 50, (REREAD, 0): 0}


def test_a_key_that_agrees_by_now_is_not_looked_at_again_after_a_start_either(
    harness: InMemoryHasherHarness,
) -> None:
    harness.event()
    hasher = harness.hasher()
    for _ in range(4):
        hasher._round()
    harness.rows["k"] = row(HASH)
    harness.event()
    harness.run(hasher)
    assert harness.broker.committed == {(EVENTS, 0): 2, (REREAD, 0): 1}
    assert hasher.counts.records == {"published": 2, "second_look": 1}


def test_a_look_that_finds_the_same_sends_nothing_and_is_done_with(
    harness: InMemoryHasherHarness,
) -> None:
    harness.event()
    harness.run(harness.hasher(0.0), 8)
    assert harness.broker.told() == [("k", None, AT)]
    assert harness.broker.committed == {(EVENTS, 0): 1, (REREAD, 0): 1}


def test_a_run_to_the_end_looks_again_before_it_ends_and_asks_nobody_to(
    harness: InMemoryHasherHarness,
) -> None:
    harness.event()
    hasher = harness.hasher(once=True)
    hasher.run(lambda: False, harness.broker.ends())
    assert (hasher.counts.rereads, harness.broker.topics[REREAD]) == (1, [])
    assert harness.broker.committed == {(EVENTS, 0): 1}


def test_a_run_to_the_end_that_is_killed_before_it_does_the_event_again(
    harness: InMemoryHasherHarness,
) -> None:
    harness.event()
    hasher = harness.hasher(once=True)
    for _ in range(4):
        hasher._round()
    assert (hasher.counts.records, len(hasher.rereads)) == ({"published": 1}, 1)
    assert harness.broker.committed.get((EVENTS, 0), 0) == 0


def test_a_run_to_the_end_makes_the_looks_that_wait_on_the_topic_at_once(
    harness: InMemoryHasherHarness,
) -> None:
    harness.event()
    harness.run(harness.hasher())
    harness.rows["k"] = row(HASH)
    hasher = harness.hasher(once=True)
    hasher.run(lambda: False, harness.broker.ends())
    assert harness.broker.told()[-1] == ("k", HASH, AT)
    assert harness.broker.committed[REREAD, 0] == 1


def test_looks_of_partitions_that_are_given_away_are_left_to_who_has_them(
    harness: InMemoryHasherHarness,
) -> None:
    harness.event()
    hasher = harness.hasher()
    for _ in range(4):
        hasher._round()
    assert len(hasher.rereads) == 1
    hasher._offsets.revoke([(REREAD, 0)])
    hasher._tick(0.0)
    assert len(hasher.rereads) == 0


PLAYS = st.lists(st.sampled_from(["change", "event", "row", "kill", "stop", "round", "looks"]))


@given(PLAYS)
def test_however_hashers_are_killed_the_last_look_tells_what_is_there(play: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        harness, changes = InMemoryHasherHarness(patch), 1
        hasher = harness.hasher()
        for step in play:
            changes += step == "change"
            if step == "event":
                harness.event(version=AT + changes * SECOND)
            elif step == "row":
                harness.rows["k"] = row(OTHER, AT + changes * SECOND)
            elif step == "round":
                hasher._round()
            elif step == "stop":
                harness.run(hasher)
            elif step == "looks":
                harness.run(harness.hasher(0.0))
            if step in ("kill", "stop", "looks"):
                hasher = harness.hasher()
        newest = AT + changes * SECOND
        harness.event(version=newest)
        hasher._round()
        harness.rows["k"] = row(HASH, newest)
        harness.run(harness.hasher(0.0), 8)
        assert harness.verdict(newest, AT + timedelta(days=1)) == "MATCH"
        assert harness.run(harness.hasher(0.0), 8).counts.rereads == 0, "each is made once"


def test_a_request_for_a_second_look_is_read_as_it_was_written() -> None:
    version = AT + timedelta(microseconds=456)
    asked = Asked("k", version, Record(EVENTS, 0, 0, AT, None, None), deleted=True)
    value = request_for(asked, Reading("k", HASH, AT), AT + SECOND)
    record = Record(REREAD, 0, 0, AT, b"k", value)
    assert request_of(record) == Asked(
        "k", version, record, deleted=True, before=Known(HASH, AT), due=AT + SECOND, least=AT
    )


@pytest.mark.parametrize(
    "changes",
    [{"due": "soon"}, {"due": None}, {"before": 1}, {"before": {"hash": HASH}}],
)
def test_a_second_look_that_cannot_be_read_is_refused(changes: dict[str, object]) -> None:
    before = {"hash": None, "version": AT.isoformat()}
    value = {"pk": "k", "before": before, "due": AT.isoformat(), **changes}
    record = Record(REREAD, 0, 0, AT, b"k", json.dumps(value).encode())
    assert request_of(record) == Skipped("not_json")


def test_a_row_is_never_older_than_what_was_said_before() -> None:
    asked = Asked("k", AT, Record(EVENTS, 0, 0, AT, None, None), least=AT + SECOND)
    found = reading_of(asked, row(HASH), hash_of, frozenset())
    assert found.version == AT + SECOND
    newer = reading_of(asked, row(HASH, AT + 2 * SECOND), hash_of, frozenset())
    assert newer.version == AT + 2 * SECOND


def test_framed_values_that_are_no_json_are_skipped_and_said_once(
    harness: InMemoryHasherHarness,
) -> None:
    for _ in range(2):
        harness.broker.send(EVENTS, "k", b"\x00\x00\x00\x00\x07\x04ab")
    hasher = harness.run(harness.hasher(framed=True))
    assert hasher.counts.skipped == {"not_json": 2}
    (told,) = [words for words in harness.messages if "Avro" in words]
    assert "t1 has no JSON behind a registry's frame" in told
