"""Dead letters sent again on a real broker: once each, paced, resumable, never deleted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.support.dead_letter_table import DeadLetterRow, settings_at, write_dead_letters
from tests.support.services import RunningBroker

from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.dead_letters.redrive import open_journals, read_journal
from headgate.dead_letters.service import ATTEMPT, LETTER, ORIGIN, Redriving, open_redriving
from headgate.dead_letters.table import SENT_BEFORE, Chosen
from headgate.errors import ConflictError
from headgate.filters.store.control import ControlStore

COUNT = 120


def letters(topic: str, count: int = COUNT) -> list[DeadLetterRow]:
    own = [("trace", b"abc"), (ATTEMPT, b"1")]
    return [
        DeadLetterRow(
            "bronze-orders", "not_json", topic, n, b"{%d" % n, f"k{n}".encode(), own, minutes=n
        )
        for n in range(count)
    ]


def records(broker: RunningBroker, topic: str) -> list[Any]:
    state = broker.topics.describe(topic)
    assert state is not None
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "looking"})
    try:
        consumer.assign([TopicPartition(topic, p, b) for p, b in state.begin.items()])
        found: list[Any] = []
        while len(found) < state.span:
            got = consumer.consume(state.span - len(found), timeout=60)
            assert got, f"{len(found)} of {state.span} came"
            found += got
        return found
    finally:
        consumer.close()


@pytest.fixture
def topic(broker: RunningBroker) -> str:
    return broker.new_topic(3, "letters")


@pytest.fixture
def settings(project: Path, broker: RunningBroker, topic: str) -> Settings:
    found = settings_at(project, broker.bootstrap)
    write_dead_letters(found, letters(topic))
    return found


def sent(redriving: Redriving, chosen: Chosen, limit: int = 10_000, per_second: int = 10_000):
    journal = redriving.begin(redriving.plan(chosen, limit), "somebody", utc_now())
    return redriving.carry_out(journal, per_second)


def test_original_bytes_and_headers_are_sent_with_the_letters_name(
    settings: Settings, broker: RunningBroker, topic: str
):
    with open_redriving(settings) as redriving:
        report = sent(redriving, Chosen(topic=topic), limit=1)
        facts = redriving.letters.facts(Chosen(), 1, oldest_first=True)[0]
        assert redriving.letters.count(Chosen()) == COUNT
    [record] = records(broker, topic)
    headers = dict(record.headers())
    assert (report.sent, report.left) == (1, 0)
    assert (record.key(), record.value()) == (b"k0", b"{0")
    assert headers["trace"] == b"abc"
    assert headers[LETTER].decode() == facts.id
    assert headers[ORIGIN].decode() == f"{topic}/0/0"
    assert headers[ATTEMPT] == b"2"


def test_what_was_sent_is_left_alone_the_next_time(
    settings: Settings, broker: RunningBroker, topic: str
):
    with open_redriving(settings) as redriving:
        sent(redriving, Chosen(), limit=40)
        sent(redriving, Chosen(), limit=40)
        ids = tuple(redriving.redriven())
        plan = redriving.plan(Chosen(ids=ids))
        assert (plan.items, {one.why for one in plan.skipped}) == ((), {SENT_BEFORE})
        assert len(redriving.plan(Chosen(ids=ids), again=True).items) == 80
    assert len({record.key() for record in records(broker, topic)}) == 80


def test_two_redrives_of_the_same_letters_cannot_both_begin(settings: Settings):
    with open_redriving(settings) as redriving:
        plan = redriving.plan(Chosen(), 5)
        redriving.begin(plan, "one", utc_now())
        with pytest.raises(ConflictError):
            redriving.begin(plan, "two", utc_now())


def test_a_redrive_keeps_its_pace(settings: Settings):
    with open_redriving(settings) as redriving:
        begun = time.monotonic()
        sent(redriving, Chosen(), limit=60, per_second=20)
    assert time.monotonic() - begun >= 2


def test_a_letter_whose_acknowledgement_was_lost_is_not_sent_twice(
    settings: Settings, broker: RunningBroker, topic: str
):
    """The journal loses what it heard after the announcement, as a kill would have it."""
    with open_redriving(settings) as redriving:
        report = sent(redriving, Chosen(), limit=30)
        file = Path(report.journal)
        kept = [line for line in file.read_bytes().splitlines() if b'"outcome"' not in line]
        file.write_bytes(b"\n".join(line for line in kept if b'"closed"' not in line) + b'\n{"out')
        [journal] = open_journals(settings.home)
        assert len(journal.uncertain) == 30
        again = redriving.carry_out(journal, 1000)
    assert (again.sent, again.left, again.closed) == (30, 0, True)
    assert Counter(record.key() for record in records(broker, topic)).most_common(1)[0][1] == 1


def test_a_killed_redrive_goes_on_and_every_letter_arrives_once(
    settings: Settings, broker: RunningBroker, topic: str, project: Path
):
    command = [sys.executable, "-m", "headgate.cli.main", "-o", "json", "dlq", "redrive"]
    environ = {
        **os.environ,
        "HEADGATE_HOME": str(settings.home),
        "BROKER": "kafka",
        "BOOTSTRAP_SERVERS": broker.bootstrap,
        "CATALOG": "jdbc",
        "STORAGE": "local",
        "WAREHOUSE": settings.warehouse,
        "CATALOG_URI": settings.need("catalog_uri"),
        "TOPIC": "orders",
    }
    # Half a minute for all of them: none but the first have been sent when it is killed.
    words = ["--topic", topic, "--per-second", "4", "--yes"]
    with subprocess.Popen([*command, *words], cwd=project, env=environ) as child:
        folder = settings.home / "redrives"
        deadline = time.monotonic() + 180
        while not any(b'"outcome"' in f.read_bytes() for f in folder.glob("*.jsonl")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        child.send_signal(signal.SIGKILL)
        child.wait()
    [journal] = open_journals(settings.home)
    assert 0 < len(journal.left) < COUNT
    done = subprocess.run(
        [*command, "--resume", "--per-second", "1000", "--yes"],
        cwd=project,
        env=environ,
        capture_output=True,
        check=True,
    )
    report = cast("dict[str, Any]", json.loads(done.stdout))
    assert (report["sent"], report["left"], report["closed"]) == (COUNT, 0, True)
    keys = Counter(record.key() for record in records(broker, topic))
    assert (len(keys), set(keys.values())) == (COUNT, {1})
    assert read_journal(journal.file).closed
    with OpsStore.open(settings.ops_store_url) as store:
        told = [(one.action, one.detail["resume"]) for one in store.part(ControlStore).audit()]
    assert told == [("redrive", False), ("redrive", True)]


def test_a_topic_that_is_gone_is_said_and_the_rest_is_sent(
    settings: Settings, broker: RunningBroker, topic: str
):
    write_dead_letters(
        settings, [DeadLetterRow("bronze-orders", "not_json", "gone-topic", 1, b"{")]
    )
    with open_redriving(settings) as redriving:
        report = sent(redriving, Chosen())
    assert (report.sent, report.refused) == (COUNT, {"there is no topic gone-topic": 1})
    assert len(records(broker, topic)) == COUNT
