"""The Confluent target against a fake of its API: order, watching, undoing, trying again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.support.fake_confluent import (
    ENVIRONMENT,
    KEY,
    ORGANIZATION,
    SECRET,
    FakeConfluent,
    fake_confluent,
)

from headgate.errors import ForbiddenError, HeadgateError, OperationError, UnavailableError
from headgate.filters.targets.confluent import ConfluentTarget, statement_names
from headgate.filters.targets.confluent_api import Place, Statements
from headgate.filters.targets.deployment import Deployment, State

TOPIC = "filtered-service-events-dealer-001"
SINK, INSERT = f"{TOPIC}-sink", f"{TOPIC}-insert"
WANTED = Deployment(
    filter="service-by-dealer-001",
    source="raw-event-headers",
    revision="r1",
    content="{}",
    topic=TOPIC,
    deployment="d1",
    statements=(f"CREATE TABLE `{TOPIC}` (`id` STRING);", f"INSERT INTO `{TOPIC}` SELECT 1;"),
)
NEXT = replace(
    WANTED, revision="r2", deployment="d2", statements=(WANTED.statements[0], "INSERT 2;")
)


@pytest.fixture
def fake() -> Iterator[FakeConfluent]:
    with fake_confluent() as found:
        yield found


class Ours:
    """All statements of these tests belong to one filter."""

    def texts(self, filter_id: str) -> set[str]:
        return {*WANTED.statements, *NEXT.statements}

    def others(self, filter_id: str, topic: str) -> set[str]:
        return set()


def target_of(
    fake: FakeConfluent, secret: str = SECRET, deadline: float = 120.0
) -> ConfluentTarget:
    place = Place(fake.endpoint, ORGANIZATION, ENVIRONMENT, "lfcp-fake", "lkc-fake", KEY, secret)
    statements = Statements(place, seconds=60.0, sleep=lambda _: None)
    return ConfluentTarget(statements, Ours(), deadline, sleep=lambda _: None)


@pytest.fixture
def target(fake: FakeConfluent) -> Iterator[ConfluentTarget]:
    found = target_of(fake)
    yield found
    found.statements.close()


def test_the_sink_is_complete_before_the_insert_is_sent(
    fake: FakeConfluent, target: ConfluentTarget
):
    fake.slow_phases = 3
    assert target.deploy(WANTED) == (SINK, INSERT)
    posts = [at for at, call in enumerate(fake.calls) if call[0] == "POST"]
    assert len(posts) == 2
    assert fake.statements[SINK].phase == "COMPLETED"
    assert ("GET", fake.calls[posts[0]][1] + f"/{SINK}") in fake.calls[posts[0] : posts[1]]


def test_a_deployment_is_watched_until_it_runs(fake: FakeConfluent, target: ConfluentTarget):
    fake.slow_phases = 5
    assert target.observe(WANTED).state is State.ABSENT
    target.deploy(WANTED)
    seen = [target.observe(WANTED).state for _ in range(6)]
    assert seen[0] is State.PENDING
    assert seen[-1] is State.RUNNING
    assert target.observe(WANTED).revision == "r1"
    assert target.observe(NEXT).state is State.PENDING


def test_the_same_deployment_again_changes_nothing(fake: FakeConfluent, target: ConfluentTarget):
    target.deploy(WANTED)
    target.observe(WANTED)
    before = len(fake.calls)
    target.deploy(WANTED)
    assert {call[0] for call in fake.calls[before:]} == {"GET"}


def test_a_new_revision_replaces_the_insert_and_keeps_the_table(
    fake: FakeConfluent, target: ConfluentTarget
):
    target.deploy(WANTED)
    target.deploy(NEXT)
    assert fake.statements[INSERT].body["spec"]["statement"] == "INSERT 2;"
    assert ("DELETE", fake.calls[0][1]) not in fake.calls
    assert target.observe(NEXT).state in (State.PENDING, State.RUNNING)


def test_a_refused_insert_leaves_nothing_of_a_first_deployment(
    fake: FakeConfluent, target: ConfluentTarget
):
    fake.fails = lambda sql: "no such column" if sql.startswith("INSERT") else ""
    with pytest.raises(OperationError) as caught:
        target.deploy(WANTED)
    assert "no such column" in caught.value.why
    assert fake.statements == {}


def test_a_refused_insert_puts_the_older_one_back(fake: FakeConfluent, target: ConfluentTarget):
    target.deploy(WANTED)
    fake.fails = lambda sql: "no such column" if sql == "INSERT 2;" else ""
    with pytest.raises(OperationError):
        target.deploy(NEXT)
    assert fake.statements[INSERT].body["spec"]["statement"] == WANTED.statements[1]
    assert [target.observe(WANTED).state for _ in range(2)][-1] is State.RUNNING


def test_a_refused_sink_is_taken_back(fake: FakeConfluent, target: ConfluentTarget):
    fake.fails = lambda sql: "no quota" if sql.startswith("CREATE") else ""
    with pytest.raises(OperationError):
        target.deploy(WANTED)
    assert fake.statements == {}


def test_a_table_whose_statement_is_forgotten_is_no_fault(
    fake: FakeConfluent, target: ConfluentTarget
):
    fake.tables.add(TOPIC)
    target.deploy(WANTED)
    assert [target.observe(WANTED).state for _ in range(2)][-1] is State.RUNNING


def test_what_is_too_slow_is_given_up_and_undone(fake: FakeConfluent):
    fake.slow_phases = 1_000_000
    target = target_of(fake, deadline=0.05)
    with pytest.raises(UnavailableError):
        target.deploy(WANTED)
    assert set(fake.phases().values()) <= {"DELETING"}
    target.statements.close()


def test_a_server_in_trouble_is_asked_again(fake: FakeConfluent, target: ConfluentTarget):
    fake.faults = [503, 429]
    assert target.observe(WANTED).state is State.ABSENT


def test_a_server_that_stays_in_trouble_is_away(fake: FakeConfluent, target: ConfluentTarget):
    fake.faults = [503] * 100
    with pytest.raises(UnavailableError):
        target.observe(WANTED)


def test_a_lost_answer_to_a_create_makes_no_second_statement(
    fake: FakeConfluent, target: ConfluentTarget
):
    target.statements.get("x")
    fake.faults = ["lost"]
    made = target.statements.create(SINK, WANTED.statements[0])
    assert made is not None
    assert list(fake.statements) == [SINK]
    assert target.statements.create(SINK, "another text") is None


def test_a_wrong_key_is_said_without_its_secret(fake: FakeConfluent):
    target = target_of(fake, secret="another-canary")
    with pytest.raises(ForbiddenError) as caught:
        target.observe(WANTED)
    assert "canary" not in caught.value.one_line + repr(target)
    target.statements.close()


def test_pause_resume_and_removal(fake: FakeConfluent, target: ConfluentTarget):
    target.deploy(WANTED)
    target.deploy(replace(WANTED, paused=True))
    assert target.observe(WANTED).state is State.PAUSED
    target.deploy(WANTED)
    assert target.observe(WANTED).state is State.RUNNING
    target.remove(WANTED)
    target.remove(WANTED)
    assert (fake.statements, fake.tables) == ({}, {TOPIC})
    assert target.observe(WANTED).state is State.ABSENT


@pytest.mark.parametrize("topic", ["-a-", "a" * 300, "a", "a-", "Ä_b", "---"])
def test_statement_names_are_valid_whatever_the_topic(
    fake: FakeConfluent, target: ConfluentTarget, topic: str
):
    for name in statement_names(topic):
        assert target.statements.create(name, "SELECT 1") is not None


def test_two_topics_never_share_a_name():
    topics = ["a" * 300, "a" * 301, "a", "-a", "a-", "A"]
    assert len({name for topic in topics for name in statement_names(topic)}) == 2 * len(topics)


def test_a_kill_between_the_two_statements_is_finished_by_the_next_call(
    fake: FakeConfluent, target: ConfluentTarget
):
    """The first statement stands alone, as after a kill."""
    target.statements.create(SINK, WANTED.statements[0])
    target.deploy(WANTED)
    assert set(fake.statements) == {SINK, INSERT}


def test_an_endpoint_that_is_not_there_is_away():
    place = Place("http://127.0.0.1:9", ORGANIZATION, ENVIRONMENT, "p", "c", KEY, SECRET)
    statements = Statements(place, seconds=1.0, sleep=lambda _: None)
    with pytest.raises(HeadgateError) as caught:
        statements.get(SINK)
    assert caught.value.exit_code == 8
    statements.close()
